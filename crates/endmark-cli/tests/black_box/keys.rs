//! `endmark keys` while a gateway is running. (CX-7)

use serde_json::{Value, json};
use testkit::{Answer, ReceivedRequest, Request, Script, ScriptedModel, Upstream, chat_reply};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

async fn ask(served: &ServeProcess, secret: &str) -> u16 {
    let body = json!({"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Count."}]});
    let sent = Request::post(served.address, "/v1/chat/completions");
    sent.header("authorization", &format!("Bearer {secret}")).json(&body).send().await.read().await.status
}

#[test]
fn keys_are_created_rotated_and_revoked_during_operation() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let configuration = format!(
            "require_key = true\n[upstreams.local]\nbase_url = \"{}\"\napi_key = \"sk-own\"\n",
            upstream.base_url()
        );
        let place = TestFolder::new().with_file("endmark.toml", configuration);
        let served = ServeProcess::start(&place, &[]);
        assert_eq!(ask(&served, "sk-of-a-provider").await, 401);
        let made = place.run(&[
            "keys",
            "add",
            "alice",
            "--models",
            "m",
            "--budget-usd",
            "2.50",
            "--per",
            "month",
            "--until",
            "30d",
        ]);
        assert_eq!(made.code, 0, "{}", made.errors);
        let secret = made.output.trim_end().to_owned();
        assert!(secret.starts_with("em_sk_") && !secret.contains(char::is_whitespace), "{secret}");
        // The budget is in dollars, but `m` has no price. So the key is accepted, but the request is refused.
        assert_eq!(ask(&served, &secret).await, 402);
        let made = place.run(&["keys", "add", "bob", "--budget-tokens", "2_000_000", "--json"]).envelope();
        let bob = made["data"]["secret"].as_str().unwrap().to_owned();
        assert_eq!(ask(&served, &bob).await, 200);

        let listed = place.run(&["keys", "list", "--json"]).envelope();
        assert_eq!(listed["data"]["secret"], Value::Null);
        let alice = &listed["data"]["keys"][0];
        assert_eq!(
            (&alice["name"], &alice["state"], &alice["models"]),
            (&json!("alice"), &json!("valid"), &json!(["m"]))
        );
        assert_eq!(alice["budget"], json!({"unit": "nano_usd", "limit": 2_500_000_000_u64, "per": "month"}));
        assert!(!listed.to_string().contains("em_sk_"), "{listed}");
        let budgets = place.run(&["budget", "--json"]).envelope();
        let row = &budgets["data"]["rows"][0];
        assert_eq!((&row["subject"], &row["limit"]), (&json!("key:bob"), &json!(2_000_000)), "{budgets}");

        let rotated = place.run(&["keys", "rotate", "bob", "--overlap", "2d"]);
        assert_eq!(ask(&served, rotated.output.trim_end()).await, 200, "{}", rotated.errors);
        assert_eq!(ask(&served, &bob).await, 200, "for two days");
        assert_eq!(place.run(&["keys", "revoke", "bob"]).code, 0);
        let mut status = 200;
        for _ in 0..200 {
            status = ask(&served, &bob).await;
            if status != 200 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        assert_eq!(status, 401, "a second later");
        let (code, message) = served.stop("-TERM");
        assert_eq!(code, Some(0));
        assert!(
            ![&secret, &bob].iter().any(|secret| message.contains(&secret["em_sk_".len()..])),
            "{message}"
        );
        let usage = place.run(&["usage", "--by", "key", "--json"]).envelope();
        assert_eq!(usage["data"]["rows"][0]["key"], "key:bob", "{usage}");
    });
}

#[test]
fn an_invalid_key_argument_is_refused_with_advice() {
    let place = TestFolder::new();
    assert_eq!(place.run(&["keys", "add", "a"]).code, 0);
    for (arguments, message) in [
        (&["add", "a"][..], "already"),
        (&["add", "a b"], "letters, digits"),
        (&["add", "b", "--models", " "], "is not the name or the pattern of a model"),
        (&["add", "b", "--budget-tokens", "-5"], "is not a budget"),
        (&["add", "b", "--budget-usd", "-0.5"], "is not a budget"),
        (&["add", "b", "--budget-usd", "much"], "is not a budget"),
        (&["add", "b", "--until", "2020-01-01"], "is in the past"),
        (&["add", "b", "--until", "2027-02-30"], "is not a day"),
        (&["add", "b", "--per", "year"], "possible values"),
        (&["add", "b", "--requests-per-minute", "-1"], "is not a rate limit"),
        (&["add", "b", "--parallel", "some"], "is not a rate limit"),
        (&["rotate", "nobody"], "no key `nobody` exists"),
        (&["rotate", "a", "--overlap", "soon"], "span"),
        (&["revoke", "nobody"], "no key `nobody` exists"),
    ] {
        let typed: Vec<&str> = ["keys"].into_iter().chain(arguments.iter().copied()).collect();
        let run = place.run(&typed);
        assert_eq!(run.code, 2, "{arguments:?}: {}{}", run.output, run.errors);
        assert!(run.errors.contains(message), "{arguments:?}: {}", run.errors);
    }
    let made = place.run(&["keys", "add", "free", "--budget-tokens", "0"]);
    assert_eq!(made.code, 0, "0 means no budget: {}", made.errors);
    let listed = place.run(&["keys", "list"]).output;
    assert!(listed.contains("free  valid  all models  no budget of its own"), "{listed}");
}

