//! Token counts in the forms that real servers report: the ledger's rows, and which values are estimates.

use std::sync::Arc;

use endmark_context::count::{Family, TextTally};
use endmark_context::{Model, Models, Prices, Rates};
use endmark_gateway::ResumeMode;
use endmark_store::{CallSums, classify};
use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const MESSAGES: Wire = Wire::Other(ModelFormat::Messages);
const GEMINI: Wire = Wire::Other(ModelFormat::Gemini);
const TEXT: &str = "The harbour was quiet, and all of the boats had come in before the storm.";

/// Estimates the tokens of text from an unknown model.
fn estimate_tokens(text: &str) -> u64 {
    TextTally::of(text).tokens(Family::of("m"))
}

/// Returns the ledger's sums for a single call with this answer.
async fn ledger_sums(wire: Wire, answer: Answer, stream: bool, mode: ResumeMode) -> CallSums {
    let endmark =
        Endmark::start_with(Script::new().then(answer), |settings| settings.resume.mode = mode).await;
    wire.ask(&endmark, &wire.request(stream), stream).await;
    classify(&endmark.only_row().await).1
}

/// Returns a Chat stream with this usage at the position that `place` chooses.
fn chat_stream_with_usage(usage: &Value, place: impl Fn(Vec<String>, &Value) -> Vec<String>) -> Answer {
    Answer::sse(place(Wire::Chat.frames(&[ReplyPart::Text(TEXT)], Some(End::Turn)), usage))
}

fn usage_chunk(usage: &Value) -> String {
    format!(
        "data: {}\n\n",
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage})
    )
}

