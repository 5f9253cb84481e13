//! `usage`: tokens and costs of calls, as reported by the upstream.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Answer, ModelFormat, ModelFormatAdapter, PrefillBehaviour, Request, Script, ScriptedModel, Upstream,
    chat_reply,
};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const TEXT: &str = "one two three four five six seven eight nine ten";

async fn ask(served: &ServeProcess, model: &str, mode: &str, limit: u32) -> Value {
    let body =
        json!({"model": model, "max_tokens": limit, "messages": [{"role": "user", "content": "Count."}]});
    let request = Request::post(served.address, "/v1/chat/completions").header("x-endmark-resume", mode);
    let reply = request.json(&body).send().await.read().await;
    reply.json()["usage"].clone()
}

pub(crate) fn usage_row<'a>(data: &'a Value, by: &str, key: &str) -> &'a Value {
    let rows = data["rows"].as_array().unwrap();
    rows.iter().find(|row| row[by] == key).unwrap_or_else(|| panic!("no {by} {key} in {data}"))
}

#[test]
fn tokens_and_dollars_match_the_upstream_and_the_price_table() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let prices = "[prices.\"my-*\"]\ninput = 1.0\noutput = 1000000\n";
        let place = TestFolder::new().with_file("endmark.toml", prices);
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        let mut known = (0, 0);
        for (model, mode, limit) in
            [("gpt-5-2025-08-07", "on", 4), ("gpt-5-2025-08-07", "warn", 3), ("nobody", "auto", 500)]
        {
            let usage = ask(&served, model, mode, limit).await;
            if model != "nobody" {
                known.0 += usage["prompt_tokens"].as_u64().unwrap();
                known.1 += usage["completion_tokens"].as_u64().unwrap();
            }
        }
        let own = ask(&served, "my-model", "auto", 500).await;
        assert_eq!(served.stop("-TERM").0, Some(0));

        let data = place.run(&["usage", "--json"]).envelope()["data"].clone();
        let of_table = usage_row(&data, "model", "gpt-5-2025-08-07");
        assert_eq!(
            (&of_table["prompt_tokens"], &of_table["completion_tokens"]),
            (&json!(known.0), &json!(known.1))
        );
        assert!(
            of_table["calls"].as_u64() >= Some(3),
            "the rest was asked for in a call of its own: {of_table}"
        );
        // $1.25 and $10 per million tokens.
        let nano = known.0 * 1_250 + known.1 * 10_000;
        assert_eq!(of_table["usd"], json!(format!("0.{nano:09}")));
        let unknown = usage_row(&data, "model", "nobody");
        assert_eq!((&unknown["usd"], &unknown["unpriced_calls"]), (&Value::Null, &json!(1)));
        // The user's own prices: $1 and $1,000,000 per million tokens, so each output token costs a dollar.
        let dollars = own["completion_tokens"].as_u64().unwrap();
        let mine = usage_row(&data, "model", "my-model");
        assert!(mine["usd"].as_str().unwrap().starts_with(&format!("{dollars}.")), "{mine}");
        // If one price is missing, no sum is given.
        assert_eq!((&data["total"]["usd"], &data["total"]["unpriced_calls"]), (&Value::Null, &json!(1)));
        assert!(data["total"]["usd_at_least"].as_str().unwrap().starts_with(&format!("{dollars}.")));

        let data = place.run(&["usage", "--by", "purpose", "--json"]).envelope()["data"].clone();
        assert_eq!(usage_row(&data, "purpose", "reply")["calls"], 4);
        assert!(usage_row(&data, "purpose", "resume")["completion_tokens"].as_u64() > Some(0));
        let text = place.run(&["usage"]).output;
        for words in [
            "MODEL",
            "gpt-5-2025-08-07",
            "no price",
            "total",
            " + 1 call without a price",
            "[prices.\"NAME\"]",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
        let csv = place.run(&["usage", "--csv", "--since", "1h"]).output;
        assert_eq!(csv.lines().count(), 4);
        assert!(csv.starts_with("model,calls,prompt_tokens,") && csv.contains("\r\nnobody,1,"), "{csv}");
        let later = place.run(&["usage", "--until", "2020-01-01"]);
        assert!(later.code == 0 && later.output.contains("No call was recorded"), "{}", later.output);
    });
}

