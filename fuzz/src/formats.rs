//! Checks of every wire format (PC-9). The input is a request body, a response body or an event stream.

use endmark_wire::ask::{Ask, Partial, PrefillVariant, Terms, ToolPrefill};
use endmark_wire::format::{WireFormat, find_by_name};
use endmark_wire::json::Value;
use endmark_wire::reply::{Choice, Event, Piece, ToolCall, Usage};
use endmark_wire::request::{Address, Request};
use endmark_wire::sse::{Decoder, Frame, Tail};
use endmark_wire::writer::{ChoiceEnd, ReportedEnd, StreamEnd, StreamError};

use crate::input::Numbers;

const TEXTS: &[&str] = &["x", " and \"more\"", "{\"a\": \"b\\\"\"}", "line\n\u{0}é\u{1f600}"];

/// Maximum number of bytes of a stream that are kept.
const MAX_KEPT_BYTES: usize = 1 << 16;

/// Reads the input in this format: as a request, a response, a stream, an error and a path.
pub(crate) fn check(format: &str, bytes: &[u8]) {
    let format = find_by_name(format).expect("a format of this name");
    let mut numbers = Numbers::of(bytes);
    check_request(format, bytes, &mut numbers);
    check_response(format, bytes, &mut numbers);
    check_stream(format, bytes, &mut numbers);
    if let Ok(root) = Value::parse(bytes) {
        let _ = format.read_error(root).map(|error| error.is_context_length());
    }
    check_address(format, bytes);
}

fn stream_address() -> Address {
    Address { base: "/v1/models/".to_owned(), model: Some("m".to_owned()), stream: Some(true) }
}

/// Returns a request that any stream could answer.
fn plain_request(format: &'static dyn WireFormat) -> Request {
    let body = br#"{"model":"m","max_tokens":9,"stream":true,"messages":[],"input":"x","contents":[]}"#;
    Request::parse(format, body, &stream_address()).unwrap()
}

/// Checks that a model name in a path cannot lead to another path.
fn check_address(format: &dyn WireFormat, bytes: &[u8]) {
    let Ok(path) = std::str::from_utf8(bytes) else { return };
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    for path in [path.to_owned(), format!("/v1beta/models/{path}:generateContent")] {
        if let Some(Address { model: Some(model), .. }) = format.address(&path, query) {
            assert!(!model.contains(['/', '%', '?', '#', ':']) && model != "." && model != "..", "{model}");
        }
    }
}

/// Checks that each continuation of an accepted request is a valid request with the given terms.
fn check_request(format: &'static dyn WireFormat, bytes: &[u8], numbers: &mut Numbers) {
    let Ok(request) = Request::parse(format, bytes, &stream_address()) else { return };
    assert_eq!(request.body(), bytes);
    let text = *numbers.pick(TEXTS);
    let terms = Terms { limit: 77, stream: numbers.flip(), include_usage: numbers.flip() };
    let call = ToolCall { name: "f".to_owned(), arguments: "{\"a\": \"b".to_owned(), ..ToolCall::default() };
    let cut_call = Partial::ToolCall { call: &call, content_before: "", calls_before: &[] };
    for so_far in [Partial::Text(text), cut_call] {
        let prefill = |tool| Ask::Prefill { so_far, variant: PrefillVariant::Plain, tool };
        for ask in [
            prefill(ToolPrefill::Hermes),
            prefill(ToolPrefill::Calls),
            Ask::Prompt { so_far, prompt: "go on" },
            Ask::Correction { wrong: so_far, prompt: "correct" },
            Ask::Again,
            Ask::Native { token: "t" },
        ] {
            let Some(asked) = request.continuation(&ask, terms) else { continue };
            let again = Request::parse(format, &asked.body, &stream_address()).unwrap();
            assert_eq!((again.view().limit, again.view().choices), (Some(77), 1));
            assert_eq!(again.view().has_stop, request.view().has_stop);
        }
    }
    if let Some((repaired, calls)) = request.with_repaired_calls() {
        assert!(calls > 0 && repaired.with_repaired_calls().is_none());
    }
    let tools = request.tools();
    assert!(
        tools.iter().all(|tool| tool.schema.as_deref().is_none_or(|schema| Value::parse_str(schema).is_ok()))
    );
    let other = request.for_other_upstream(Some("other")).unwrap();
    assert_eq!(other.view().model, "other");
    let _ = (request.echoes(text), request.path_for("other", false), request.path_at_other_upstream(true));
}

