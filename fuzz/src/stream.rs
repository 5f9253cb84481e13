//! Streamed replies (PC-9). The input is an event stream.

use endmark_wire::json::Value;
use endmark_wire::openai_chat::{
    ChatRequest, ChatStream, ChoicePiece, ChunkEdit, Piece, Template, ToolCall, Usage,
};
use endmark_wire::sse::{Decoder, Frame, Tail, data_frame};

use crate::input::Numbers;

const REQUEST: &[u8] = br#"{"model":"m","messages":[],"stream":true}"#;

/// Checks that a stream keeps the received text within its limit, and that generated and edited chunks are
/// read back as intended.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    let request = ChatRequest::parse(REQUEST).unwrap();
    let frames = frames(&numbers.split_pieces(bytes));
    let room = if numbers.flip() { 1 << 20 } else { numbers.below(256) };
    let mut stream = ChatStream::new(&request, room);
    let mut came = Vec::new();
    for frame in &frames {
        let Ok(chunk) = stream.read_frame(frame) else { continue };
        for finish in &chunk.finishes {
            // Choices beyond the maximum number that a request can ask for are not kept.
            if let Some(choice) = stream.choice_at(finish.choice) {
                assert!(choice.finish.is_some());
            }
        }
        came.extend(chunk.pieces);
        if let Some(data) = &frame.data {
            check_edit(data);
        }
    }
    check_kept(&stream, &came, room);
    check_generated_chunks(stream.template(), &request, &mut numbers);
}

fn frames(pieces: &[&[u8]]) -> Vec<Frame> {
    let mut decoder = Decoder::new(1 << 20);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece).unwrap();
        frames.extend(std::iter::from_fn(|| decoder.next_frame()));
    }
    match decoder.finish() {
        Tail::Clean => {}
        Tail::Frame(frame) => frames.push(frame),
        Tail::Residue(raw) => frames.push(Frame::read(raw)),
    }
    frames
}

/// Compares the text that a stream keeps with the pieces that it reported.
fn check_kept(stream: &ChatStream, came: &[ChoicePiece], room: usize) {
    let mut bytes = 0;
    for choice in stream.choices() {
        let pieces = || came.iter().filter(|delta| delta.choice == choice.index).map(|delta| &delta.piece);
        let texts = || {
            pieces()
                .filter_map(|piece| if let Piece::Text(text) = piece { Some(text.as_str()) } else { None })
        };
        let arguments = |wanted: Option<u32>| {
            pieces().filter_map(move |piece| match piece {
                Piece::ToolCall { index, arguments, .. } if wanted.is_none_or(|wanted| wanted == *index) => {
                    Some(arguments.as_str())
                }
                _ => None,
            })
        };
        let received: usize = texts().chain(arguments(None)).map(str::len).sum();
        assert_eq!(choice.received_bytes, received);
        if choice.is_mendable {
            assert_eq!(choice.text, texts().collect::<String>());
            for call in &choice.tool_calls {
                assert_eq!(call.arguments, arguments(Some(call.index)).collect::<String>());
            }
        }
        let _ = stream.ending(choice.index);
        bytes += choice.text.len();
        bytes += choice.tool_calls.iter().map(|call| call.arguments.len() + call.name.len()).sum::<usize>();
    }
    assert!(bytes <= room, "{bytes} bytes are kept, {room} may be");
    assert!(stream.choices().len() <= 128);
}

/// Checks that each generated chunk is read back with the intended content.
fn check_generated_chunks(template: &Template, request: &ChatRequest, numbers: &mut Numbers) {
    let choice = u32::try_from(numbers.below(3)).unwrap();
    let text = *numbers.pick(&["x", "\"\\\r\n\u{0}", "é\u{1f600}"]);
    let call = ToolCall {
        index: 2,
        id: numbers.flip().then(|| "c\"1".to_owned()),
        name: "f".to_owned(),
        arguments: "{".to_owned(),
        legacy: numbers.flip(),
        ..ToolCall::default()
    };
    let usage = Usage {
        prompt: 1,
        completion: 2,
        total: 3,
        written: None,
        cached: Some(1),
        reasoning: None,
        ..Usage::default()
    };
    let chunks = [
        template.text_chunk(choice, text),
        template.tool_call_chunk(choice, &call),
        template.tool_arguments_chunk(choice, &call, text),
        template.finish_chunk(choice, "stop", None),
        template.usage_chunk(&usage),
    ];
    let mut stream = ChatStream::new(request, 1 << 20);
    for chunk in chunks {
        let frames = frames(&[&data_frame(&chunk)]);
        assert_eq!(frames.len(), 1);
        stream.read_frame(&frames[0]).unwrap();
    }
    let [made] = stream.choices() else { panic!("{:?}", stream.choices()) };
    assert_eq!((made.index, made.text.as_str(), made.is_mendable), (choice, text, true));
    assert_eq!(made.tool_calls.len(), 1);
    assert_eq!(made.tool_calls[0].arguments, format!("{{{text}"));
    assert_eq!(made.finish.as_ref().map(|finish| finish.reason.as_str()), Some("stop"));
    assert_eq!(stream.usage(), Some(&usage));
}

/// Checks that an edited chunk is valid and that its other fields are unchanged.
fn check_edit(data: &str) {
    let Ok(mut edit) = ChunkEdit::new(data) else { return };
    let untouched = edit.clone().finish();
    assert_eq!(untouched, data.as_bytes());
    edit.set_finish(0, Some("stop"));
    edit.set_text(0, "new \"text\"");
    edit.remove_usage();
    edit.set_endmark(&serde_json::value::RawValue::from_string("{\"a\":1}".to_owned()).unwrap());
    let changed = edit.finish();
    let (before, after) = (Value::parse_str(data).unwrap(), Value::parse(&changed).unwrap());
    assert_eq!(after.at("endmark.a").and_then(Value::as_u64), Some(1));
    assert!(after.field("usage").is_none());
    let others = |root: Value<'_>| -> Vec<(String, String)> {
        let fields = root
            .fields()
            .filter(|field| !["choices", "usage", "endmark"].iter().any(|name| field.has_name(name)));
        fields.map(|field| (field.key.raw().to_owned(), field.value.raw().to_owned())).collect()
    };
    assert_eq!(others(after), others(before));
}
