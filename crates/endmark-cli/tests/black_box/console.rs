//! `/endmark/api/`: the same JSON as the commands with `--json`, and who may read it.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{PrefillBehaviour, Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const TEXT: &str = "one two three four five six seven eight nine ten";
const ARTIFACT: &str = "# Done\n\nAll of it is here.\n";
const CRITERIA: &str = "min_lines: 1\n";
/// Runs an agent whose artifact already exists.
const RUN_ARGUMENTS: [&str; 8] =
    ["run", "--template", "criteria.yaml", "--artifact", "artifact.md", "--", "/bin/sh", "-c"];
const ADMIN_KEY: &str = "an admin key of many characters";

async fn get(address: SocketAddr, path: &str) -> (u16, Value) {
    let reply = Request::get(address, path).send().await.read().await;
    (reply.status, serde_json::from_slice(&reply.body).unwrap_or(Value::Null))
}

async fn ask(served: &ServeProcess, model: &str, limit: u32) {
    let body =
        json!({"model": model, "max_tokens": limit, "messages": [{"role": "user", "content": "Count."}]});
    let request = Request::post(served.address, "/v1/chat/completions").header("x-endmark-resume", "on");
    request.json(&body).send().await.read().await;
}

/// Checks that a command and a route return the same data, except for a local folder.
async fn assert_same_data(place: &TestFolder, served: &ServeProcess, command: &[&str], path: &str) {
    let mut printed = place.run(&[command, &["--json"]].concat()).envelope()["data"].clone();
    printed.as_object_mut().and_then(|printed| printed.remove("output_folder"));
    let (status, mut shown) = get(served.address, path).await;
    assert_eq!(status, 200, "{path}: {shown}");
    if let Some(page) = shown.as_object_mut() {
        page.remove("next");
    }
    assert_eq!(shown, printed, "{path}");
}

#[test]
fn every_route_returns_the_data_of_its_command() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let config = "[budget]\nsession_tokens = 1_000_000\nday_usd = 5\n";
        let place = TestFolder::new()
            .with_file("endmark.toml", config)
            .with_file("artifact.md", ARTIFACT)
            .with_file("criteria.yaml", CRITERIA);
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        for (model, limit) in [("gpt-5", 3), ("gpt-5", 4), ("other", 500)] {
            ask(&served, model, limit).await;
        }
        let run = place.run(&[&RUN_ARGUMENTS[..], &["exit 0"]].concat());
        assert_eq!(run.code, 0, "{}", run.errors);
        for by in ["session", "model", "key", "upstream", "day", "purpose"] {
            assert_same_data(&place, &served, &["usage", "--by", by], &format!("/endmark/api/usage?by={by}"))
                .await;
        }
        assert_same_data(
            &place,
            &served,
            &["usage", "--until", "2020-01-01"],
            "/endmark/api/usage?until=2020-01-01",
        )
        .await;
        assert_same_data(&place, &served, &["report", "--since", "1h"], "/endmark/api/report?since=1h").await;
        assert_same_data(&place, &served, &["log"], "/endmark/api/recoveries").await;
        assert_same_data(&place, &served, &["log", "show", "1"], "/endmark/api/recoveries/1").await;
        assert_same_data(
            &place,
            &served,
            &["log", "--status", "exhausted"],
            "/endmark/api/recoveries?status=exhausted",
        )
        .await;
        assert_same_data(&place, &served, &["budget"], "/endmark/api/budgets").await;
        assert_same_data(&place, &served, &["runs"], "/endmark/api/runs").await;
        let (_, cut) = get(served.address, "/endmark/api/requests?outcome=any-cut").await;
        for at in ["/rows/0/calls/0/started_at", "/rows/0/calls/0/ended_at", "/rows/0/cuts/0/timestamp"] {
            let moment = cut.pointer(at).and_then(Value::as_str).unwrap_or_default();
            assert!(moment.get(10..11) == Some("T") && moment.ends_with('Z'), "{at}: {moment}: {cut}");
        }
        let (_, runs) = get(served.address, "/endmark/api/runs").await;
        let id = runs["runs"][0]["id"].as_str().unwrap().to_owned();
        assert_same_data(&place, &served, &["runs", "show", &id], &format!("/endmark/api/runs/{id}")).await;
        let (status, compactions) = get(served.address, "/endmark/api/compactions").await;
        assert_eq!((status, compactions), (200, json!({"rows": [], "next": null})));
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