#[tokio::test]
async fn vendor_specific_chat_counts_are_read() {
    let plain = json!({"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70});
    let in_choice = |frames: Vec<String>, usage: &Value| {
        let with = format!("\"finish_reason\":\"stop\",\"usage\":{usage}");
        frames.into_iter().map(|frame| frame.replace("\"finish_reason\":\"stop\"", &with)).collect()
    };
    let in_groq = |frames: Vec<String>, usage: &Value| {
        let with = format!("\"x_groq\":{{\"usage\":{usage}}},\"choices\":[{{");
        frames.into_iter().map(|frame| frame.replace("\"choices\":[{", &with)).collect()
    };
    let before_done = |mut frames: Vec<String>, usage: &Value| {
        frames.insert(frames.len() - 1, usage_chunk(usage));
        frames
    };
    let behind_done = |mut frames: Vec<String>, usage: &Value| {
        frames.push(usage_chunk(usage));
        frames
    };
    let answers = [
        chat_stream_with_usage(&plain, in_choice),
        chat_stream_with_usage(&plain, in_groq),
        chat_stream_with_usage(&plain, before_done),
        chat_stream_with_usage(&plain, behind_done),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let sent = String::from_utf8(answer.body()).unwrap();
        let endmark = Endmark::start(Script::new().then(answer)).await;
        let mut request = Wire::Chat.request(true);
        request["stream_options"] = json!({"include_usage": true});
        let (reply, _) = Wire::Chat.ask(&endmark, &request, true).await;
        assert_eq!(reply.text(), sent, "{number}");
        let sums = classify(&endmark.only_row().await).1;
        assert_eq!((sums.prompt, sums.completion, sums.estimated), (50, 20, 0), "{number}");
    }
}

#[tokio::test]
async fn counts_outside_their_total_are_added_to_it() {
    // Each case: the reported usage; then prompt, cached, written to the cache, completion and reasoning.
    for (usage, expected) in [
        // xAI does not include reasoning in the completion.
        (
            json!({"prompt_tokens": 10_000, "completion_tokens": 1_500, "total_tokens": 14_300,
                "completion_tokens_details": {"reasoning_tokens": 2_800}}),
            [10_000, 0, 0, 4_300, 2_800],
        ),
        (
            json!({"prompt_tokens": 10, "completion_tokens": 300, "total_tokens": 510,
                "completion_tokens_details": {"reasoning_tokens": 200}}),
            [10, 0, 0, 500, 200],
        ),
        // OpenAI includes reasoning in the completion.
        (
            json!({"prompt_tokens": 10, "completion_tokens": 300, "total_tokens": 310,
                "completion_tokens_details": {"reasoning_tokens": 200}}),
            [10, 0, 0, 300, 200],
        ),
        // Google's Chat endpoint includes thoughts only in the total.
        (json!({"prompt_tokens": 9, "completion_tokens": 23, "total_tokens": 334}), [9, 0, 0, 325, 0]),
        // Moonshot reports `cached_tokens` at the top level.
        (
            json!({"prompt_tokens": 19, "completion_tokens": 13, "total_tokens": 32, "cached_tokens": 12}),
            [19, 12, 0, 13, 0],
        ),
        // LiteLLM reports Anthropic's cached tokens either inside or outside the prompt.
        (
            json!({"prompt_tokens": 2_130, "completion_tokens": 8, "total_tokens": 2_138,
                "cache_creation_input_tokens": 100, "cache_read_input_tokens": 2_000}),
            [2_130, 2_000, 100, 8, 0],
        ),
        (
            json!({"prompt_tokens": 30, "completion_tokens": 8, "total_tokens": 38,
                "cache_creation_input_tokens": 100, "cache_read_input_tokens": 2_000}),
            [2_130, 2_000, 100, 8, 0],
        ),
    ] {
        let mut reply = Wire::Chat.whole_reply(&[ReplyPart::Text(TEXT)], "stop");
        reply["usage"] = usage.clone();
        let sums = ledger_sums(Wire::Chat, Answer::json(200, &reply), false, ResumeMode::Auto).await;
        let read = [sums.prompt, sums.cached, sums.cache_write, sums.completion, sums.reasoning];
        assert_eq!((read, sums.estimated), (expected, 0), "{usage}");
    }
}

#[tokio::test]
async fn counts_that_contradict_the_total_are_estimates() {
    const RESPONSES: Wire = Wire::Other(ModelFormat::Responses);
    // Each case: the reported usage; then the completion, and 1 if it is an estimate.
    for (wire, place, usage, expected) in [
        (GEMINI, "usageMetadata", json!({"promptTokenCount": 300, "totalTokenCount": 1_555}), (1_255, 1)),
        (
            GEMINI,
            "usageMetadata",
            json!({"promptTokenCount": 300, "candidatesTokenCount": 200, "totalTokenCount": 1_555}),
            (1_255, 1),
        ),
        (
            GEMINI,
            "usageMetadata",
            json!({"promptTokenCount": 300, "thoughtsTokenCount": 50, "totalTokenCount": 1_555}),
            (1_255, 1),
        ),
        (
            Wire::Chat,
            "usage",
            json!({"prompt_tokens": 300, "completion_tokens": 200, "total_tokens": 1_000,
                "completion_tokens_details": {"reasoning_tokens": 0}}),
            (700, 1),
        ),
        (
            Wire::Chat,
            "usage",
            json!({"prompt_tokens": 300, "completion_tokens": 200, "total_tokens": 1_000,
                "completion_tokens_details": {"reasoning_tokens": 450}}),
            (700, 1),
        ),
        // The total is smaller than the parts, so the larger figure counts.
        (
            Wire::Chat,
            "usage",
            json!({"prompt_tokens": 300, "completion_tokens": 200, "total_tokens": 400}),
            (200, 1),
        ),
        // In Responses, too, xAI does not include reasoning in the output. The total equals the sum of all
        // three.
        (
            RESPONSES,
            "usage",
            json!({"input_tokens": 300, "output_tokens": 100, "total_tokens": 700,
                "output_tokens_details": {"reasoning_tokens": 300}}),
            (400, 0),
        ),
    ] {
        let ended = if wire == GEMINI {
            "STOP"
        } else if wire == RESPONSES {
            "completed"
        } else {
            "stop"
        };
        let mut reply = wire.whole_reply(&[ReplyPart::Text(TEXT)], ended);
        reply[place] = usage.clone();
        let sums = ledger_sums(wire, Answer::json(200, &reply), false, ResumeMode::Auto).await;
        assert_eq!((sums.prompt, (sums.completion, sums.estimated)), (300, expected), "{usage}");
    }
}

#[tokio::test]
async fn zero_counts_do_not_erase_earlier_counts() {
    let plain = json!({"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70});
    let zeros = json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
    let answer = chat_stream_with_usage(&plain, |mut frames, usage| {
        let at = frames.len() - 1;
        frames.splice(at..at, [usage_chunk(usage), usage_chunk(&zeros)]);
        frames
    });
    let sums = ledger_sums(Wire::Chat, answer, true, ResumeMode::Auto).await;
    assert_eq!((sums.prompt, sums.completion, sums.estimated), (50, 20, 0));
}

#[tokio::test]
async fn a_count_before_the_end_of_a_reply_is_an_estimate() {
    let estimate = estimate_tokens(TEXT);
    // A broken Messages stream has only the count from its first event.
    for mode in [ResumeMode::Warn, ResumeMode::Off] {
        let answer = Answer::sse(MESSAGES.frames(&[ReplyPart::Text(TEXT)], None));
        let sums = ledger_sums(MESSAGES, answer, true, mode).await;
        assert_eq!((sums.prompt, sums.completion, sums.estimated), (5, estimate, 1), "{mode:?}");
    }
    // A complete stream may lack its usage.
    let frames = MESSAGES.frames(&[ReplyPart::Text(TEXT)], Some(End::Turn)).into_iter().map(|frame| {
        if !frame.contains("message_delta") {
            return frame;
        }
        let bare = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
        format!("event: message_delta\ndata: {bare}\n\n")
    });
    let no_usage =
        ledger_sums(MESSAGES, Answer::sse(frames.collect::<Vec<_>>()), true, ResumeMode::Auto).await;
    assert_eq!((no_usage.prompt, no_usage.completion, no_usage.estimated), (5, estimate, 1));
    // Gemini may count only the prompt.
    let mut reply = GEMINI.whole_reply(&[ReplyPart::Text(TEXT)], "STOP");
    reply["usageMetadata"] = json!({"promptTokenCount": 9, "totalTokenCount": 9});
    for (answer, stream) in
        [(Answer::json(200, &reply), false), (Answer::sse([format!("data: {reply}\n\n")]), true)]
    {
        let sums = ledger_sums(GEMINI, answer, stream, ResumeMode::Auto).await;
        assert_eq!((sums.prompt, sums.completion, sums.estimated), (9, estimate, 1), "{stream}");
    }
}

/// Images and code are output too, although the count is 0. A blocked prompt has no output.
#[tokio::test]
async fn media_without_a_count_are_estimated() {
    let medium = json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}});
    let code = json!({"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}});
    let counts = json!({"promptTokenCount": 9, "totalTokenCount": 9});
    for (part, tokens) in [(medium, 1_000..1_600), (code, 8..40)] {
        let reply = json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]},
            "finishReason": "STOP"}], "usageMetadata": counts});
        for (answer, stream) in
            [(Answer::json(200, &reply), false), (Answer::sse([format!("data: {reply}\n\n")]), true)]
        {
            let sums = ledger_sums(GEMINI, answer, stream, ResumeMode::Auto).await;
            assert_eq!((sums.prompt, sums.estimated), (9, 1), "{stream} {reply}");
            assert!(tokens.contains(&sums.completion), "{stream} {}", sums.completion);
        }
    }
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": counts});
    let sums = ledger_sums(GEMINI, Answer::json(200, &blocked), false, ResumeMode::Auto).await;
    assert_eq!((sums.prompt, sums.completion, sums.estimated), (9, 0, 0));
}

