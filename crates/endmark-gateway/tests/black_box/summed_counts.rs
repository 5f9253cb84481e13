//! Provider-specific token counts, which are also summed over all calls of a reply.

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const MESSAGES: Wire = Wire::Other(ModelFormat::Messages);
const GEMINI: Wire = Wire::Other(ModelFormat::Gemini);

fn field(wire: Wire) -> &'static str {
    if wire == GEMINI { "usageMetadata" } else { "usage" }
}

/// Returns the usage of a reply whose two calls reported these counts, and the reply as text.
async fn counted_reply(wire: Wire, first: &Value, rest: &Value) -> (Value, String) {
    let mut cut = wire.whole_reply(&[ReplyPart::Text("The harbour was")], wire.finish_reason(End::Limit));
    cut[field(wire)] = first.clone();
    let mut end = wire.whole_reply(&[ReplyPart::Text(" quiet.")], wire.finish_reason(End::Turn));
    end[field(wire)] = rest.clone();
    let script = Script::new().then(Answer::json(200, &cut)).default_answer(Answer::json(200, &end));
    let endmark = Endmark::start_resuming(script).await;
    let (reply, heard) = wire.ask(&endmark, &wire.request(false), false).await;
    assert_eq!(heard.text, "The harbour was quiet.", "{}", reply.text());
    (reply.json()[field(wire)].clone(), reply.text())
}

#[tokio::test]
async fn cache_writes_are_summed_by_lifetime() {
    let usage = |short: u64, long: u64| {
        json!({
            "input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 0, "cache_creation_input_tokens": short + long,
            "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
            "server_tool_use": {"web_search_requests": 1}, "service_tier": "standard", "inference_geo": null,
        })
    };
    let (sum, _) = counted_reply(MESSAGES, &usage(100, 20), &usage(3, 4)).await;
    let mut expected = usage(103, 24);
    expected["input_tokens"] = json!(10);
    expected["output_tokens"] = json!(14);
    expected["server_tool_use"]["web_search_requests"] = json!(2);
    assert_eq!(sum, expected);
    // The sum is complete even if the first call did not report these counts.
    let bare = json!({"input_tokens": 5, "output_tokens": 7});
    let (sum, _) = counted_reply(MESSAGES, &bare, &usage(3, 4)).await;
    assert_eq!(sum["cache_creation"], usage(3, 4)["cache_creation"], "{sum}");
    assert_eq!(sum["cache_creation_input_tokens"], 7);
}

/// A stream reports its prompt tokens in the first event.
#[tokio::test]
async fn counts_from_the_start_of_a_stream_are_in_the_sum() {
    let creation = |short: u64| json!({"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": 0});
    let stream = |text: &str, end, short: u64| {
        let frames = MESSAGES.frames(&[ReplyPart::Text(text)], Some(end)).into_iter().map(|frame| {
            let usage = json!({"input_tokens": 5, "cache_creation_input_tokens": short, "cache_read_input_tokens": 0,
                "cache_creation": creation(short), "output_tokens": 1});
            let own = r#""usage":{"input_tokens":5,"output_tokens":7}"#;
            frame.replace(own, &format!("\"usage\":{usage}"))
        });
        Answer::sse(frames.collect::<Vec<_>>())
    };
    let script = Script::new().then(stream("The harbour was", End::Limit, 100)).default_answer(stream(
        " quiet.",
        End::Turn,
        3,
    ));
    let endmark = Endmark::start_resuming(script).await;
    let (reply, _) = MESSAGES.ask(&endmark, &MESSAGES.request(true), true).await;
    let delta = reply.json_events().into_iter().find(|event| event["type"] == "message_delta");
    let usage = delta.unwrap_or_default()["usage"].clone();
    assert_eq!(usage["cache_creation_input_tokens"], 103, "{}", reply.text());
    assert_eq!(usage["cache_creation"], creation(103), "{}", reply.text());
}

#[tokio::test]
async fn costs_are_summed_exactly() {
    for (first, rest, sum) in [
        ("0.1", "0.2", "0.3"),
        ("0.00014", "1.2e-05", "0.000152"),
        ("0", "0.0000000001", "0.0000000001"),
        ("3", "0.25", "3.25"),
    ] {
        let usage = |cost: &str| {
            let cost: Value = serde_json::from_str(cost).unwrap_or_default();
            json!({
                "prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12, "cost": cost, "is_byok": false,
                "completion_tokens_details": {"reasoning_tokens": 1, "image_tokens": 2},
                "cost_details": {"upstream_inference_cost": null, "upstream_inference_prompt_cost": cost},
                "tokens_per_second": 17.5,
            })
        };
        let (counted, written) = counted_reply(Wire::Chat, &usage(first), &usage(rest)).await;
        // The sum is decimal, without the digits of a binary fraction.
        assert!(written.contains(&format!("\"cost\":{sum},")), "{written}");
        let details = &counted["cost_details"];
        assert_eq!(details["upstream_inference_prompt_cost"], counted["cost"], "{counted}");
        assert_eq!(details["upstream_inference_cost"], Value::Null, "{counted}");
        assert_eq!(
            counted["completion_tokens_details"],
            json!({"reasoning_tokens": 2, "image_tokens": 4}),
            "{counted}"
        );
        // A rate is not a count, so it is not summed.
        assert_eq!(counted["tokens_per_second"], 17.5, "{counted}");
    }
}

#[tokio::test]
async fn tokens_are_summed_by_kind() {
    let usage = |text: u64, further: Value| {
        let mut kinds = vec![json!({"modality": "TEXT", "tokenCount": text})];
        kinds.push(further);
        json!({"promptTokenCount": 20, "candidatesTokenCount": 7, "totalTokenCount": 27, "toolUsePromptTokenCount": 0,
            "promptTokensDetails": kinds, "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 7}]})
    };
    let image = json!({"modality": "IMAGE", "tokenCount": 15});
    let audio = json!({"modality": "AUDIO", "tokenCount": 12});
    let (sum, _) = counted_reply(GEMINI, &usage(5, image.clone()), &usage(8, audio.clone())).await;
    assert_eq!(
        sum["promptTokensDetails"],
        json!([{"modality": "TEXT", "tokenCount": 13}, image, audio]),
        "{sum}"
    );
    assert_eq!(sum["candidatesTokensDetails"], json!([{"modality": "TEXT", "tokenCount": 14}]), "{sum}");
    assert_eq!((&sum["promptTokenCount"], &sum["candidatesTokenCount"]), (&json!(40), &json!(14)), "{sum}");
}
