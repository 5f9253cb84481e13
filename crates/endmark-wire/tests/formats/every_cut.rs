//! Recorded streams, cut after every frame. The client's stream is completed in the format's own shape.

use std::path::Path;

use endmark_recovery::{Ending, Stop};
use endmark_wire::reply::Choice;
use endmark_wire::request::Request;
use endmark_wire::writer::{ChoiceEnd, ReportedEnd, StreamEnd, StreamError};
use proptest::prelude::*;

use crate::relay::{KEEP_BYTES, case, cases, format, frames, relay, request};
use crate::shape;

const FORMATS: [&str; 4] = ["openai_chat", "openai_responses", "anthropic_messages", "gemini"];

/// Returns the recordings with a single choice that is complete and mendable, and that choice.
fn whole_streams(name: &str) -> Vec<(String, Vec<u8>, Choice)> {
    let request = request(format(name));
    let mut streams = Vec::new();
    for case in cases(name, ".sse") {
        let bytes = std::fs::read(&case).unwrap();
        let relayed = relay(&request, &bytes);
        let ended = |choice: &Choice| {
            choice.can_continue()
                && choice.finish.as_ref().is_some_and(|finish| finish.stop == Some(Stop::Normal))
        };
        if let [choice] = relayed.reader.received().choices()
            && ended(choice)
            && !relayed.is_broken
        {
            streams.push((stem(&case), bytes, choice.clone()));
        }
    }
    streams
}