#[test]
fn calls_of_every_format_have_equal_counts() {
    in_runtime(async {
        for dialect in ModelFormat::ALL {
            let upstream = Upstream::start(ModelFormatAdapter::new(dialect, ScriptedModel::new(TEXT))).await;
            let place = TestFolder::new();
            let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
            for stream in [false, true] {
                let request = Request::post(served.address, dialect.path(stream));
                request.json(&dialect.request(500, stream)).send().await.read().await;
            }
            assert_eq!(served.stop("-TERM").0, Some(0));
            let data = place.run(&["usage", "--by", "upstream", "--json"]).envelope()["data"].clone();
            assert_eq!(
                (&data["total"]["calls"], &data["total"]["estimated_calls"]),
                (&json!(2), &json!(0)),
                "{data}"
            );
            assert!(data["total"]["completion_tokens"].as_u64() >= Some(20), "{dialect:?}: {data}");
        }
    });
}

#[test]
fn an_impossible_query_is_refused_with_advice() {
    let place = TestFolder::new();
    let run = place.run(&["usage"]);
    assert!(run.code == 4 && run.errors.contains("start `endmark serve`"), "{}", run.errors);
    let served = ServeProcess::start(&place, &["--upstream", "http://127.0.0.1:9/v1"]);
    assert_eq!(served.stop("-TERM").0, Some(0));
    for (arguments, words) in [
        (&["usage", "--since", "soon"][..], "--since 7d"),
        (&["usage", "--since", "2026-02-30"], "2026-02-30"),
        (&["usage", "--by", "colour"], "possible values"),
    ] {
        let run = place.run(arguments);
        assert!(run.code == 2 && run.errors.contains(words), "{words} in {}", run.errors);
    }
    for (toml, words) in [
        ("[prices.\"m\"]\ninput = -1.0\noutput = 1\n", "dollars per million tokens"),
        ("[prices.\"m\"]\ninput = 1\noutput = -1.0\n", "prices.m.output"),
        ("[prices.\"gpt-4.1\"]\ninput = 1.0\n", "set together with `output`"),
        ("[prices.\"m\"]\ninputs = 1.0\n", "Did you mean `input` in `[prices.m]`"),
    ] {
        let place = TestFolder::new().with_file("endmark.toml", toml);
        let run = place.run(&["config", "check"]);
        assert_eq!(run.code, 2, "{}", run.errors);
        assert!(run.errors.contains(words), "{words} in {}", run.errors);
    }
}