#[test]
fn refused_requests_are_listed_in_order_with_one_reason() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let place = TestFolder::new().with_file("endmark.toml", "[budget]\nsession_tokens = 100_000\n");
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        for (model, limit) in [("first", 500), ("much", 900_000), ("more", 900_000), ("last", 500)] {
            ask(&served, model, limit).await;
        }
        // The rows of calls are committed slightly later.
        while get(served.address, "/endmark/api/requests").await.1["rows"].as_array().unwrap().len() < 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // With one row per page, each request is listed once, newest first.
        let (mut outcomes, mut path) = (Vec::new(), "/endmark/api/requests?limit=1".to_owned());
        loop {
            let (_, page) = get(served.address, &path).await;
            for row in page["rows"].as_array().unwrap() {
                outcomes.push(row["outcome"].as_str().unwrap().to_owned());
            }
            let Some(next) = page["next"].as_str() else { break };
            path = format!("/endmark/api/requests?limit=1&before={}", next.replace(' ', "%20"));
        }
        assert_eq!(outcomes, ["whole", "refused", "refused", "whole"]);
        let (_, page) =
            get(served.address, "/endmark/api/requests?outcome=refused&model=much&since=1h").await;
        let row = &page["rows"][0];
        assert_eq!(
            (page["rows"].as_array().unwrap().len(), &row["calls"], &row["total"]["calls"]),
            (1, &json!([]), &json!(0))
        );
        let refusal = &row["refusal"];
        assert_eq!((&refusal["status"], &refusal["kind"]), (&json!(402), &json!("endmark_budget")));
        assert!(
            refusal["at"].as_str().unwrap().ends_with('Z') && refusal["upstream"] == "default",
            "{refusal}"
        );
        let metrics = Request::get(served.address, "/endmark/metrics").send().await.read().await.text();
        let line = |outcome: &str| {
            metrics.lines().any(|line| {
                line.starts_with("endmark_requests_total") && line.contains(outcome) && line.ends_with(" 2")
            })
        };
        assert!(line("outcome=\"refused\"") && line("outcome=\"whole\""), "{metrics}");
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

#[test]
fn paging_continues_after_the_last_row_despite_new_rows() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let place = TestFolder::new()
            .with_file("endmark.toml", "[budget]\nsession_tokens = 1_000_000\nday_tokens = 9_000_000\n");
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        for limit in [2, 3, 4, 5, 6] {
            ask(&served, "m", limit).await;
        }
        let mut seen = Vec::new();
        let mut path = "/endmark/api/recoveries?limit=2".to_owned();
        loop {
            let (_, page) = get(served.address, &path).await;
            seen.extend(page["rows"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()));
            // A new row does not shift the pages.
            ask(&served, "m", 7).await;
            let Some(next) = page["next"].as_str() else { break };
            path = format!("/endmark/api/recoveries?limit=2&before={next}");
        }
        assert_eq!(seen, [5, 4, 3, 2, 1]);
        let (_, all) = get(served.address, "/endmark/api/budgets").await;
        let mut rows = Vec::new();
        let mut path = "/endmark/api/budgets?limit=1".to_owned();
        loop {
            let (_, page) = get(served.address, &path).await;
            rows.extend(page["rows"].as_array().unwrap().clone());
            let Some(next) = page["next"].as_str() else { break };
            path = format!("/endmark/api/budgets?limit=1&after={next}");
        }
        assert_eq!(Value::from(rows), all["rows"]);
        assert!(all["rows"].as_array().unwrap().len() >= 2, "{all}");
        for (path, status) in [
            ("/endmark/api/recoveries?limit=0", 400),
            ("/endmark/api/recoveries?colour=red", 400),
            ("/endmark/api/recoveries?status=maybe", 400),
            ("/endmark/api/recoveries/99", 404),
            ("/endmark/api/runs/run_none", 404),
            ("/endmark/api/usage?by=colour", 400),
            ("/endmark/api/usage?since=soon", 400),
            ("/endmark/api/report?since=soon", 400),
            ("/endmark/api/budgets?after=x", 400),
            ("/endmark/api/nothing", 404),
        ] {
            let (answered, body) = get(served.address, path).await;
            assert_eq!(answered, status, "{path}: {body}");
            assert!(body["error"]["message"].is_string(), "{path}: {body}");
        }
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

