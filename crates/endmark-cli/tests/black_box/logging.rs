//! The log of a running gateway: its lines are machine-readable and never block the gateway.

use serde_json::{Value, json};
use testkit::{Answer, PrefillBehaviour, ReceivedRequest, Reply, Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const TEXT: &str = "one two three four five six seven eight nine ten";

async fn ask(served: &ServeProcess, max_tokens: Option<u32>) -> Reply {
    let messages = json!([{"role": "user", "content": "Count."}]);
    let body = json!({"model": "m", "max_tokens": max_tokens, "messages": messages});
    let request = Request::post(served.address, "/v1/chat/completions").header("x-endmark-resume", "on");
    request.json(&body).send().await.read().await
}

/// Parses every line as a JSON document.
fn parse_lines(stderr: &str) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    stderr.lines().map(read).collect()
}

#[test]
fn every_log_line_is_json_and_a_request_line_has_its_id() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let place = TestFolder::new();
        let arguments = ["--upstream", &upstream.base_url(), "--log", "json"];
        let served = ServeProcess::start(&place, &arguments);
        let reply = ask(&served, Some(3)).await;
        let id = reply.header("x-endmark-request").unwrap().to_owned();
        ask(&served, None).await;
        let (code, stderr) = served.stop("-TERM");
        assert_eq!(code, Some(0));
        let lines = parse_lines(&stderr);
        let answered: Vec<&Value> = lines.iter().filter(|line| line["message"] == "answered").collect();
        // The other reply was whole, and such requests are not logged by default.
        assert_eq!(answered.len(), 1, "{stderr}");
        assert_eq!((&answered[0]["request"], &answered[0]["outcome"]), (&json!(id), &json!("resumed")));
        assert_eq!((&answered[0]["level"], &answered[0]["calls"]), (&json!("INFO"), &json!(2)));
    });
}

#[test]
fn request_logging_writes_one_line_for_each_request() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT)).await;
        let place = TestFolder::new();
        let served =
            ServeProcess::start(&place, &["--upstream", &upstream.base_url(), "-v", "--log", "text"]);
        ask(&served, None).await;
        ask(&served, None).await;
        let (_, stderr) = served.stop("-TERM");
        let lines = stderr.lines().filter(|line| line.contains(" UTC  whole      m at default, 1 call, "));
        assert_eq!(lines.count(), 2, "{stderr}");
    });
}

#[test]
fn log_fields_contain_fixed_names_and_no_debug_output() {
    in_runtime(async {
        let upstream = Upstream::start(|_: &ReceivedRequest| Answer::server_error()).await;
        let place = TestFolder::new().with_file("endmark.toml", "[retry]\nmax_retries = 1\n");
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url(), "--log", "json"]);
        assert_eq!(ask(&served, None).await.status, 500);
        let (_, stderr) = served.stop("-TERM");
        let lines = parse_lines(&stderr);
        let tries: Vec<&Value> = lines.iter().filter(|line| line["message"] == "no reply").collect();
        assert_eq!(tries.len(), 2, "{stderr}");
        assert_eq!(
            (&tries[0]["failure"], &tries[0]["status"], &tries[0]["next"]),
            (&json!("error_status"), &json!(500), &json!("again"))
        );
        assert!(tries[0]["wait_seconds"].as_f64().is_some_and(|wait| wait > 0.0), "{stderr}");
        assert_eq!((&tries[1]["next"], tries[1].get("wait_seconds")), (&json!("give_up"), None));
        let answered = lines.iter().find(|line| line["message"] == "answered").unwrap();
        assert_eq!((&answered["outcome"], &answered["status"]), (&json!("failed"), &json!(500)));
    });
}

#[test]
fn a_startup_error_is_logged_as_json_too() {
    let run = TestFolder::new().run(&["serve", "--log", "json", "--listen", "nowhere"]);
    assert_eq!(run.code, 2);
    let lines = parse_lines(&run.errors);
    assert_eq!((lines.len(), &lines[0]["level"]), (1, &json!("ERROR")), "{}", run.errors);
    assert!(lines[0]["message"].as_str().unwrap().contains("--listen"), "{}", run.errors);
}

async fn lost_lines(served: &ServeProcess) -> f64 {
    let metrics = Request::new("GET", served.address, "/endmark/metrics").send().await.read().await;
    let counted = |line: &str| line.strip_prefix("endmark_log_lines_lost_total ")?.parse().ok();
    metrics.text().lines().find_map(counted).unwrap()
}

#[test]
fn an_unread_log_delays_no_request_and_lost_lines_are_counted() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT)).await;
        let place = TestFolder::new();
        let mut served = ServeProcess::start(&place, &["--upstream", &upstream.base_url(), "-vv"]);
        let mut lost = 0.0;
        // More lines than the pipe and the queue can contain, because nothing reads them.
        for number in 1..5_000 {
            let reply = ask(&served, None).await;
            assert_eq!(reply.json()["choices"][0]["message"]["content"], TEXT);
            if number % 10 == 0 {
                lost = lost_lines(&served).await;
            }
            if lost > 0.0 {
                break;
            }
        }
        assert!(lost > 0.0);
        served.wait_for_line("lines of the log were lost");
        let (code, _) = served.stop("-TERM");
        assert_eq!(code, Some(0));
    });
}
