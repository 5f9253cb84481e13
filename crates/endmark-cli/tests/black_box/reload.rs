//! SIGHUP: the configuration is reloaded, or stays unchanged and the reason is reported.

use std::time::Duration;

use serde_json::json;
use testkit::{Answer, Request, Script, Upstream, chat_reply, chat_stream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

fn configuration(upstream: &Upstream, more: &str) -> String {
    format!("[upstreams.local]\nbase_url = \"{}\"\n{more}", upstream.base_url())
}

async fn ask(served: &ServeProcess) -> String {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]});
    let reply = Request::post(served.address, "/v1/chat/completions").json(&body).send().await.read().await;
    reply.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

async fn start_upstream_with_reply(text: &str) -> Upstream {
    Upstream::start(Script::new().default_answer(Answer::json(200, &chat_reply(text, "stop", (1, 1))))).await
}

#[test]
fn a_reload_affects_only_new_requests() {
    in_runtime(async {
        let slow = Answer::sse(chat_stream(&["word "; 5], "stop")).pause(Duration::from_millis(200));
        let first = Upstream::start(Script::new().default_answer(slow)).await;
        let second = start_upstream_with_reply("second").await;
        let place = TestFolder::new().with_file("endmark.toml", configuration(&first, ""));
        let mut served = ServeProcess::start(&place, &[]);
        let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "Go."}]});
        let open = Request::post(served.address, "/v1/chat/completions").json(&body).send().await;
        let file = configuration(&second, "[limits]\ntotal_seconds = 1\n");
        let place = place.with_file("endmark.toml", file);
        served.signal("-HUP");
        served.wait_for_line("was reloaded");
        assert_eq!(ask(&served).await, "second");
        let reply = open.read().await;
        assert_eq!(reply.events().last().map(String::as_str), Some("[DONE]"), "{}", reply.text());
        assert_eq!(served.stop("-TERM").0, Some(0));
        drop(place);
    });
}

#[test]
fn an_invalid_file_changes_nothing_and_is_reported() {
    in_runtime(async {
        let upstream = start_upstream_with_reply("as before").await;
        let place = TestFolder::new().with_file("endmark.toml", configuration(&upstream, ""));
        let mut served = ServeProcess::start(&place, &[]);
        for (more, why) in [
            ("[limits]\nconections = 3\n", "endmark.toml:4: unknown key `limits.conections`"),
            ("[limits]\nconnections = \"many\"\n", "endmark.toml:4: `limits.connections` must be"),
            ("allowed_hosts = 3\n", "endmark.toml:3: unknown key"),
            ("fallback = \"nobody\"\n", "must be the name of another upstream"),
            ("[tls]\ncertificate = \"no.pem\"\nkey = \"no.key\"\n", "no.pem` cannot be read"),
            ("[schemas]\na = \"no.json\"\n", "no.json"),
            ("[", "endmark.toml:3"),
        ] {
            std::fs::write(place.path().join("endmark.toml"), configuration(&upstream, more)).unwrap();
            served.signal("-HUP");
            let line = served.wait_for_line("the old one stays");
            assert!(line.contains(why), "{more:?}: {line}");
            assert_eq!(ask(&served).await, "as before");
        }
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

/// An editor may briefly write an incomplete file. Without the configured upstreams, requests and their keys
/// would go to the public providers.
#[test]
fn a_file_without_the_existing_upstreams_changes_nothing() {
    in_runtime(async {
        let upstream = start_upstream_with_reply("as before").await;
        let place = TestFolder::new().with_file("endmark.toml", configuration(&upstream, ""));
        let mut served = ServeProcess::start(&place, &[]);
        for file in ["", "# later\n", "[limits]\nconnections = 9\n"] {
            std::fs::write(place.path().join("endmark.toml"), file).unwrap();
            served.signal("-HUP");
            let line = served.wait_for_line("the old one stays");
            assert!(line.contains("no longer has an upstream"), "{file:?}: {line}");
            assert_eq!(ask(&served).await, "as before");
        }
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

#[test]
fn settings_that_need_a_restart_are_reported() {
    in_runtime(async {
        let upstream = start_upstream_with_reply("here").await;
        let place = TestFolder::new().with_file("endmark.toml", configuration(&upstream, ""));
        let mut served = ServeProcess::start(&place, &[]);
        let file = format!("store = \"sqlite:other.db\"\n{}", configuration(&upstream, ""));
        std::fs::write(place.path().join("endmark.toml"), file).unwrap();
        served.signal("-HUP");
        let line = served.wait_for_line("until the next start");
        let (folder, before) = (place.path().display(), place.store());
        let expected =
            format!("`store` changed to `sqlite:{folder}/other.db`, but stays `sqlite:{}`", before.display());
        assert!(line.contains(&expected), "{line}");
        assert_eq!(ask(&served).await, "here");
    });
}