#[test]
fn sums_during_operation_equal_the_sum_of_the_calls() {
    let sql = |place: &TestFolder, statement: &str| {
        let run = Command::new("sqlite3").arg(place.store()).arg(statement).output().unwrap();
        assert!(run.status.success(), "{run:?}");
        String::from_utf8(run.stdout).unwrap().trim().to_owned()
    };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let place = TestFolder::new();
        let arguments = ["--upstream".to_owned(), upstream.base_url()];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let served = ServeProcess::start(&place, &arguments);
        for (model, limit) in [("gpt-5", 4), ("gpt-5", 500), ("nobody", 500)] {
            ask(&served, model, "on", limit).await;
        }
        let usage_report = || {
            let by = |by| place.run(&["usage", "--by", by, "--json"]).envelope()["data"].clone();
            let report = place.run(&["report", "--json"]).envelope()["data"].clone();
            [by("model"), by("session"), by("key"), by("day"), by("purpose"), report]
        };
        let until = async |statement: &str, expected: &str| {
            for _ in 0..600 {
                if sql(&place, statement) == expected {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            panic!("{statement} does not become {expected}");
        };
        until("SELECT count(*) FROM usage", "4").await;
        let before = usage_report();
        assert_eq!(
            (&before[0]["total"]["calls"], &before[5]["requests"]),
            (&json!(4), &json!(3)),
            "{before:?}"
        );
        until("SELECT count(*) FROM usage WHERE is_summed = 0", "0").await;
        assert_eq!(usage_report(), before);
        let sound = place.run(&["doctor"]).output;
        assert!(sound.contains("budgets and sums are consistent"), "{sound}");
        assert_eq!(served.stop("-TERM").0, Some(0));

        sql(
            &place,
            "UPDATE usage_sums SET prompt = prompt + 1000 WHERE grain = 10 AND dimension = 'session'",
        );
        let doctor = place.run(&["doctor"]);
        assert!(doctor.output.contains("differ from the calls of that day"), "{}", doctor.output);
        sql(&place, "DELETE FROM usage_sums; DELETE FROM cut_sums; UPDATE usage SET is_summed = 0;");
        assert_eq!(usage_report(), before, "as the doctor says");
    });
}

/// The models of [`specially_billed_replies`].
pub(crate) const SPECIALLY_BILLED_MODELS: [&str; 6] =
    ["gpt-5", "gpt-5", "gpt-5", "gemini-2.5-flash", "gemini-2.5-flash", "mine"];

/// Returns a script whose replies contain service tiers, audio and searches.
pub(crate) fn specially_billed_replies() -> Script {
    let reply = |model: &str, usage: Value, tier: &str| {
        let mut reply = chat_reply(TEXT, "stop", (1_000, 20));
        (reply["model"], reply["service_tier"]) = (json!(model), json!(tier));
        reply["usage"].as_object_mut().unwrap().extend(usage.as_object().unwrap().clone());
        Answer::json(200, &reply)
    };
    let audio = json!({"prompt_tokens_details": {"audio_tokens": 500}});
    let search = json!({"server_tool_use": {"web_search_requests": 3}});
    Script::new()
        .then(reply("gpt-5", json!({}), "default"))
        .then(reply("gpt-5", json!({}), "flex"))
        .then(reply("gpt-5", json!({}), "priority"))
        .then(reply("gemini-2.5-flash", audio, "default"))
        .then(reply("gemini-2.5-flash", search.clone(), "default"))
        .then(reply("mine", search, "default"))
}

#[test]
fn tiers_audio_and_searches_are_priced_in_the_sums() {
    in_runtime(async {
        let upstream = Upstream::start(specially_billed_replies()).await;
        let prices = "[prices.mine]\ninput = 1\noutput = 0\n";
        let place = TestFolder::new().with_file("endmark.toml", prices);
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        for model in SPECIALLY_BILLED_MODELS {
            ask(&served, model, "auto", 500).await;
        }
        assert_eq!(served.stop("-TERM").0, Some(0));
        let data = place.run(&["usage", "--json"]).envelope()["data"].clone();
        // $0.00145 at the standard price, half of it for flex, double for priority.
        assert_eq!(usage_row(&data, "model", "gpt-5")["usd"], "0.005075000");
        // 500 tokens at $0.30 and 500 audio tokens at $1; 1,000 tokens at $0.30 and three searches at $35 per
        // 1,000; replies at $2.50.
        assert_eq!(usage_row(&data, "model", "gemini-2.5-flash")["usd"], "0.106050000");
        let mine = usage_row(&data, "model", "mine");
        assert_eq!(
            (&mine["usd"], &mine["unpriced_calls"]),
            (&Value::Null, &json!(1)),
            "no price of a search"
        );
        let of_day = place.run(&["usage", "--by", "day", "--json"]).envelope()["data"].clone();
        assert_eq!(of_day["total"], data["total"]);
    });
}