#[test]
fn run_events_are_streamed_and_resume_from_the_last_id() {
    in_runtime(async {
        let place = TestFolder::new().with_file("artifact.md", ARTIFACT).with_file("criteria.yaml", CRITERIA);
        let served = ServeProcess::start(&place, &["--upstream", "http://127.0.0.1:9/v1"]);
        let start = || assert_eq!(place.run(&[&RUN_ARGUMENTS[..], &["exit 0"]].concat()).code, 0);
        start();
        let mut live = Request::get(served.address, "/endmark/api/runs/events").send().await;
        let mut text = live.next_frame().await.unwrap().unwrap();
        assert!(text.starts_with("retry: ") && !text.contains("data:"), "nothing of what was before: {text}");
        start();
        let next = async {
            while !text.contains("succeeded") {
                text.push_str(&live.next_frame().await.unwrap().unwrap());
            }
        };
        tokio::time::timeout(Duration::from_mins(1), next).await.unwrap();
        let ids: Vec<i64> =
            text.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect();
        let printed = place.run(&["runs", "--json"]).envelope()["data"]["runs"][0]["id"].clone();
        assert!(text.contains(&format!("\"run\":{printed}")), "{text}");
        drop(live);
        let seen = ids[0].to_string();
        let request = Request::get(served.address, "/endmark/api/runs/events").header("last-event-id", &seen);
        let mut again = request.send().await;
        let mut rest = String::new();
        while !rest.contains(&format!("id: {}\n", ids[ids.len() - 1])) {
            rest.push_str(&again.next_frame().await.unwrap().unwrap());
        }
        assert!(
            !rest.contains(&format!("id: {seen}\n")) && rest.contains(&format!("id: {}\n", ids[1])),
            "{rest}"
        );
        // A stop of the gateway ends an open event stream immediately.
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

#[test]
fn remote_reads_need_the_admin_key() {
    in_runtime(async {
        let paths = ["/endmark/api/usage", "/endmark/api/recoveries", "/endmark/api/runs/events"];
        let upstream = ["--upstream", "http://127.0.0.1:9/v1"];
        let place = TestFolder::new().with_file("endmark.toml", format!("admin_key = \"{ADMIN_KEY}\"\n"));
        let served = ServeProcess::start(&place, &upstream);
        for path in paths {
            assert_eq!(get(served.address, path).await.0, 401, "{path}");
            let with = |key: &str| {
                Request::get(served.address, path).header("authorization", &format!("Bearer {key}"))
            };
            assert_eq!(with("another key of many characters").send().await.read().await.status, 401);
            if !path.ends_with("events") {
                assert_eq!(with(ADMIN_KEY).send().await.read().await.status, 200, "{path}");
            }
        }
        assert_eq!(get(served.address, "/endmark/healthz").await.0, 200);
        served.kill();
        for (config, listen) in
            [("", &["--listen", "0.0.0.0:0"][..]), ("allowed_hosts = [\"gateway.example\"]\n", &[])]
        {
            let place = TestFolder::new().with_file("endmark.toml", config);
            let served = ServeProcess::start(&place, &[&upstream[..], listen].concat());
            let address = SocketAddr::from(([127, 0, 0, 1], served.address.port()));
            for path in paths {
                assert_eq!(get(address, path).await.0, 403, "{config} {path}");
            }
            served.kill();
        }
        // Clients with a gateway key reach it, even through a proxy that sends the name of the listener as
        // the host.
        let required =
            |more: &str| TestFolder::new().with_file("endmark.toml", format!("require_key = true\n{more}"));
        let closed = required("");
        let served = ServeProcess::start(&closed, &upstream);
        for path in ["/endmark/", "/endmark/metrics", "/endmark/keys"].iter().chain(&paths) {
            let reply = Request::get(served.address, path).send().await.read().await;
            assert_eq!(reply.status, 403, "{path}");
            assert!(reply.text().contains("admin_key"), "{path}: {}", reply.text());
        }
        for path in ["/endmark/healthz", "/endmark/readyz"] {
            assert_eq!(get(served.address, path).await.0, 200, "{path}");
        }
        served.kill();
        let admin_key = format!("admin_key = \"{ADMIN_KEY}\"\n");
        for (config, strangers) in [
            (format!("require_key = true\n{admin_key}"), 200),
            (format!("{admin_key}[metrics]\naccess = \"admin\"\n"), 401),
            ("[metrics]\naccess = \"admin\"\n".to_owned(), 403),
        ] {
            let place = TestFolder::new().with_file("endmark.toml", &config);
            let served = ServeProcess::start(&place, &upstream);
            let metrics = async |key: &str| {
                let request = Request::get(served.address, "/endmark/metrics");
                request.header("authorization", &format!("Bearer {key}")).send().await.read().await.status
            };
            assert_eq!(get(served.address, "/endmark/metrics").await.0, strangers, "{config}");
            assert_eq!(metrics("another key of many characters").await, strangers, "{config}");
            let owner = if strangers == 403 { 403 } else { 200 };
            assert_eq!(metrics(ADMIN_KEY).await, owner, "{config}");
            served.kill();
        }
        let place = TestFolder::new();
        let served = ServeProcess::start(&place, &upstream);
        for (name, value) in
            [("host", "evil.example"), ("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")]
        {
            let request = Request::get(served.address, "/endmark/api/usage").header(name, value);
            assert_eq!(request.send().await.read().await.status, 403, "{name}");
        }
        assert_eq!(Request::post(served.address, "/endmark/api/usage").send().await.read().await.status, 405);
        served.kill();
        let weak = TestFolder::new().with_file("endmark.toml", "admin_key = \"short\"\n");
        let run = weak.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(run.code == 2 && run.errors.contains("could be guessed"), "{}", run.errors);
    });
}

/// Fetches a page, and checks that its content security policy forbids all other content.
async fn fetch_page(address: SocketAddr, path: &str) -> String {
    let reply = Request::get(address, path).send().await.read().await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    reply.text()
}

#[test]
fn pages_show_the_command_figures_and_escape_hostile_text() {
    in_runtime(async {
        let hostile = "<script>alert(1)</script>\u{202e}&\"'";
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let config = "[budget]\nsession_tokens = 1_000_000\n[store_policy]\nkeep_text = true\n";
        let place = TestFolder::new()
            .with_file("endmark.toml", config)
            .with_file("artifact.md", ARTIFACT)
            .with_file("criteria.yaml", CRITERIA);
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        let first = fetch_page(served.address, "/endmark/").await;
        assert!(first.contains(&format!("export OPENAI_BASE_URL=http://{}/v1", served.address)), "{first}");
        for model in ["gpt-5", hostile] {
            ask(&served, model, 3).await;
        }
        let run = place.run(&[&RUN_ARGUMENTS[..], &["exit 0 # <script>alert(2)</script>"]].concat());
        assert_eq!(run.code, 0, "{}", run.errors);
        let printed =
            |command: &[&str]| place.run(&[command, &["--json"]].concat()).envelope()["data"].clone();
        let overview = fetch_page(served.address, "/endmark/").await;
        let report = printed(&["report", "--since", "7d"]);
        let sums = printed(&["usage", "--since", "7d"]);
        let usd = sums["total"]["usd_at_least"].as_str().unwrap().to_owned();
        for (id, expected) in [("cut", report["cut"].to_string()), ("usd", usd)] {
            assert!(
                overview.contains(&format!("id=\"{id}\" data-value=\"{expected}\"")),
                "{id} is not {expected}: {overview}"
            );
        }
        let run = printed(&["runs"])["runs"][0]["id"].as_str().unwrap().to_owned();
        let session =
            printed(&["usage", "--by", "session"])["rows"][0]["session"].as_str().unwrap().to_owned();
        for path in [
            "/endmark/requests".to_owned(),
            "/endmark/requests?outcome=resumed".to_owned(),
            "/endmark/recoveries/2".to_owned(),
            "/endmark/sessions".to_owned(),
            "/endmark/usage".to_owned(),
            "/endmark/usage?by=session&since=1d".to_owned(),
            "/endmark/budgets".to_owned(),
            "/endmark/compactions".to_owned(),
            "/endmark/keys".to_owned(),
            "/endmark/runs".to_owned(),
            format!("/endmark/runs/{run}"),
            "/endmark/login".to_owned(),
        ] {
            let shown = fetch_page(served.address, &path).await;
            assert!(!shown.contains("<script>") && !shown.contains(" style="), "{path}: {shown}");
        }
        let recovery = fetch_page(served.address, "/endmark/recoveries/2").await;
        assert!(
            recovery.contains("&lt;script&gt;") && recovery.contains("What the client received"),
            "{recovery}"
        );
        assert!(recovery.contains("one two"), "texts are kept: {recovery}");
        assert!(fetch_page(served.address, &format!("/endmark/runs/{run}")).await.contains("agent_run."));

        let budgets = fetch_page(served.address, "/endmark/budgets").await;
        let token = budgets.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        let raise = |token: &str| {
            let form = format!("token={token}&session={session}&unit=tokens&by=%2B5000");
            Request::post(served.address, "/endmark/budgets/raise").body(form)
        };
        assert_eq!(raise("guessed").send().await.read().await.status, 403);
        assert_eq!(raise(token).send().await.read().await.status, 303);
        let rows = printed(&["budget"])["rows"].as_array().unwrap().clone();
        assert_eq!(rows.iter().find(|row| row["subject"] == session.as_str()).unwrap()["extra"], 5000);
        for (path, status) in
            [("/endmark/nothing", 404), ("/endmark/runs/none", 404), ("/endmark/usage?by=x", 400)]
        {
            assert_eq!(Request::get(served.address, path).send().await.read().await.status, status, "{path}");
        }
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

#[test]
fn a_browser_logs_in_once_with_the_admin_key() {
    in_runtime(async {
        let place = TestFolder::new().with_file("endmark.toml", format!("admin_key = \"{ADMIN_KEY}\"\n"));
        let served = ServeProcess::start(&place, &["--upstream", "http://127.0.0.1:9/v1"]);
        let reply = Request::get(served.address, "/endmark/").send().await.read().await;
        assert_eq!((reply.status, reply.header("location")), (303, Some("/endmark/login")));
        assert!(fetch_page(served.address, "/endmark/login").await.contains("type=\"password\""));
        let log_in = |key: &str| Request::post(served.address, "/endmark/login").body(format!("key={key}"));
        assert_eq!(log_in("wrong").send().await.read().await.status, 401);
        let reply = log_in(&ADMIN_KEY.replace(' ', "+")).send().await.read().await;
        assert_eq!(reply.status, 303);
        let cookie = reply.header("set-cookie").unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap();
        for path in ["/endmark/", "/endmark/api/usage"] {
            let request = Request::get(served.address, path).header("cookie", cookie);
            assert_eq!(request.send().await.read().await.status, 200, "{path}");
        }
        served.kill();
    });
}

#[test]
fn a_session_page_shows_usage_summaries_and_capped_outputs() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT)).await;
        let config = "[cap]\nmax_chars = 4000\n[compact.window]\nenabled = true\ntrigger_tokens = 6000\nbudget_tokens = 8000\n";
        let place = TestFolder::new().with_file("endmark.toml", config);
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        let mut messages = vec![json!({"role": "user", "content": "Look at each of the orders."})];
        for order in 0..12 {
            let call = json!({"id": format!("call_{order}"), "type": "function",
                "function": {"name": "look", "arguments": format!("{{\"order\":{order}}}")}});
            let lines = (0..200).map(|line| format!("order {order}, line {line}: all of it agrees"));
            let result = lines.collect::<Vec<_>>().join("\n");
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages
                .push(json!({"role": "tool", "tool_call_id": format!("call_{order}"), "content": result}));
        }
        let body = json!({"model": "gpt-5", "max_tokens": 100, "messages": messages});
        let reply =
            Request::post(served.address, "/v1/chat/completions").json(&body).send().await.read().await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        ask(&served, "gpt-5", 500).await;
        let session = reply.header("x-endmark-session").unwrap_or_default().to_owned();

        let usage = {
            let mut tries = 0;
            loop {
                let usage = place.run(&["usage", "--by", "session", "--json"]).envelope()["data"].clone();
                if usage["rows"].as_array().unwrap().len() == 2 {
                    break usage;
                }
                tries += 1;
                assert!(tries < 100, "{usage}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let rows = usage["rows"].as_array().unwrap();
        let (_, compactions) = get(served.address, "/endmark/api/compactions").await;
        let of = compactions["rows"][0]["session"].as_str().unwrap();
        assert!(session.is_empty() || session == of, "{session} {compactions}");
        let mut expected = rows.iter().find(|row| row["session"] == of).unwrap().clone();
        expected.as_object_mut().unwrap().remove("session");

        let (status, shown) = get(served.address, &format!("/endmark/api/sessions/{of}")).await;
        assert_eq!((status, &shown["usage"]["total"]), (200, &expected), "{shown}");
        assert_eq!(shown["compactions"], compactions["rows"]);
        let dropped = &shown["compactions"][0]["dropped"];
        assert!(
            dropped["turns"].as_u64() > Some(1) && dropped["tool_results"].as_u64() > Some(0),
            "{dropped}"
        );
        let outputs = shown["outputs"].as_array().unwrap();
        assert_eq!((outputs.len(), &shown["runs"]), (12, &json!([])), "{outputs:?}");

        let html = fetch_page(served.address, &format!("/endmark/sessions/{of}")).await;
        let prompt_tokens = expected["prompt_tokens"].to_string();
        let without_commas = html.replace(',', "");
        assert!(without_commas.contains(&format!(">{prompt_tokens}<")), "{prompt_tokens}: {html}");
        assert!(html.contains("Before turn"), "{html}");
        assert!(html.contains(&format!("{} tool_results", dropped["tool_results"])), "{html}");
        let kept = format!("/endmark/outputs/{}", outputs[0]["handle"].as_str().unwrap());
        assert!(html.contains(&kept) && fetch_page(served.address, &kept).await.contains("all of it agrees"));
        assert!(
            fetch_page(served.address, "/endmark/usage?by=session")
                .await
                .contains(&format!("/endmark/sessions/{of}"))
        );

        let other =
            rows.iter().find(|row| row["session"] != of).unwrap()["session"].as_str().unwrap().to_owned();
        let (status, shown) = get(served.address, &format!("/endmark/api/sessions/{other}")).await;
        assert_eq!((status, &shown["compactions"], &shown["outputs"]), (200, &json!([]), &json!([])));
        assert_eq!(get(served.address, "/endmark/api/sessions/nobody").await.0, 404);
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}
