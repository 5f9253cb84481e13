//! `report`: the ledger of a week, as text and as JSON.

use serde_json::json;
use testkit::{ModelFormat, ModelFormatAdapter, PrefillBehaviour, Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const TEXT: &str = "one two three four five six seven eight nine ten";

#[test]
fn reports_without_data_give_advice() {
    let place = TestFolder::new();
    let run = place.run(&["report"]);
    assert_eq!(run.code, 4);
    assert!(run.errors.contains("start `endmark serve`"), "{}", run.errors);
    let served = ServeProcess::start(&place, &["--upstream", "http://127.0.0.1:9/v1"]);
    assert_eq!(served.stop("-TERM").0, Some(0));
    let run = place.run(&["report", "--since", "12h"]);
    assert_eq!(run.code, 0);
    assert!(run.output.contains("last 12h") && run.output.contains("resume.mode=warn"), "{}", run.output);
    let run = place.run(&["report", "--since", "soon"]);
    assert_eq!(run.code, 2);
    assert!(run.errors.contains("as in `7d`"), "{}", run.errors);
}

#[test]
fn detected_and_resumed_cuts_are_counted_separately() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let place = TestFolder::new().with_file("endmark.toml", "[prices.m]\ninput = 1\noutput = 2\n");
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        for (mode, limit) in [("warn", 3), ("warn", 4), ("on", 5), ("on", 500)] {
            let body = json!({"model": "m", "max_tokens": limit, "messages": [{"role": "user", "content": "Count."}]});
            let request =
                Request::post(served.address, "/v1/chat/completions").header("x-endmark-resume", mode);
            request.json(&body).send().await.read().await;
        }
        assert_eq!(served.stop("-TERM").0, Some(0));
        let data = place.run(&["report", "--json"]).envelope()["data"].clone();
        assert_eq!((&data["requests"], &data["replies"], &data["cut"]), (&json!(4), &json!(4), &json!(3)));
        let of = |outcome: &str| {
            let cuts = data["cuts"].as_array().unwrap();
            cuts.iter().find(|cut| cut["outcome"] == outcome).map(|cut| cut["replies"].clone())
        };
        assert_eq!((of("cut"), of("resumed")), (Some(json!(2)), Some(json!(1))));
        assert_eq!(data["would_cost"]["replies"], 2);
        assert_eq!(data["would_cost"]["output_tokens_at_most"], 2 * 4_096);
        assert!(
            data["would_cost"]["prompt_tokens"].as_u64() > Some(7),
            "prompt and reply are sent again: {data}"
        );
        let spent = &data["spent"];
        let count = |name: &str| spent[name].as_u64().unwrap();
        assert!(count("calls") >= 1 && count("output_tokens") > 0, "{spent}");
        let usd = format!("0.{:09}", 1_000 * count("prompt_tokens") + 2_000 * count("output_tokens"));
        assert_eq!(
            (&spent["usd"], &spent["usd_at_least"], count("unpriced_calls")),
            (&json!(usd), &json!(usd), 0)
        );
        let text = place.run(&["report"]).output;
        let in_dollars = format!("In US dollars: {}.", &usd[..8]);
        for words in [
            &in_dollars,
            "4 replies checked",
            "3 were cut (75.0 %)",
            "Spent on recovery",
            "the other 2 cut replies",
            "Estimated",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
    });
}

#[test]
fn cut_and_resumed_replies_are_counted_in_every_format() {
    in_runtime(async {
        for dialect in ModelFormat::ALL {
            let model = ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes);
            let upstream = Upstream::start(ModelFormatAdapter::new(dialect, model)).await;
            let place = TestFolder::new();
            let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
            for (mode, limit, stream) in
                [("warn", 3, false), ("warn", 4, true), ("on", 5, false), ("on", 5, true), ("on", 500, true)]
            {
                let request =
                    Request::post(served.address, dialect.path(stream)).header("x-endmark-resume", mode);
                request.json(&dialect.request(limit, stream)).send().await.read().await;
            }
            assert_eq!(served.stop("-TERM").0, Some(0));
            let data = place.run(&["report", "--json"]).envelope()["data"].clone();
            let counted = (&data["requests"], &data["replies"], &data["cut"]);
            assert_eq!(counted, (&json!(5), &json!(5), &json!(4)), "{dialect:?}: {data}");
            let of = |outcome: &str| -> u64 {
                let cuts = data["cuts"].as_array().into_iter().flatten();
                cuts.filter(|cut| cut["outcome"] == outcome).filter_map(|cut| cut["replies"].as_u64()).sum()
            };
            assert_eq!((of("cut"), of("resumed")), (2, 2), "{dialect:?}: {data}");
            assert_eq!(data["would_cost"]["replies"], 2, "{dialect:?}: {data}");
            let spent = &data["spent"];
            assert!(spent["output_tokens"].as_u64() > Some(0), "{dialect:?}: {data}");
            // The scripted model has no price.
            assert_eq!(
                (&spent["unpriced_calls"], &spent["usd"]),
                (&spent["calls"], &json!(null)),
                "{dialect:?}"
            );
            let text = place.run(&["report"]).output;
            assert!(text.contains("In US dollars: no price."), "{text}");
        }
    });
}
