//! `run --webhook`: sends the events of a run to a URL. The run never depends on it.

use serde_json::Value;
use testkit::{Answer, ReceivedRequest, Respond, Upstream};

use crate::agent_run::agent_folder;
use crate::serve::in_runtime;

const WRITE_WHOLE_REPORT: &str =
    "printf '# Report\\n\\n## Summary\\n\\nAll is well. It was quiet.\\n' > report.md\n";

/// A server that accepts every request.
struct AcceptingServer;

impl Respond for AcceptingServer {
    fn respond(&self, _: &ReceivedRequest) -> Answer {
        Answer::json(200, &Value::Null)
    }
}

#[test]
fn webhook_events_are_signed_and_optional() {
    in_runtime(async {
        let listener = Upstream::start(AcceptingServer).await;
        let place = agent_folder("agent.sh", WRITE_WHOLE_REPORT)
            .with_variable("ENDMARK_RUNS_WEBHOOK_SECRET", "shared");
        let arguments =
            ["run", "--json", "--template", "criteria.yaml", "--artifact", "report.md", "--webhook"];
        let run = |address: &str| place.run(&[&arguments[..], &[address, "--", "./agent.sh"]].concat());
        let ran = run(&listener.base_url());
        assert_eq!((ran.code, &ran.envelope()["warnings"]), (0, &Value::from(Vec::<Value>::new())));
        let events: Vec<Value> = listener
            .requests()
            .iter()
            .map(|request| {
                assert!(
                    request.header("x-endmark-signature").is_some_and(|sign| sign.starts_with("sha256="))
                );
                serde_json::from_slice(&request.body).unwrap()
            })
            .collect();
        let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!(names, ["agent_run.started", "agent_run.succeeded"]);
        assert_eq!(events[1]["agentRun"]["state"], "succeeded");

        // A URL without a server causes only a warning.
        let ran = run("http://127.0.0.1:9/hook");
        assert_eq!(ran.code, 0, "{}", ran.errors);
        assert!(ran.output.contains("some events did not reach the webhook"), "{}", ran.output);
        assert_eq!(run("nowhere").code, 2);
    });
}