/// Checks that an edited response can be parsed, has the same number of choices, and keeps an unknown field.
fn check_response(format: &'static dyn WireFormat, bytes: &[u8], numbers: &mut Numbers) {
    let request = plain_request(format);
    let Ok(response) = request.response(bytes) else { return };
    assert_eq!(response.edit().finish(), bytes);
    let reply = response.reply();
    let Some(choice) = reply.choices.first() else { return };
    let text = *numbers.pick(TEXTS);
    let usage = Usage {
        prompt: 9,
        completion: 8,
        total: 17,
        written: None,
        cached: Some(7),
        reasoning: Some(1),
        ..Usage::default()
    };
    let mut edit = response.edit();
    edit.set_text(choice.index, text);
    edit.set_end(choice.index, *numbers.pick(&[ReportedEnd::Turn, ReportedEnd::ToolCalls, ReportedEnd::Cut]));
    edit.set_endmark(&serde_json::value::RawValue::from_string("{\"a\":1}".to_owned()).unwrap());
    if numbers.flip() {
        edit.set_usage(&usage);
    }
    for call in &choice.tool_calls {
        edit.set_arguments(choice.index, call.index, "{\"x\":1}");
    }
    let edited = edit.finish();
    let again = request.response(&edited).unwrap();
    assert_eq!(again.reply().choices.len(), reply.choices.len());
    let unknown =
        |body: &[u8]| Value::parse_body(body).unwrap().field("unknown").map(|value| value.raw().to_owned());
    assert_eq!(unknown(&edited), unknown(bytes));
}

fn frames(pieces: &[&[u8]]) -> Vec<Frame> {
    let mut decoder = Decoder::new(1 << 20);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece).unwrap();
        frames.extend(std::iter::from_fn(|| decoder.next_frame()));
    }
    // An incomplete frame at the end of the stream is ignored.
    if let Tail::Frame(frame) = decoder.finish() {
        frames.push(frame);
    }
    frames
}

/// Checks that the kept text is the received text within the limit, and that each `endmark` event is JSON.
fn check_stream(format: &'static dyn WireFormat, bytes: &[u8], numbers: &mut Numbers) {
    let request = plain_request(format);
    let room = if numbers.flip() { MAX_KEPT_BYTES } else { numbers.below(256) };
    let (mut reader, mut writer) = (request.stream(room), request.writer(room));
    let mut client = Vec::new();
    let mut texts: Vec<(u32, String)> = Vec::new();
    for frame in frames(&numbers.split_pieces(bytes)) {
        let Ok(event) = reader.read_frame(&frame) else { break };
        for delta in &event.pieces {
            if let Piece::Text(text) = &delta.piece {
                texts.push((delta.choice, text.clone()));
            }
        }
        if must_be_held(&event) || numbers.below(8) == 0 {
            writer.hold(frame, &event);
        } else {
            writer.pass(&frame, &event, &mut client);
        }
        if event.is_done || event.error.is_some() {
            break;
        }
    }
    for choice in reader.received().choices() {
        check_kept(choice, &texts, room);
        let _ = reader.received().ending(choice.index);
    }
    let before = client.len();
    let text = *numbers.pick(TEXTS);
    let call = ToolCall { name: "f".to_owned(), arguments: "{}".to_owned(), ..ToolCall::default() };
    if numbers.flip() {
        client.extend(writer.write_text(0, text));
    }
    if numbers.flip() {
        client.extend(
            writer.write_arguments(0, &call, "x").unwrap_or_else(|| writer.write_tool_call(0, &call)),
        );
    }
    client.extend(writer.keep_alive());
    if numbers.flip() {
        let ends =
            [ChoiceEnd { choice: 0, end: Some(ReportedEnd::Turn), endmark: None, is_rewritten: false }];
        let usage = numbers.flip().then(Usage::default);
        client.extend(writer.close(&StreamEnd { choices: &ends, usage, is_end_lost: numbers.flip() }));
    } else {
        client.extend(writer.write_error(&StreamError {
            message: text,
            kind: "endmark_reply_cut",
            status: 502,
            endmark: None,
            choices: &[],
        }));
    }
    for frame in frames(&[client.get(before..).unwrap_or_default()]) {
        if let Some(data) = frame.data.filter(|data| data.contains("endmark")) {
            assert!(Value::parse_str(&data).is_ok(), "{data}");
        }
    }
}

fn must_be_held(event: &Event) -> bool {
    event.completes_part || !event.finishes.is_empty() || event.is_done || event.error.is_some()
}

fn check_kept(choice: &Choice, texts: &[(u32, String)], room: usize) {
    let bytes = choice.text.len() + choice.tool_calls.iter().map(|call| call.arguments.len()).sum::<usize>();
    assert!(bytes <= room, "{bytes} bytes are kept, {room} may be");
    if choice.is_mendable {
        let came = texts.iter().filter(|(index, _)| *index == choice.index);
        assert_eq!(choice.text, came.map(|(_, text)| text.as_str()).collect::<String>());
    }
}