#[test]
fn a_killed_gateway_frees_the_slots_of_its_keys() {
    in_runtime(async {
        let event = json!({"choices": [{"index": 0, "delta": {"content": "On"}}]}).to_string();
        let endless = Answer::sse([event.clone(), event]).stall_after(20);
        let is_slow = |request: &ReceivedRequest| String::from_utf8_lossy(&request.body).contains("slow");
        let reply = Answer::json(200, &chat_reply("Yes.", "stop", (20, 10)));
        let upstream = Upstream::start(Script::new().when(is_slow, endless).default_answer(reply)).await;
        let configuration =
            format!("[upstreams.local]\nbase_url = \"{}\"\napi_key = \"sk-own\"\n", upstream.base_url());
        let place = TestFolder::new().with_file("endmark.toml", configuration);
        let served = ServeProcess::start(&place, &[]);
        let limits = ["--requests-per-minute", "1_000", "--tokens-per-minute", "500000", "--parallel", "1"];
        let typed: Vec<&str> = ["keys", "add", "alice"].into_iter().chain(limits).collect();
        let secret = place.run(&typed).output.trim_end().to_owned();
        let listed = place.run(&["keys", "list"]).output;
        assert!(
            listed.contains("no budget of its own  1000 requests/min  500000 tokens/min  1 in parallel"),
            "{listed}"
        );
        let listed = place.run(&["keys", "list", "--json"]).envelope();
        let rates = json!({"requests_per_minute": 1_000, "tokens_per_minute": 500_000, "parallel": 1});
        assert_eq!(listed["data"]["keys"][0]["rates"], rates);
        let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "slow"}]});
        let sent = Request::post(served.address, "/v1/chat/completions");
        let slow = sent.header("authorization", &format!("Bearer {secret}")).json(&body).send().await;
        assert_eq!(slow.status, 200);
        assert_eq!(ask(&served, &secret).await, 429);
        served.kill();
        let served = ServeProcess::start(&place, &[]);
        assert_eq!(ask(&served, &secret).await, 200);
        assert_eq!(served.stop("-TERM").0, Some(0));
        drop(slow);
    });
}

#[test]
fn a_misplaced_key_is_neither_repeated_nor_forwarded() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let configuration =
            format!("[upstreams.local]\nbase_url = \"{}\"\napi_key = \"sk-own\"\n", upstream.base_url());
        let place = TestFolder::new().with_file("endmark.toml", configuration);
        let served = ServeProcess::start(&place, &[]);
        let secret = place.run(&["keys", "add", "alice"]).output.trim_end().to_owned();
        let bearer = format!("Bearer {secret}");
        let chat = "/v1/chat/completions";
        let encoded = secret.replacen("em_sk_", "em%5Fsk%5F", 1);
        for (path, header, value) in [
            (chat.to_owned(), "x-endmark-resume", secret.as_str()),
            (chat.to_owned(), "x-endmark-compact", secret.as_str()),
            (chat.to_owned(), secret.as_str(), "x"),
            (format!("/v1/models/{secret}"), "x-other", "x"),
            (format!("/v1/models/{encoded}"), "x-other", "x"),
        ] {
            let body = json!({"model": "m", "messages": [{"role": "user", "content": "Count."}]});
            let request = Request::post(served.address, &path).header("authorization", &bearer);
            let reply = request.header(header, value).json(&body).send().await.read().await;
            assert_eq!(reply.status, 400, "{path} {header}: {}", reply.text());
            assert!(!reply.text().contains(&secret[6..]), "{path} {header}: {}", reply.text());
        }
        assert_eq!(upstream.requests().len(), 0);
        let (code, message) = served.stop("-TERM");
        assert_eq!(code, Some(0), "{message}");
        assert!(!message.contains(&secret[6..]), "{message}");
    });
}
