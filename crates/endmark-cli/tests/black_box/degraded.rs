//! A locked store, a full disk, and a disk with errors.
//!
//! Every client gets its reply, the gateway reports the problem, and the records are written later.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use endmark_store::{LogFilter, Reader, StoreLocation};
use serde_json::{Value, json};
use testkit::{PrefillBehaviour, Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const TEXT: &str = "one two three four five six seven eight nine ten";

/// A gateway with a scripted upstream.
pub(super) struct RunningGateway {
    pub(super) place: TestFolder,
    pub(super) served: ServeProcess,
    _upstream: Upstream,
}

impl RunningGateway {
    async fn start() -> Self {
        Self::start_in(TestFolder::new(), &[]).await
    }

    pub(super) async fn start_in(place: TestFolder, more: &[&str]) -> Self {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let served =
            ServeProcess::start(&place, &[&["--upstream", upstream.base_url().as_str()], more].concat());
        Self { place, served, _upstream: upstream }
    }

    /// Requests a reply, and checks that the client receives all of it. With `cut`, the upstream cuts the
    /// reply.
    pub(super) async fn ask(&self, cut: bool) {
        let limit = if cut { 3 } else { 500 };
        let body =
            json!({"model": "m", "max_tokens": limit, "messages": [{"role": "user", "content": "Count."}]});
        let request =
            Request::post(self.served.address, "/v1/chat/completions").header("x-endmark-resume", "on");
        let reply = request.json(&body).send().await.read().await;
        assert_eq!(reply.json()["choices"][0]["message"]["content"], TEXT);
    }

    async fn get(&self, path: &str) -> String {
        Request::get(self.served.address, path).send().await.read().await.text()
    }

    pub(super) async fn readiness(&self) -> Value {
        serde_json::from_str(&self.get("/endmark/readyz").await).unwrap()
    }

    pub(super) async fn metric(&self, name: &str) -> u64 {
        self.served.metric(name).await
    }

    /// Waits until the gateway reports that it is ready again.
    async fn wait_until_ready(&self) {
        for _ in 0..400 {
            if self.readiness().await["status"] == "ready"
                && self.metric("endmark_store_rows_waiting").await == 0
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it is not well again: {}", self.readiness().await);
    }

    /// Stops the gateway, checks that `calls` calls are recorded, and returns its output.
    fn stop(self, calls: usize) -> String {
        let (code, stderr_text) = self.served.stop("-TERM");
        assert_eq!(code, Some(0));
        let reader = Reader::open(&StoreLocation::sqlite(self.place.store())).unwrap();
        assert_eq!(reader.check().unwrap(), Vec::<String>::new());
        assert_eq!(reader.recent_calls(100_000).unwrap().len(), calls);
        stderr_text
    }
}

/// Holds the database's write lock until it is dropped.
struct WriteLock(Child);

impl WriteLock {
    fn take(database: &Path) -> Self {
        let mut shell = Command::new("sqlite3");
        let mut shell = shell.arg(database).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let typing = shell.stdin.as_mut().unwrap();
        typing.write_all(b".timeout 5000\nBEGIN IMMEDIATE;\nSELECT 'locked';\n").unwrap();
        let mut stderr_text = String::new();
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut stderr_text).unwrap();
        assert_eq!(stderr_text, "locked\n");
        Self(shell)
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn calls_during_a_store_failure_are_charged() {
    in_runtime(async {
        let place = TestFolder::new().with_file("endmark.toml", "[budget]\nday_tokens = 1_000_000\n");
        let running = RunningGateway::start_in(place, &[]).await;
        running.ask(false).await;
        let lock = WriteLock::take(&running.place.store());
        running.ask(false).await;
        assert_eq!(running.readiness().await["status"], "degraded");
        drop(lock);
        running.wait_until_ready().await;
        assert_eq!(running.served.stop("-TERM").0, Some(0));
        let reader = Reader::open(&StoreLocation::sqlite(running.place.store())).unwrap();
        let calls = reader.recent_calls(9).unwrap();
        let taken = calls.iter().map(|call| call.tokens.prompt.unwrap() + call.tokens.output.unwrap());
        let budget = &reader.budgets().unwrap()[0];
        assert_eq!((calls.len(), budget.spent, budget.held), (2, taken.sum(), 0));
        let doctor = || running.place.run(&["doctor"]);
        assert!(doctor().output.contains("its budgets and sums are consistent"), "{}", doctor().output);
        let sql = "DELETE FROM budget_entries WHERE request_id = (SELECT max(request_id) FROM usage);
            UPDATE budgets SET spent = (SELECT sum(spent) FROM budget_entries);";
        assert!(Command::new("sqlite3").arg(running.place.store()).arg(sql).status().unwrap().success());
        let doctor_report = doctor();
        assert_eq!(doctor_report.code, 1, "{}", doctor_report.output);
        assert!(
            doctor_report.output.contains("store.budgets")
                && doctor_report.output.contains("1 calls were not charged"),
            "{}",
            doctor_report.output
        );
    });
}

#[test]
fn a_blocked_store_hardly_delays_replies() {
    in_runtime(async {
        let running = RunningGateway::start().await;
        let lock = WriteLock::take(&running.place.store());
        for _ in 0..20 {
            running.ask(false).await;
        }
        running.ask(true).await;
        assert_eq!(running.readiness().await["status"], "degraded");
        drop(lock);
        running.wait_until_ready().await;
        // A resumed reply has at least two calls, each with its own row.
        let calls = 20 + count_cut_calls(&running.place);
        running.stop(calls);
    });
}

fn count_cut_calls(place: &TestFolder) -> usize {
    let reader = Reader::open(&StoreLocation::sqlite(place.store())).unwrap();
    let rows = reader.recent_calls(1_000).unwrap();
    let cut = rows.iter().find(|row| row.verdict.as_deref() == Some("cut")).unwrap();
    let calls = reader.request_calls(&cut.request_id).unwrap().len();
    assert!(calls >= 2);
    // The row of the recovery is written after the lock is released.
    for _ in 0..200 {
        if reader.recent(9, &LogFilter::default()).unwrap().len() == 1 {
            return calls;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("the row of the cut never came");
}

/// Makes system calls of a running process fail, until it is dropped.
struct SystemCallFaults(Child);

impl SystemCallFaults {
    fn inject(process: u32, calls: &str, error: &str) -> Self {
        Self::start(process, calls, error, &[])
    }

    /// Makes system calls on only this file fail.
    fn inject_into(file: &Path, process: u32, calls: &str, error: &str) -> Self {
        Self::start(process, calls, error, &["-P", file.to_str().unwrap()])
    }

    fn start(process: u32, calls: &str, error: &str, which: &[&str]) -> Self {
        let mut strace = Command::new("strace")
            .args(which)
            .args(["-f", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-p", &process.to_string()])
            .args(["-e", &format!("inject={calls}:error={error}")])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("strace is needed (apt-get install strace): {error}"));
        let mut stderr_text = String::new();
        BufReader::new(strace.stderr.as_mut().unwrap()).read_line(&mut stderr_text).unwrap();
        assert!(stderr_text.contains("attached"), "{stderr_text}");
        Self(strace)
    }
}

impl Drop for SystemCallFaults {
    fn drop(&mut self) {
        // On SIGTERM strace detaches from the process. On SIGKILL it may not.
        Command::new("kill").arg(self.0.id().to_string()).status().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_full_disk_is_reported_and_loses_no_data() {
    in_runtime(async {
        let running = RunningGateway::start().await;
        for _ in 0..5 {
            running.ask(false).await;
        }
        let faults = SystemCallFaults::inject(running.served.id(), "pwrite64,ftruncate,fallocate", "ENOSPC");
        for _ in 0..20 {
            running.ask(false).await;
        }
        let degraded = running.readiness().await;
        assert_eq!(degraded["status"], "degraded");
        assert!(running.metric("endmark_store_degraded").await == 1);
        assert!(running.metric("endmark_store_failures_total").await > 0);
        drop(faults);
        running.wait_until_ready().await;
        for _ in 0..5 {
            running.ask(false).await;
        }
        assert_eq!(running.metric("endmark_store_rows_lost_total").await, 0);
        let stderr_text = running.stop(30);
        assert!(stderr_text.contains("the store accepts records again"), "{stderr_text}");
    });
}

#[test]
fn the_metric_of_a_failing_store_recovers_automatically() {
    in_runtime(async {
        let running = RunningGateway::start().await;
        let faults = SystemCallFaults::inject(running.served.id(), "pwrite64,ftruncate,fallocate", "ENOSPC");
        running.ask(false).await;
        running.ask(true).await;
        assert_eq!(running.metric("endmark_store_degraded").await, 1);
        drop(faults);
        // Meanwhile no client sends a request or asks for the readiness.
        for _ in 0..400 {
            // The metric recovers slightly before the waiting rows are written.
            let is_well = running.metric("endmark_store_degraded").await == 0;
            if is_well && running.metric("endmark_store_rows_waiting").await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("it still says that it fails");
    });
}

#[test]
fn unsaved_rows_at_the_exit_are_reported_as_lost() {
    in_runtime(async {
        let running = RunningGateway::start().await;
        for _ in 0..5 {
            running.ask(false).await;
        }
        // By now the rows are committed, so the slate contains nothing that could be lost.
        running.wait_until_ready().await;
        let faults = SystemCallFaults::inject(running.served.id(), "pwrite64,ftruncate,fallocate", "ENOSPC");
        for _ in 0..6 {
            running.ask(false).await;
        }
        let RunningGateway { place, served, _upstream } = running;
        let (code, stderr_text) = served.stop("-TERM");
        assert_eq!(code, Some(4), "{stderr_text}");
        assert!(
            stderr_text.contains("the rows of 6 upstream calls and the records of 0 cut replies are lost"),
            "{stderr_text}"
        );
        drop(faults);
        let location = StoreLocation::sqlite(place.store());
        drop(endmark_store::Store::open(&location).unwrap());
        let reader = Reader::open(&location).unwrap();
        assert_eq!(reader.check().unwrap(), Vec::<String>::new());
        assert_eq!(reader.recent_calls(100).unwrap().len(), 5);
    });
}

#[test]
fn rows_saved_on_the_slate_are_present_after_a_restart() {
    in_runtime(async {
        let running = RunningGateway::start().await;
        running.ask(false).await;
        running.wait_until_ready().await;
        let journal = running.place.store().with_extension("db-wal");
        let faults = SystemCallFaults::inject_into(&journal, running.served.id(), "pwrite64", "ENOSPC");
        for _ in 0..6 {
            running.ask(false).await;
        }
        let RunningGateway { place, served, _upstream } = running;
        let (code, stderr_text) = served.stop("-TERM");
        assert_eq!(code, Some(0), "{stderr_text}");
        assert!(stderr_text.contains("wait on the slate"), "{stderr_text}");
        drop(faults);
        let location = StoreLocation::sqlite(place.store());
        drop(endmark_store::Store::open(&location).unwrap());
        assert_eq!(Reader::open(&location).unwrap().recent_calls(100).unwrap().len(), 7);
    });
}

#[test]
fn records_during_a_full_disk_are_written_later_or_reported_lost() {
    in_runtime(async {
        let running = RunningGateway::start().await;
        let log = StoreLocation::sqlite(running.place.store());
        let recorded = || Reader::open(&log).unwrap().recent(9, &LogFilter::default()).unwrap();
        let faults = SystemCallFaults::inject(running.served.id(), "pwrite64,ftruncate,fallocate", "ENOSPC");
        for _ in 0..4 {
            running.ask(true).await;
        }
        drop(faults);
        for _ in 0..400 {
            if recorded().len() == 4 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        let rows = recorded();
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| row.outcome == "resumed"), "{rows:?}");
        assert_eq!(running.metric("endmark_store_cuts_lost_total").await, 0);
        running.wait_until_ready().await;

        let faults = SystemCallFaults::inject(running.served.id(), "pwrite64,ftruncate,fallocate", "ENOSPC");
        running.ask(true).await;
        let RunningGateway { place: _place, served, _upstream } = running;
        let (code, stderr_text) = served.stop("-TERM");
        assert_eq!(code, Some(4), "{stderr_text}");
        assert!(stderr_text.contains("the records of 1 cut replies are lost"), "{stderr_text}");
        drop(faults);
    });
}

#[test]
fn a_disk_that_cannot_sync_is_reported_and_loses_no_data() {
    in_runtime(async {
        let running = RunningGateway::start().await;
        let faults = SystemCallFaults::inject(running.served.id(), "fsync,fdatasync", "EIO");
        let mut request_count = 0;
        while running.metric("endmark_store_failures_total").await == 0 {
            for _ in 0..20 {
                running.ask(false).await;
                // With this pause each row is committed separately, so the journal grows.
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            request_count += 20;
            assert!(request_count < 4_000, "the journal is never moved into the file");
        }
        assert_eq!(running.readiness().await["status"], "degraded");
        drop(faults);
        for _ in 0..20 {
            running.ask(false).await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        running.wait_until_ready().await;
        let stderr_text = running.stop(request_count + 20);
        assert!(stderr_text.contains("the store fails"), "{stderr_text}");
    });
}