#[tokio::test]
async fn estimates_include_the_reasoning() {
    let thoughts = "Let me think about the harbour. ".repeat(20);
    for name in ["reasoning_content", "reasoning"] {
        let mut frames = Wire::Chat.frames(&[ReplyPart::Text(TEXT)], Some(End::Turn));
        let delta =
            json!({"id": "c", "choices": [{"index": 0, "delta": {name: thoughts}, "finish_reason": null}]});
        frames.insert(0, format!("data: {delta}\n\n"));
        let sums = ledger_sums(Wire::Chat, Answer::sse(frames), true, ResumeMode::Auto).await;
        let expected = estimate_tokens(&format!("{thoughts}{TEXT}"));
        assert_eq!((sums.completion, sums.estimated), (expected, 1), "{name}");
    }
}

/// The client gets the ledger's estimate for a call whose stream broke off.
#[tokio::test]
async fn the_usage_of_a_resumed_reply_estimates_the_broken_part() {
    let first = Answer::sse(Wire::Chat.frames(&[ReplyPart::Text(TEXT)], None));
    let usage = json!({"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70});
    let mut rest = Wire::Chat.whole_reply(&[ReplyPart::Text(" It was late.")], "stop");
    rest["usage"] = usage;
    let script = Script::new().then(first).default_answer(Answer::json(200, &rest));
    let endmark = Endmark::start_resuming(script).await;
    let mut body = Wire::Chat.request(true);
    body["stream_options"] = json!({"include_usage": true});
    let (reply, heard) = Wire::Chat.ask(&endmark, &body, true).await;
    assert_eq!(heard.output_tokens, Some(20 + estimate_tokens(TEXT)), "{}", reply.text());
    assert_eq!(heard.endmark.unwrap()["usage"], "at_least", "{}", reply.text());
}

/// Returns prices in nano-dollars per million tokens.
fn rates(input: u64, output: u64) -> Rates {
    Rates { input: Some(input), output: Some(output), ..Rates::default() }
}

#[tokio::test]
async fn audio_searches_and_tiers_have_their_own_prices() {
    let cost = async |wire: Wire, reply: Value, model: &str| {
        let endmark = Endmark::start_with(Script::new().then(Answer::json(200, &reply)), |settings| {
            let mut models = Models::builtin().clone();
            let audio =
                Rates { input_audio: Some(40_000_000_000), web_search: Some(10_000_000_000), ..rates(0, 0) };
            models.add("heard", Model { prices: Prices::flat(audio), ..Model::default() });
            models.add("plain", Model { prices: Prices::flat(rates(1_000_000_000, 0)), ..Model::default() });
            settings.models = Some(Arc::new(models));
            settings.disclose.always = true;
        })
        .await;
        let mut body = wire.request(false);
        body["model"] = json!(model);
        let (reply, _) = wire.ask(&endmark, &body, false).await;
        reply.header("x-endmark-cost-usd").map(str::to_owned)
    };
    let chat = |model: &str, usage: Value| {
        let mut reply = Wire::Chat.whole_reply(&[ReplyPart::Text(TEXT)], "stop");
        (reply["model"], reply["usage"]) = (json!(model), usage);
        reply
    };
    let heard = json!({"prompt_tokens": 1_000, "completion_tokens": 20, "total_tokens": 1_020,
        "prompt_tokens_details": {"audio_tokens": 500, "cached_tokens": 0}});
    let audio = cost(Wire::Chat, chat("heard", heard), "heard").await;
    assert_eq!(audio.as_deref(), Some("0.020000000"), "500 at $40 a million");
    let plain = json!({"prompt_tokens": 1_000, "completion_tokens": 20, "total_tokens": 1_020});
    let mut message = MESSAGES.whole_reply(&[ReplyPart::Text(TEXT)], "end_turn");
    message["usage"]["server_tool_use"] = json!({"web_search_requests": 3});
    for (model, expected) in [("heard", Some("0.030000000")), ("plain", None)] {
        message["model"] = json!(model);
        // A search without a known price makes the cost unknown.
        assert_eq!(cost(MESSAGES, message.clone(), model).await.as_deref(), expected, "{model}");
    }
    // gpt-5 costs half in the flex tier, and double in the priority tier.
    let mut costs = Vec::new();
    for tier in ["default", "flex", "priority"] {
        let mut reply = chat("gpt-5", plain.clone());
        reply["service_tier"] = json!(tier);
        costs.push(cost(Wire::Chat, reply, "gpt-5").await.unwrap());
    }
    assert_eq!(costs, ["0.001450000", "0.000725000", "0.002900000"]);
}

#[tokio::test]
async fn an_impossible_count_is_replaced_by_an_estimate() {
    let estimate = estimate_tokens(TEXT);
    for tokens in [70_000_000, 1 << 40, u64::MAX] {
        let mut chat = Wire::Chat.whole_reply(&[ReplyPart::Text(TEXT)], "stop");
        chat["usage"] = json!({"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": tokens});
        let mut message = MESSAGES.whole_reply(&[ReplyPart::Text(TEXT)], "end_turn");
        message["usage"] = json!({"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": tokens});
        for (wire, reply) in [(Wire::Chat, chat), (MESSAGES, message)] {
            let sums = ledger_sums(wire, Answer::json(200, &reply), false, ResumeMode::Auto).await;
            assert_eq!((sums.completion, sums.estimated), (estimate, 1), "{wire:?} {tokens}");
            assert!(sums.prompt < 100, "{wire:?} {}", sums.prompt);
        }
    }
    // A provider that works in several steps can use more tokens than one context window.
    let mut reply = Wire::Chat.whole_reply(&[ReplyPart::Text(TEXT)], "stop");
    reply["usage"] = json!({"prompt_tokens": 9_000_000, "completion_tokens": 7, "total_tokens": 9_000_007});
    let sums = ledger_sums(Wire::Chat, Answer::json(200, &reply), false, ResumeMode::Auto).await;
    assert_eq!((sums.prompt, sums.completion, sums.estimated), (9_000_000, 7, 0));
}

#[tokio::test]
async fn a_lone_total_counts_as_prompt_plus_reply() {
    let chat = |usage: Value| {
        let mut reply = Wire::Chat.whole_reply(&[ReplyPart::Text(TEXT)], "stop");
        reply["usage"] = usage;
        Answer::json(200, &reply)
    };
    let mut gemini = GEMINI.whole_reply(&[ReplyPart::Text(TEXT)], "STOP");
    gemini["usageMetadata"] = json!({"totalTokenCount": 7_000});
    for (wire, answer, stream) in [
        (Wire::Chat, chat(json!({"total_tokens": 7_000})), false),
        (
            Wire::Chat,
            self::chat_stream_with_usage(&json!({"total_tokens": 7_000}), |mut frames, usage| {
                frames.insert(frames.len() - 1, usage_chunk(usage));
                frames
            }),
            true,
        ),
        (GEMINI, Answer::json(200, &gemini), false),
    ] {
        for mode in [ResumeMode::Auto, ResumeMode::Off] {
            let sums = ledger_sums(wire, answer.clone(), stream, mode).await;
            assert_eq!(
                (sums.prompt + sums.completion, sums.estimated),
                (7_000, 1),
                "{wire:?} {stream} {mode:?}"
            );
            assert!(sums.completion > 6_000, "hidden reasoning is output");
        }
    }
    // A reported total is not raised to the estimate, even if it is too small.
    let sums = ledger_sums(Wire::Chat, chat(json!({"total_tokens": 3})), false, ResumeMode::Auto).await;
    assert_eq!(sums.prompt + sums.completion, 3);
}

/// Moonshot reports the usage inside the choice.
#[tokio::test]
async fn usage_inside_a_choice_is_summed_over_all_calls() {
    let usage = |completion: u64| json!({"prompt_tokens": 50, "completion_tokens": completion, "total_tokens": 50 + completion});
    for (stream, asks_usage) in [(false, false), (true, false), (true, true)] {
        let answer = |text: &str, end: End, completion: u64| {
            let with = format!(
                "\"finish_reason\":\"{}\",\"usage\":{}",
                Wire::Chat.finish_reason(end),
                usage(completion)
            );
            if stream {
                let word = format!("\"finish_reason\":\"{}\"", Wire::Chat.finish_reason(end));
                let frames = Wire::Chat.frames(&[ReplyPart::Text(text)], Some(end)).into_iter();
                return Answer::sse(frames.map(|frame| frame.replace(&word, &with)));
            }
            let mut reply = Wire::Chat.whole_reply(&[ReplyPart::Text(text)], Wire::Chat.finish_reason(end));
            reply.as_object_mut().unwrap().remove("usage");
            reply["choices"][0]["usage"] = usage(completion);
            Answer::json(200, &reply)
        };
        let script = Script::new()
            .then(answer("The harbour was quiet, and", End::Limit, 100))
            .default_answer(answer(" the boats were in.", End::Turn, 10));
        let endmark = Endmark::start_resuming(script).await;
        let mut request = Wire::Chat.request(stream);
        request["stream_options"] = json!({"include_usage": asks_usage});
        let (reply, heard) = Wire::Chat.ask(&endmark, &request, stream).await;
        let what = format!("{stream} {asks_usage}: {}", reply.text());
        assert_eq!((endmark.calls(), heard.stop.as_deref()), (2, Some("stop")), "{what}");
        let documents = if stream { reply.json_events() } else { vec![reply.json()] };
        let own = documents.iter().map(|document| &document["choices"][0]["usage"]);
        let own: Vec<&Value> = own.filter(|usage| !usage.is_null()).collect();
        assert!(own.iter().all(|usage| usage["completion_tokens"] == 110), "{what}");
        assert!(documents.iter().any(|document| document["usage"]["completion_tokens"] == 110), "{what}");
    }
}

#[tokio::test]
async fn a_cost_from_estimated_counts_is_marked() {
    let cut = Answer::sse(Wire::Chat.frames(&[ReplyPart::Text("The harbour was quiet, and")], None));
    let rest = Wire::Chat.answer(&[ReplyPart::Text(" the boats were in.")], End::Turn, true);
    let endmark = Endmark::start_with(Script::new().then(cut).default_answer(rest), |settings| {
        let mut models = Models::builtin().clone();
        models.add(
            "m",
            Model { prices: Prices::flat(rates(1_000_000_000, 1_000_000_000)), ..Model::default() },
        );
        settings.models = Some(Arc::new(models));
    })
    .await;
    let mut request = Wire::Chat.request(true);
    request["model"] = json!("m");
    let (reply, heard) = Wire::Chat.ask(&endmark, &request, true).await;
    let disclosed = heard.endmark.unwrap_or_default();
    assert!(disclosed["cost_usd"].is_string(), "{}", reply.text());
    assert_eq!(disclosed["usage"], "at_least", "{}", reply.text());
}