fn stem(case: &Path) -> String {
    case.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn a_stream_cut_anywhere_is_completed() {
    let mut cuts = 0;
    for name in FORMATS {
        let request = request(format(name));
        let streams = whole_streams(name);
        assert!(streams.len() >= 2, "{name}: {}", streams.len());
        for (case, bytes, whole) in streams {
            for cut in 0..bytes.len() {
                // Only a cut at the end of a frame changes the result.
                if bytes.get(..cut).is_some_and(|before| before.ends_with(b"\n\n")) || cut == 0 {
                    mend(name, &request, &bytes[..cut], &whole, &format!("{case} cut at {cut}"));
                    cuts += 1;
                }
            }
        }
    }
    assert!(cuts > 400, "{cuts}");
}

/// Completes a cut stream, and returns what the client received.
fn mend(name: &str, request: &Request, cut: &[u8], whole: &Choice, what: &str) {
    let mut relayed = relay(request, cut);
    let received = relayed.reader.received();
    let received_choice = received.choice_at(0).cloned().unwrap_or_else(|| Choice::new(0));
    assert!(whole.text.starts_with(&received_choice.text), "{what}");
    assert!(received_choice.finish.is_some() || received.ending(0) == Ending::Dropped, "{what}");
    let mut client = relayed.sent;
    if !relayed.writer.can_write() {
        let error = StreamError {
            message: "cut",
            kind: "endmark_reply_cut",
            status: 502,
            endmark: None,
            choices: &[],
        };
        let end = String::from_utf8(relayed.writer.write_error(&error)).unwrap();
        assert!(end.contains("endmark_reply_cut"), "{what}\n{end}");
        return;
    }
    // Held frames with their own content cannot be used.
    let sent = read_choice(request, &client);
    let rest = whole.text.strip_prefix(sent.text.as_str()).unwrap();
    if !rest.is_empty() {
        client.extend(relayed.writer.write_text(0, rest));
    }
    for call in &whole.tool_calls {
        let sent_call = sent.tool_calls.iter().find(|sent_call| sent_call.index == call.index);
        match sent_call
            .map(|sent_call| (sent_call, call.arguments.strip_prefix(sent_call.arguments.as_str()).unwrap()))
        {
            Some((_, "")) => {}
            Some((sent_call, rest)) => {
                client.extend(relayed.writer.write_arguments(0, sent_call, rest).unwrap());
            }
            None => client.extend(relayed.writer.write_tool_call(0, call)),
        }
    }
    let end = if whole.tool_calls.is_empty() { ReportedEnd::Turn } else { ReportedEnd::ToolCalls };
    let endmark = serde_json::value::to_raw_value(&serde_json::json!({"outcome": "resumed"})).unwrap();
    let ends = [ChoiceEnd { choice: 0, end: Some(end), endmark: Some(&endmark), is_rewritten: false }];
    client.extend(relayed.writer.close(&StreamEnd { choices: &ends, ..StreamEnd::default() }));

    let text = String::from_utf8_lossy(&client);
    let mended = self::read_choice(request, &client);
    assert_eq!(mended.text, whole.text, "{what}\n{text}");
    let calls = |choice: &Choice| -> Vec<(String, String)> {
        choice.tool_calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect()
    };
    assert_eq!(calls(&mended), calls(whole), "{what}\n{text}");
    assert_eq!(mended.finish.unwrap().stop, Some(Stop::Normal), "{what}\n{text}");
    assert!(text.contains(r#""endmark":{"outcome":"resumed"}"#), "{what}\n{text}");
    shape::check(name, &client);
}

/// Returns the choice that a client reads from these bytes.
fn read_choice(request: &Request, bytes: &[u8]) -> Choice {
    let mut reader = request.stream(KEEP_BYTES);
    for frame in frames(&[bytes]).0 {
        reader.read_frame(&frame).unwrap();
    }
    reader.received().choice_at(0).cloned().unwrap_or_else(|| Choice::new(0))
}

/// This applies even if a provider reports the reply as complete, or if its end repeats the content.
#[test]
fn a_finished_stream_continues_instead_of_ending() {
    let mut mended = 0;
    for name in FORMATS {
        let request = request(format(name));
        for case in cases(name, ".sse") {
            let bytes = std::fs::read(&case).unwrap();
            let mut relayed = relay(&request, &bytes);
            let received = relayed.reader.received();
            let (choices, usage) = (received.choices().to_vec(), received.usage());
            let [had] = choices.as_slice() else { continue };
            if !had.can_continue()
                || had.is_refused
                || had.finish.is_none()
                || !had.tool_calls.is_empty()
                || relayed.is_broken
            {
                continue;
            }
            let whole = format!("{} and \"more\"", had.text);
            let mut client = relayed.sent;
            let rest = whole.strip_prefix(read_choice(&request, &client).text.as_str()).unwrap().to_owned();
            client.extend(relayed.writer.write_text(0, &rest[..1]));
            client.extend(relayed.writer.keep_alive());
            client.extend(relayed.writer.write_text(0, &rest[1..]));
            let ends =
                [ChoiceEnd { choice: 0, end: Some(ReportedEnd::Turn), endmark: None, is_rewritten: false }];
            let usage = usage.map(|usage| usage.clone() + usage.clone());
            client.extend(relayed.writer.close(&StreamEnd {
                choices: &ends,
                usage: usage.clone(),
                ..StreamEnd::default()
            }));

            let what = format!("{name} {}\n{}", stem(&case), String::from_utf8_lossy(&client));
            let read = relay(&request, &client);
            let [choice] = read.reader.received().choices() else { panic!("{what}") };
            assert_eq!(choice.text, whole, "{what}");
            assert_eq!(choice.finish.as_ref().unwrap().stop, Some(Stop::Normal), "{what}");
            assert_eq!(read.reader.received().usage(), usage.as_ref(), "{what}");
            shape::check(name, &client);
            mended += 1;
        }
    }
    assert!(mended >= 20, "{mended}");
}

#[test]
fn a_whole_stream_is_unchanged() {
    for name in FORMATS {
        let request = request(format(name));
        for case in cases(name, ".sse") {
            let bytes = std::fs::read(&case).unwrap();
            let mut relayed = relay(&request, &bytes);
            if relayed.is_broken {
                continue;
            }
            let mut client = relayed.sent;
            client.extend(relayed.writer.close(&StreamEnd::default()));
            client.extend(relayed.after_end);
            let whole = frames(&[&bytes]).0.iter().flat_map(|frame| frame.raw.clone()).collect::<Vec<u8>>();
            // Pings may pass held frames.
            let sorted = |bytes: &[u8]| {
                let mut frames: Vec<Vec<u8>> =
                    frames(&[bytes]).0.into_iter().map(|frame| frame.raw).collect();
                frames.sort();
                frames
            };
            assert_eq!(sorted(&client), sorted(&whole), "{name} {}", stem(&case));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 8, ..ProptestConfig::default() })]

    /// However a stream is split, the events and the stored content are the same.
    #[test]
    fn events_do_not_depend_on_chunking(places in prop::collection::vec(0.0..1.0_f64, 0..6)) {
        for name in FORMATS {
            let request = request(format(name));
            for case in cases(name, ".sse") {
                let bytes = std::fs::read(&case).unwrap();
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a small file")]
                let mut ends: Vec<usize> = places.iter().map(|place| (place * bytes.len() as f64) as usize).collect();
                ends.push(bytes.len());
                ends.sort_unstable();
                let mut start = 0;
                let pieces: Vec<&[u8]> =
                    ends.into_iter().map(|end| &bytes[std::mem::replace(&mut start, end)..end]).collect();
                let read = |pieces: &[&[u8]]| {
                    let mut reader = request.stream(KEEP_BYTES);
                    let events: Vec<_> = frames(pieces).0.iter().map(|frame| reader.read_frame(frame)).collect();
                    (events, reader.received().choices().to_vec(), reader.received().usage().cloned())
                };
                prop_assert_eq!(read(&pieces), read(&[&bytes]), "{}", stem(&case));
            }
        }
    }
}

/// The content that the client received cannot be repeated once it is no longer stored.
#[test]
fn beyond_the_limit_a_stream_passes_or_fails() {
    let request = request(format("openai_responses"));
    let bytes = std::fs::read(case("openai_responses", "incomplete-numbered.sse")).unwrap();
    for limit in [0, 200, 400, 800] {
        let (mut reader, mut writer) = (request.stream(KEEP_BYTES), request.writer(limit));
        let mut client = Vec::new();
        let (all, _) = frames(&[&bytes]);
        let (last, before) = all.split_last().unwrap();
        for frame in before {
            writer.pass(frame, &reader.read_frame(frame).unwrap(), &mut client);
        }
        let event = reader.read_frame(last).unwrap();
        writer.hold(last.clone(), &event);
        assert!(!writer.can_write(), "{limit}");
        let ends =
            [ChoiceEnd { choice: 0, end: Some(ReportedEnd::Turn), endmark: None, is_rewritten: false }];
        let closing = StreamEnd { choices: &ends, ..StreamEnd::default() };
        client.extend(writer.close(&closing));
        assert_eq!(client, bytes, "{limit}");

        writer.write_text(0, "more");
        let end = String::from_utf8(writer.close(&closing)).unwrap();
        assert!(end.starts_with("event: error\n") && end.contains("endmark_reply_cut"), "{end}");
    }
}

/// A part that the server began and that Endmark cannot complete ends in an error. Its content is never
/// invented.
#[test]
fn an_unfinished_server_part_is_not_invented() {
    let thought = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

"#;
    let search = r#"event: response.created
data: {"type":"response.created","response":{"id":"resp_1","status":"in_progress"}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}}

"#;
    for (name, sent_call) in [("anthropic_messages", thought), ("openai_responses", search)] {
        let relayed = relay(&request(format(name)), sent_call.as_bytes());
        assert_eq!(relayed.sent, sent_call.as_bytes());
        assert!(!relayed.writer.can_write(), "{name}");
    }
    // The reached limit leaves a thought without its signature. The reply has ended, and nothing may be
    // inserted before its end.
    let spent = "thinking-used-up-the-limit.sse";
    let bytes = std::fs::read(case("anthropic_messages", spent)).unwrap();
    assert!(!relay(&request(format("anthropic_messages")), &bytes).writer.can_write());
}
