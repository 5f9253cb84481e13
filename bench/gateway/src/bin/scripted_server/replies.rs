//! The same reply in each of the four formats, with the fields that the public endpoints send.

use bytes::Bytes;

/// Number of content chunks in a stream, not counting the other events of the format.
const STREAM_CHUNKS: usize = 50;

/// A text that is about as long as a short answer of a chat model.
const TEXT: &str = "The harbour was quiet that morning, and the gulls had not yet found the boats. Mira counted the nets twice, once by hand and once by heart, and both times there was one too many. She said nothing of it. By noon the wind had turned, the boats were out, and the net that nobody owned lay folded on the wall as if it had always been there.";

const CHUNK_TEXT: &str = " harbour";

/// The scripted reply in one format.
pub(crate) struct Reply {
    pub(crate) whole: Bytes,
    /// The reply as a stream, with one item for each chunk.
    pub(crate) pieces: Vec<Bytes>,
}

/// Returns the reply in each format, with a part of the path that only this format has.
pub(crate) fn by_path() -> Vec<(&'static str, Reply)> {
    vec![
        ("/chat/completions", chat()),
        ("/responses", responses()),
        ("/messages", messages()),
        ("/models/", gemini()),
    ]
}

fn reply(whole: String, pieces: Vec<String>) -> Reply {
    Reply { whole: whole.into(), pieces: pieces.into_iter().map(Bytes::from).collect() }
}

/// Joins the events before the text, the chunks of text, and the events after the text.
fn surround_with_events(
    before: Vec<String>,
    piece: impl Fn(usize) -> String,
    after: Vec<String>,
) -> Vec<String> {
    before.into_iter().chain((0..STREAM_CHUNKS).map(piece)).chain(after).collect()
}

fn data_event(event: &str) -> String {
    format!("data: {event}\n\n")
}

fn named_event(name: &str, event: &str) -> String {
    format!("event: {name}\ndata: {event}\n\n")
}

