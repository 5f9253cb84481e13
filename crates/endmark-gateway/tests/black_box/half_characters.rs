//! Half a surrogate pair, as sent by servers that cut text by UTF-16 units. A text with half a pair is still
//! judged.

use testkit::{Answer, AssembledReply, ModelFormat, Reply, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

/// Returns an answer with half a surrogate pair instead of `@`.
fn answer_with_half(frames: Vec<String>) -> Answer {
    Answer::sse(frames.into_iter().map(|frame| frame.replace('@', "\\ud83d")))
}

#[tokio::test]
async fn a_call_cut_after_half_a_character_is_not_finished() {
    for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::Other(ModelFormat::Gemini)) {
        for parts in [
            [ReplyPart::Text("Look @"), ReplyPart::Call("get_weather", r#"{"city":"Par"#)],
            [ReplyPart::Text("Look "), ReplyPart::Call("get_weather", r#"{"city":"@"#)],
        ] {
            let answer = answer_with_half(wire.frames(&parts, Some(End::Calls)));
            let refused = Answer::error(400, "invalid_request_error", None, "no");
            let endmark = Endmark::start(Script::new().then(answer).default_answer(refused)).await;
            let what = wire.ask_raw(&endmark, &wire.request(true), true).await.text();
            let ends_so = format!("\"{}\"", wire.finish_reason(End::Limit));
            let is_told = what.contains("\"outcome\":\"cut\"") && what.contains(&ends_so)
                || what.contains("endmark_reply_cut");
            assert!(is_told, "{wire:?}: {what}");
            let finished = match wire {
                Wire::Chat => "\"finish_reason\":\"tool_calls\"",
                Wire::Other(ModelFormat::Responses) => "\"response.completed\"",
                Wire::Other(_) => "\"stop_reason\":\"tool_use\"",
            };
            assert!(!what.contains(finished), "{wire:?}: {what}");
            assert_eq!(endmark.upstream.requests().len(), 1, "no request could show it: {what}");
        }
    }
}

#[tokio::test]
async fn a_whole_reply_with_half_a_character_is_unchanged() {
    for wire in Wire::ALL {
        let frames = wire.frames(&[ReplyPart::Text("Look @ there.")], Some(End::Turn));
        let sent = frames.concat().replace('@', "\\ud83d");
        let endmark = Endmark::start(Script::new().default_answer(answer_with_half(frames))).await;
        let reply = wire.ask_raw(&endmark, &wire.request(true), true).await;
        assert_eq!(reply.text(), sent, "{wire:?}");
    }
}

#[tokio::test]
async fn a_text_cut_by_its_limit_after_half_a_character_is_reported_as_cut() {
    for wire in Wire::ALL {
        let answer = answer_with_half(wire.frames(&[ReplyPart::Text("Look @")], Some(End::Limit)));
        let endmark = Endmark::start(Script::new().default_answer(answer)).await;
        // Remove the client's limit. Messages requires one, so it gets a very high limit.
        let mut body = wire.request(true);
        if wire != Wire::Other(ModelFormat::Messages) {
            let body = body.as_object_mut().unwrap();
            body.retain(|name, _| {
                !["max_tokens", "max_output_tokens", "generationConfig"].contains(&name.as_str())
            });
        }
        let what = wire.ask_raw(&endmark, &body, true).await.text();
        assert!(what.contains(&format!("\"{}\"", wire.finish_reason(End::Limit))), "{wire:?}: {what}");
        assert!(what.contains("half a surrogate pair"), "{wire:?}: {what}");
        assert_eq!(endmark.upstream.requests().len(), 1, "{what}");
    }
}

/// Returns a stream in which the halves of the character `#` are in two pieces.
fn stream_with_split_character(wire: Wire, parts: &[ReplyPart<'_>]) -> Answer {
    let mut is_split = false;
    let frames = wire.frames(parts, None).into_iter().flat_map(|frame| {
        if is_split || !frame.contains('#') {
            return vec![frame.replace('#', "\\ud83d\\ude00")];
        }
        is_split = true;
        let mut texts = parts.iter().map(|parts| match parts {
            ReplyPart::Text(text) | ReplyPart::Call(_, text) => *text,
        });
        let text = texts.find(|text| text.contains('#')).unwrap_or_default();
        let text = serde_json::json!(text).to_string();
        let (before, behind) = text.split_once('#').unwrap_or_default();
        let first = frame.replace(&text, &format!("{before}\\ud83d\""));
        let second = frame.replace(&text, &format!("\"\\ude00{behind}"));
        vec![first, second]
    });
    Answer::sse(frames.collect::<Vec<_>>())
}

#[tokio::test]
async fn a_text_with_a_character_in_two_halves_is_continued() {
    for wire in Wire::ALL {
        let first = stream_with_split_character(wire, &[ReplyPart::Text("Look # there, the har")]);
        let rest = wire.answer(&[ReplyPart::Text("bour was quiet.")], End::Turn, true);
        let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
        let (reply, heard) =
            read_joining_halves(wire, &wire.ask_raw(&endmark, &wire.request(true), true).await);
        assert_eq!(heard.text, "Look 😀 there, the harbour was quiet.", "{wire:?}: {reply}");
        assert_eq!(
            (heard.error, heard.stop.as_deref()),
            (None, Some(wire.finish_reason(End::Turn))),
            "{wire:?}: {reply}"
        );
    }
}

#[tokio::test]
async fn a_call_with_a_character_in_two_halves_is_continued() {
    for wire in [Wire::Chat, Wire::Other(ModelFormat::Responses)] {
        let first = stream_with_split_character(wire, &[ReplyPart::Call("get_weather", r#"{"city":"Par#i"#)]);
        let rest = wire.answer(&[ReplyPart::Call("get_weather", r#"{"city":"Par😀is"}"#)], End::Calls, true);
        let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
        let (reply, heard) =
            read_joining_halves(wire, &wire.ask_raw(&endmark, &wire.request(true), true).await);
        let arguments: Vec<&str> = heard.tool_calls.iter().map(|(_, arguments)| arguments.as_str()).collect();
        assert_eq!(arguments, [r#"{"city":"Par😀is"}"#], "{wire:?}: {reply}");
        assert_eq!(
            (heard.error, heard.stop.as_deref()),
            (None, Some(wire.finish_reason(End::Calls))),
            "{wire:?}: {reply}"
        );
    }
}

/// Returns the text of a client that joins the halves, as JavaScript clients do.
fn read_joining_halves(wire: Wire, reply: &Reply) -> (String, AssembledReply) {
    let parts = reply.text();
    let joined = parts.replace("\\ud83d\"", "😀\"").replace("\"\\ude00", "\"");
    (parts, wire.read_reply(&Reply { body: joined.into_bytes(), ..reply.clone() }))
}
