//! `serve`: clients of the running gateway get complete replies, and the process ends on request.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command};

use serde_json::json;
use testkit::{PrefillBehaviour, Request, ScriptedModel, Upstream};

use crate::run::TestFolder;

const TEXT: &str = "one two three four five six seven eight nine ten";

/// A running gateway process, killed when it is dropped.
pub(crate) struct ServeProcess {
    child: Child,
    pub(crate) address: SocketAddr,
    errors: BufReader<std::process::ChildStderr>,
}

impl ServeProcess {
    /// Returns the value of a metric without labels.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = Request::get(self.address, "/endmark/metrics").send().await.read().await.text();
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    pub(crate) fn start(place: &TestFolder, arguments: &[&str]) -> Self {
        let arguments = [&["serve"], arguments].concat();
        let mut child = place.command(&arguments).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listens on http") {
            line.clear();
            assert_ne!(errors.read_line(&mut line).unwrap(), 0, "it ended before it listened");
        }
        let address = line.split("://").nth(1).unwrap().split(". ").next().unwrap().trim_end();
        Self { child, address: address.parse().unwrap(), errors }
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends the process a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the next line of standard error that contains this text.
    pub(crate) fn wait_for_line(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.errors.read_line(&mut line).unwrap(), 0, "it ended before it said `{text}`");
        }
        line
    }

    /// Returns a line of `/proc/PID/status`, such as `VmRSS`, in KiB.
    pub(crate) fn status_kib(&self, line: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
        value.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Waits until the process ends by itself, and returns its exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        let mut stderr_text = String::new();
        self.errors.read_to_string(&mut stderr_text).unwrap();
        self.child.wait().unwrap().code()
    }

    /// Sends the process a signal. Returns its exit code and its output on standard error.
    pub(crate) fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        self.signal(signal);
        let mut stderr_text = String::new();
        self.errors.read_to_string(&mut stderr_text).unwrap();
        (self.child.wait().unwrap().code(), stderr_text)
    }
}

/// Ensures that the process ends with its test.
impl Drop for ServeProcess {
    fn drop(&mut self) {
        // In most tests the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn in_runtime(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn a_cut_reply_is_completed_and_logged() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let place = TestFolder::new();
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        let body =
            json!({"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": "Count."}]});
        let request = Request::post(served.address, "/v1/chat/completions").header("x-endmark-resume", "on");
        let reply = request.json(&body).send().await.read().await;
        assert_eq!(reply.json()["choices"][0]["message"]["content"], TEXT);
        assert_eq!(reply.json()["choices"][0]["finish_reason"], "stop");
        let id = reply.header("x-endmark-request").unwrap().to_owned();
        assert_eq!(served.stop("-TERM").0, Some(0));
        let shown = place.run(&["log", "show", &id]);
        assert!(
            shown.output.contains("recovery 1  resumed") && shown.output.contains("seam at byte"),
            "{}",
            shown.output
        );
    });
}

#[test]
fn an_interrupt_exits_with_130() {
    let served = ServeProcess::start(&TestFolder::new(), &["--upstream", "http://127.0.0.1:9/v1"]);
    let (code, stderr_text) = served.stop("-INT");
    assert_eq!(code, Some(130));
    assert!(!stderr_text.contains("error:"), "{stderr_text}");
}

#[test]
fn an_address_in_use_is_reported_before_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = TestFolder::new();
    let run = place.run(&["serve", "--listen", &address]);
    assert_eq!((run.code, run.output.as_str()), (2, ""));
    assert!(run.errors.contains(&format!("cannot listen on {address}")), "{}", run.errors);
    let holder = format!("(process {}) already listens there", std::process::id());
    assert!(run.errors.contains(&holder), "{}", run.errors);
    assert_eq!(
        place.run(&["serve", "--listen", &address, "--json"]).envelope()["error"]["code"],
        "cannot_listen"
    );
    let doctor = place.run(&["doctor", "--set", &format!("listen={address}"), "--json"]).envelope();
    let checks = doctor["data"]["checks"].as_array().unwrap();
    assert_eq!(checks.iter().find(|check| check["name"] == "listen").unwrap()["ok"], false);
}

#[test]
fn a_missing_key_and_an_impossible_store_are_named() {
    let place = TestFolder::new().with_file(
        "endmark.toml",
        "[upstreams.a]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = { env = \"A_KEY\" }\n",
    );
    let run = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(run.code, 2);
    assert!(run.errors.contains("`A_KEY`"), "{}", run.errors);
    let run = place.run(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        "http://127.0.0.1:9/v1",
        "--store",
        "sqlite:no/such/folder.db",
    ]);
    assert_eq!(run.code, 4, "{}", run.errors);
}

#[test]
fn doctor_distinguishes_answering_and_silent_upstreams() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT)).await;
        let there = format!("upstreams.there.base_url={}", upstream.base_url());
        let place = TestFolder::new();
        let arguments = ["doctor", "--json", "--set", "listen=127.0.0.1:0", "--set", &there];
        assert_eq!(place.run(&arguments).code, 0);
        let run = place
            .run(&[&arguments[..], &["--set", "upstreams.gone.base_url=http://127.0.0.1:9/v1"]].concat());
        let envelope = run.envelope();
        let checks = envelope["data"]["checks"].as_array().unwrap();
        let is_ok = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap()["ok"].clone();
        assert_eq!((is_ok("upstreams.there"), is_ok("upstreams.gone")), (json!(true), json!(false)));
    });
}

#[test]
fn doctor_reports_whether_a_gateway_is_ready() {
    let place = TestFolder::new();
    let served = ServeProcess::start(&place, &["--upstream", "http://127.0.0.1:9/v1"]);
    let listen = format!("listen={}", served.address);
    let ready = place.run(&["doctor", "--serving", "--set", &listen]);
    assert_eq!(ready.code, 0, "{}{}", ready.output, ready.errors);
    served.stop("-TERM");
    let gone = place.run(&["doctor", "--serving", "--set", &listen]);
    assert_eq!(gone.code, 1, "{}{}", gone.output, gone.errors);
    // A listener that is not a gateway does not count as ready.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("listen={}", other.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        use std::io::Write as _;
        let mut stream = other.accept().unwrap().0;
        let mut head = [0; 64];
        let _ = stream.read(&mut head).unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap();
    });
    let no_gateway = place.run(&["doctor", "--serving", "--set", &listen]);
    answering.join().unwrap();
    assert_eq!(no_gateway.code, 1);
    assert!(no_gateway.output.contains("is not a gateway"), "{}", no_gateway.output);
}