fn chat() -> Reply {
    let whole = format!(
        r#"{{"id":"chatcmpl-C0ffee00000000000000000000000","object":"chat.completion","created":1760000000,"model":"gpt-4o-mini-2024-07-18","choices":[{{"index":0,"message":{{"role":"assistant","content":"{TEXT}","refusal":null,"annotations":[]}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":19,"completion_tokens":78,"total_tokens":97,"prompt_tokens_details":{{"cached_tokens":0,"audio_tokens":0}},"completion_tokens_details":{{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}},"service_tier":"default","system_fingerprint":"fp_0000000000"}}"#
    );
    let chunk = |delta: &str, finish: &str| {
        data_event(&format!(
            r#"{{"id":"chatcmpl-C0ffee00000000000000000000000","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_0000000000","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]}}"#
        ))
    };
    let piece = format!(r#"{{"content":"{CHUNK_TEXT}"}}"#);
    reply(
        whole,
        surround_with_events(
            vec![chunk(r#"{"role":"assistant","content":"","refusal":null}"#, "null")],
            |_| chunk(&piece, "null"),
            vec![chunk("{}", r#""stop""#), data_event("[DONE]")],
        ),
    )
}

fn responses() -> Reply {
    const ITEM: &str = "msg_C0ffee000000000000000000000000000000000000000000";
    let response = |status: &str, output: &str, usage: &str| {
        format!(
            r#"{{"id":"resp_C0ffee000000000000000000000000000000000000000000","object":"response","created_at":1760000000,"status":"{status}","background":false,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":"gpt-4o-mini-2024-07-18","output":[{output}],"parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{{"effort":null,"summary":null}},"safety_identifier":null,"service_tier":"default","store":true,"temperature":1.0,"text":{{"format":{{"type":"text"}},"verbosity":"medium"}},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":{usage},"user":null,"metadata":{{}}}}"#
        )
    };
    let part =
        |text: &str| format!(r#"{{"type":"output_text","annotations":[],"logprobs":[],"text":"{text}"}}"#);
    let item = |status: &str, content: &str| {
        format!(
            r#"{{"id":"{ITEM}","type":"message","status":"{status}","content":[{content}],"role":"assistant"}}"#
        )
    };
    let usage = r#"{"input_tokens":19,"input_tokens_details":{"cached_tokens":0},"output_tokens":78,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":97}"#;
    let whole = response("completed", &item("completed", &part(TEXT)), usage);

    let event = |number: usize, name: &str, fields: String| {
        named_event(name, &format!(r#"{{"type":"{name}","sequence_number":{number},{fields}}}"#))
    };
    let in_part = |fields: &str| format!(r#""item_id":"{ITEM}","output_index":0,"content_index":0,{fields}"#);
    let opening = response("in_progress", "", "null");
    let repeated_text = CHUNK_TEXT.repeat(STREAM_CHUNKS);
    let (done, last) = (item("completed", &part(&repeated_text)), STREAM_CHUNKS + 4);
    reply(
        whole,
        surround_with_events(
            vec![
                event(0, "response.created", format!(r#""response":{opening}"#)),
                event(1, "response.in_progress", format!(r#""response":{opening}"#)),
                event(
                    2,
                    "response.output_item.added",
                    format!(r#""output_index":0,"item":{}"#, item("in_progress", "")),
                ),
                event(3, "response.content_part.added", in_part(&format!(r#""part":{}"#, part("")))),
            ],
            |at| {
                let fields = format!(r#""delta":"{CHUNK_TEXT}","logprobs":[],"obfuscation":"a0b1c2d3""#);
                event(at + 4, "response.output_text.delta", in_part(&fields))
            },
            vec![
                event(
                    last,
                    "response.output_text.done",
                    in_part(&format!(r#""text":"{repeated_text}","logprobs":[]"#)),
                ),
                event(
                    last + 1,
                    "response.content_part.done",
                    in_part(&format!(r#""part":{}"#, part(&repeated_text))),
                ),
                event(last + 2, "response.output_item.done", format!(r#""output_index":0,"item":{done}"#)),
                event(
                    last + 3,
                    "response.completed",
                    format!(r#""response":{}"#, response("completed", &done, usage)),
                ),
            ],
        ),
    )
}

fn messages() -> Reply {
    let message = |content: &str, stop: &str, output: usize| {
        format!(
            r#"{{"model":"claude-sonnet-4-5-20250929","id":"msg_01C0ffee000000000000000","type":"message","role":"assistant","content":[{content}],"stop_reason":{stop},"stop_sequence":null,"usage":{{"input_tokens":19,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0}},"output_tokens":{output},"service_tier":"standard"}}}}"#
        )
    };
    let whole = message(&format!(r#"{{"type":"text","text":"{TEXT}"}}"#), r#""end_turn""#, 78);
    let delta = format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{CHUNK_TEXT}"}}}}"#
    );
    reply(
        whole,
        surround_with_events(
            vec![
                named_event(
                    "message_start",
                    &format!(r#"{{"type":"message_start","message":{}}}"#, message("", "null", 1)),
                ),
                named_event(
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                ),
                named_event("ping", r#"{"type":"ping"}"#),
            ],
            |_| named_event("content_block_delta", &delta),
            vec![
                named_event("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
                named_event(
                    "message_delta",
                    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":19,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":78}}"#,
                ),
                named_event("message_stop", r#"{"type":"message_stop"}"#),
            ],
        ),
    )
}

fn gemini() -> Reply {
    let content = |text: &str, finish: &str, usage: &str| {
        format!(
            r#"{{"candidates": [{{"content": {{"parts": [{{"text": "{text}"}}],"role": "model"}},{finish}"index": 0}}],"usageMetadata": {{"promptTokenCount": 19,{usage}"promptTokensDetails": [{{"modality": "TEXT","tokenCount": 19}}]}},"modelVersion": "gemini-2.5-flash","responseId": "C0ffee0000000000000000"}}"#
        )
    };
    let (stop, all) = (r#""finishReason": "STOP","#, r#""candidatesTokenCount": 78,"totalTokenCount": 97,"#);
    let line = |event: &str| format!("data: {event}\r\n\r\n");
    let piece = line(&content(CHUNK_TEXT, "", r#""totalTokenCount": 19,"#));
    reply(
        content(TEXT, stop, all),
        // The last content chunk also contains the finish reason.
        surround_with_events(Vec::new(), |_| piece.clone(), vec![line(&content(CHUNK_TEXT, stop, all))]),
    )
}
