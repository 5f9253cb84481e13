use endmark_recovery::Stop;

use super::*;
use crate::reply::ToolCall;

fn stream(keep_bytes: usize) -> ChatStream {
    ChatStream::new(&ChatRequest::parse(br#"{"model":"m","messages":[],"stream":true}"#).unwrap(), keep_bytes)
}

fn text(index: u32, text: &str) -> String {
    format!("{{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"{text}\"}}}}]}}")
}

#[test]
fn after_the_limit_events_are_read_but_not_kept() {
    let mut stream = stream(10);
    stream.read_chunk(&text(0, "12345")).unwrap();
    stream.read_chunk(&text(1, "12345")).unwrap();
    assert!(stream.choices().iter().all(|choice| choice.is_mendable && choice.text == "12345"));
    let chunk = stream.read_chunk(&text(0, "6")).unwrap();
    assert_eq!(chunk.pieces, [ChoicePiece { choice: 0, piece: Piece::Text("6".to_owned()) }]);
    stream.read_chunk(&text(2, "new")).unwrap();
    let kept: Vec<_> = stream
        .choices()
        .iter()
        .map(|choice| (choice.is_mendable, &*choice.text, choice.received_bytes))
        .collect();
    assert_eq!(kept, [(false, "", 6), (false, "", 5), (false, "", 3)]);
    let end = r#"{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}"#;
    assert_eq!(stream.read_chunk(end).unwrap().finishes[0].stop, Some(Stop::Normal));
    assert_eq!(stream.choice_at(1).unwrap().finish.as_ref().unwrap().reason, "stop");
}

#[test]
fn calls_and_choices_of_a_server_are_bounded() {
    let mut stream = stream(1000);
    for index in 0..1000 {
        let call =
            format!("{{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index}}}]}}}}]}}");
        stream.read_chunk(&call).unwrap();
        stream.read_chunk(&text(index, "")).unwrap();
    }
    assert_eq!(stream.choices().len(), 128);
    assert_eq!(stream.choices()[0].tool_calls.len(), 0);
    assert!(!stream.choices()[0].is_mendable);
}

#[test]
fn a_broken_chunk_keeps_earlier_content() {
    for data in ["{\"choices\":[", "[]", "nt\":\"two\"}}]}"] {
        let mut stream = stream(1000);
        stream.read_chunk(&text(0, "one")).unwrap();
        assert!(stream.read_chunk(data).unwrap_err().is_broken_chunk(), "{data}");
        assert!(stream.choices()[0].is_mendable, "{data}");
        assert_eq!((stream.choices()[0].text.as_str(), stream.ending(0)), ("one", Ending::UpstreamError));
        stream.read_chunk(&text(0, " three")).unwrap();
        stream.read_chunk(&text(1, "other")).unwrap();
        assert!(
            stream.choices().iter().all(|choice| !choice.is_mendable && choice.text.is_empty()),
            "{data}"
        );
    }
}

#[test]
fn after_an_unreadable_event_no_choice_is_mendable() {
    let mut stream = stream(1000);
    stream.read_chunk(&text(0, "one")).unwrap();
    assert_eq!(stream.read_chunk("ping"), Err(EventError::NotAChunk));
    assert!(!stream.choices()[0].is_mendable);
}

#[test]
fn invalid_utf8_breaks_a_chunk() {
    let damaged =
        Frame::read(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xFF\"}}]}\n\n".to_vec());
    assert_eq!(stream(1000).read_frame(&damaged), Err(EventError::NotUtf8));
}

#[test]
fn a_blank_finish_reason_does_not_end_a_stream() {
    let mut stream = stream(1000);
    for blank in ["", " "] {
        let data = format!(
            "{{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"x\"}},\"finish_reason\":\"{blank}\"}}]}}"
        );
        assert_eq!(stream.read_chunk(&data).unwrap().finishes, []);
    }
    assert_eq!(stream.choices()[0].finish, None);
    assert_eq!(stream.ending(0), Ending::Dropped);
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;
    assert_eq!(stream.read_chunk(end).unwrap().finishes[0].stop, Some(Stop::Limit));
    // An empty finish reason after the end does not undo the end.
    stream.read_chunk(&end.replace("length", "")).unwrap();
    assert_eq!(stream.choices()[0].finish.as_ref().unwrap().reason, "length");
    assert_eq!(stream.ending(0), Ending::Clean);
}

#[test]
fn a_choice_with_an_unknown_call_kind_cannot_be_continued() {
    let chunk = |index: u32, call: &str| {
        format!("{{\"choices\":[{{\"index\":{index},\"delta\":{{\"tool_calls\":[{call}]}}}}]}}")
    };
    let mut stream = stream(1000);
    stream.read_chunk(&text(0, "Let me see.")).unwrap();
    let begin = r#"{"index":0,"id":"c","type":"builtin_function","function":{"name":"sh","arguments":""}}"#;
    stream.read_chunk(&chunk(0, begin)).unwrap();
    assert!(!stream.choices()[0].can_continue());
    stream
        .read_chunk(&chunk(0, r#"{"index":0,"type":"builtin_function","function":{"arguments":"ls"}}"#))
        .unwrap();
    let call = r#"{"index":1,"id":"d","type":"function","function":{"name":"f","arguments":"{"}}"#;
    stream.read_chunk(&chunk(0, call)).unwrap();
    stream.read_chunk(&chunk(1, call)).unwrap();
    stream.read_chunk(&chunk(1, r#"{"index":1,"type":"","function":{"arguments":"}"}}"#)).unwrap();
    let continuable: Vec<bool> = stream.choices().iter().map(Choice::can_continue).collect();
    assert_eq!(continuable, [false, true]);
    assert_eq!(stream.choices()[1].tool_calls[0].arguments, "{}");
}

#[test]
fn empty_frames_are_ignored() {
    let mut stream = stream(1000);
    for raw in
        [": ping\n\n", "\n", "event: ping\n\n", "data:\n\n", "data: {}\n\n", "data: {\"choices\":null}\n\n"]
    {
        let chunk = stream.read_frame(&Frame::read(raw.as_bytes().to_vec())).unwrap();
        let nothing = Event {
            has_no_choices: chunk.has_no_choices,
            only_begins: raw.contains("null"),
            is_idle: !raw.contains('{'),
            ..Event::default()
        };
        assert_eq!(chunk, nothing, "{raw:?}");
    }
    assert_eq!(stream.choices(), []);
    assert!(stream.read_frame(&Frame::read(b"data:[DONE]".to_vec())).unwrap().is_done);
    assert!(stream.is_done());
}

#[test]
fn a_stream_without_chunks_has_a_template() {
    let made = stream(10).template().text_chunk(3, "ü\"");
    let expected = r#"{"id":"chatcmpl-endmark","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":3,"delta":{"content":"ü\""},"finish_reason":null}]}"#;
    assert_eq!(String::from_utf8(made).unwrap(), expected);
}

#[test]
fn a_template_omits_long_and_changing_fields() {
    let mut stream = stream(10);
    let long = "x".repeat(5000);
    let first =
        r#"{"id":"a","created":1.0,"obfuscation":"x","usage":null,"choices":[{"index":0}],"model":"LONG"}"#;
    stream.read_chunk(&first.replace("LONG", &long)).unwrap();
    let made = String::from_utf8(stream.template().finish_chunk(0, "stop", None)).unwrap();
    assert_eq!(made, r#"{"id":"a","created":1.0,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
}

#[test]
fn a_chunk_made_from_a_template_round_trips() {
    let mut first = stream(1000);
    first
        .read_chunk(r#"{"id":"a","model":"m","choices":[{"index":0,"delta":{"role":"assistant"}}]}"#)
        .unwrap();
    let template = first.template().clone();
    let call = ToolCall {
        index: 1,
        id: Some("c".to_owned()),
        name: "read".to_owned(),
        arguments: "{\"a\":".to_owned(),
        signature: None,
        ..ToolCall::default()
    };
    let usage = Usage {
        prompt: 1,
        completion: 2,
        total: 3,
        written: None,
        cached: Some(1),
        reasoning: Some(0),
        ..Usage::default()
    };
    let endmark = serde_json::value::to_raw_value(&serde_json::json!({"outcome": "resumed"})).unwrap();
    let made = [
        template.text_chunk(0, "Hi \u{0}\u{1f}\"\\\n"),
        template.tool_call_chunk(0, &call),
        template.tool_arguments_chunk(0, &call, "1}"),
        template.finish_chunk(0, "tool_calls", Some(&endmark)),
        template.usage_chunk(&usage),
    ];
    let mut second = stream(1000);
    for chunk in made {
        serde_json::from_slice::<serde_json::Value>(&chunk).unwrap();
        second.read_chunk(std::str::from_utf8(&chunk).unwrap()).unwrap();
    }
    let choice = &second.choices()[0];
    assert_eq!(choice.text, "Hi \u{0}\u{1f}\"\\\n");
    assert_eq!(choice.tool_calls, [ToolCall { arguments: "{\"a\":1}".to_owned(), ..call }]);
    assert_eq!(choice.finish.as_ref().unwrap().stop, Some(Stop::Normal));
    assert_eq!(second.usage(), Some(&usage));
    assert_eq!(second.template(), &template);
}

#[test]
fn a_chunk_is_edited_in_place() {
    let data = r#"{"choices": [{"index":1,"delta":{"content":"x"},"finish_reason":"length"}], "usage":null, "extra" : 1.50}"#;
    let mut edit = super::super::ChunkEdit::new(data).unwrap();
    edit.set_finish(1, None);
    edit.set_text(1, "y");
    edit.set_finish(7, Some("not there"));
    edit.remove_usage();
    let endmark = serde_json::value::to_raw_value(&serde_json::json!({"outcome": "cut"})).unwrap();
    edit.set_endmark(&endmark);
    let expected = r#"{"choices": [{"index":1,"delta":{"content":"y"},"finish_reason":null}], "extra" : 1.50,"endmark":{"outcome":"cut"}}"#;
    assert_eq!(String::from_utf8(edit.finish()).unwrap(), expected);
}
