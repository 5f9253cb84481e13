//! Budgets of a running gateway, from a user's point of view. (CX-7)

use serde_json::{Value, json};
use testkit::{Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

/// Requests a reply of at most `limit` tokens. Returns the status and the body.
async fn ask(served: &ServeProcess, limit: u64) -> (u16, Value) {
    let body =
        json!({"model": "m", "max_tokens": limit, "messages": [{"role": "user", "content": "Count."}]});
    let reply = Request::post(served.address, "/v1/chat/completions").json(&body).send().await.read().await;
    (reply.status, reply.json())
}

#[test]
fn a_closed_session_survives_a_kill_and_reopens_when_raised() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        // Another tool uses this variable. Endmark's own variable takes precedence.
        let place = TestFolder::new()
            .with_variable("SRE_AGENT_TOKEN_BUDGET", "7")
            .with_variable("ENDMARK_TOKEN_BUDGET", "1,500");
        let arguments = ["--upstream", &upstream.base_url()];
        let served = ServeProcess::start(&place, &arguments);
        for _ in 0..20 {
            assert_eq!(ask(&served, 100).await.0, 200);
        }
        let (status, refused) = ask(&served, 9_000).await;
        assert_eq!(status, 402, "it is larger than the whole budget, and closes nothing: {refused}");
        assert_eq!(ask(&served, 1_400).await.0, 200, "the closing call");
        let (status, refused) = ask(&served, 1).await;
        assert_eq!((status, &refused["error"]["type"]), (402, &json!("endmark_budget")), "{refused}");
        assert_eq!(refused["endmark"]["limit"], 1_500);
        let session = refused["endmark"]["subject"].as_str().unwrap().to_owned();
        assert_eq!(served.stop("-KILL").0, None);

        let served = ServeProcess::start(&place, &arguments);
        assert_eq!(ask(&served, 1).await.0, 402, "a kill forgets nothing");
        let shown = place.run(&["budget", "--json"]).envelope()["data"]["rows"][0].clone();
        assert_eq!(
            (&shown["subject"], &shown["limit"], &shown["closed"]),
            (&json!(session), &json!(1_500), &json!(true))
        );
        assert!(shown["spent"].as_u64().unwrap() > 0, "{shown}");
        let raised = place.run(&["budget", "raise", &session, "+50_000"]);
        assert_eq!(raised.code, 0, "{}", raised.errors);
        assert!(raised.output.contains("51500 tokens"), "{}", raised.output);
        assert_eq!(ask(&served, 100).await.0, 200, "while it is served");
        let raised = place.run(&["budget", "raise", &session[..8], "+500"]);
        assert!(
            raised.output.contains("52000 tokens"),
            "by its beginning: {} {}",
            raised.output,
            raised.errors
        );
        assert_eq!(place.run(&["budget", "raise", "nobody", "+5"]).code, 2);
        assert_eq!(place.run(&["budget", "raise", "", "+5"]).code, 2);
        assert_eq!(place.run(&["budget", "raise", &session, "-5"]).code, 2);
        let too_much = place.run(&["budget", "raise", &session, "+1152921504606846976"]);
        assert_eq!(too_much.code, 2);
        assert!(too_much.errors.contains("Add at most 1152921504606796476 tokens."), "{}", too_much.errors);
        let doctor = place.run(&["doctor", "--json"]);
        assert!(doctor.output.contains("its budgets and sums are consistent"), "{}", doctor.output);
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

#[test]
fn an_invalid_budget_is_refused_with_the_valid_forms() {
    for (setting, said) in [
        ("session_usd = -1", "a number of dollars, 0 or more"),
        ("session_tokens = -1", "a whole number, 0 or more"),
        ("zone = \"Europe/Atlantis\"", "like `Europe/Berlin`"),
        ("on_store_error = \"maybe\"", "`open`, `closed`"),
    ] {
        let place = TestFolder::new().with_file("endmark.toml", format!("[budget]\n{setting}\n"));
        let run = place.run(&["config", "check"]);
        assert_eq!(run.code, 2, "{setting}");
        assert!(run.errors.contains(said), "{setting}: {}", run.errors);
    }
    let place = TestFolder::new().with_file(
        "endmark.toml",
        "[budget]\nsession_tokens = 0\nday_usd = 2.50\nzone = \"Europe/Berlin\"\n",
    );
    assert_eq!(place.run(&["config", "check"]).code, 0, "0 means no budget");
}
