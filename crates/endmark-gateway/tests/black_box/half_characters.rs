//! Half a surrogate pair, as servers send that cut texts by UTF-16 units: what it stands in is judged all the same.

use testkit::{Answer, Dialect, Script};

use crate::support::Endmark;
use crate::support::spoken::{End, Said, Wire};

/// What the upstream says, with the half in place of `@`.
fn halved(frames: Vec<String>) -> Answer {
    Answer::sse(frames.into_iter().map(|frame| frame.replace('@', "\\ud83d")))
}

#[tokio::test]
async fn a_call_that_was_cut_behind_half_a_character_is_not_handed_over_as_finished() {
    for wire in Wire::ALL.into_iter().filter(|wire| *wire != Wire::Other(Dialect::Gemini)) {
        for said in [
            [Said::Text("Look @"), Said::Call("get_weather", r#"{"city":"Par"#)],
            [Said::Text("Look "), Said::Call("get_weather", r#"{"city":"@"#)],
        ] {
            let answer = halved(wire.frames(&said, Some(End::Calls)));
            let refused = Answer::error(400, "invalid_request_error", None, "no");
            let endmark = Endmark::start(Script::new().then(answer).otherwise(refused)).await;
            let what = wire.ask_unheard(&endmark, &wire.request(true), true).await.text();
            let ends_so = format!("\"{}\"", wire.word(End::Limit));
            let is_told = what.contains("\"outcome\":\"cut\"") && what.contains(&ends_so)
                || what.contains("endmark_reply_cut");
            assert!(is_told, "{wire:?}: {what}");
            let finished = match wire {
                Wire::Chat => "\"finish_reason\":\"tool_calls\"",
                Wire::Other(Dialect::Responses) => "\"response.completed\"",
                Wire::Other(_) => "\"stop_reason\":\"tool_use\"",
            };
            assert!(!what.contains(finished), "{wire:?}: {what}");
            assert_eq!(endmark.upstream.requests().len(), 1, "no request could show it: {what}");
        }
    }
}

#[tokio::test]
async fn a_whole_reply_with_half_a_character_passes_as_it_came() {
    for wire in Wire::ALL {
        let frames = wire.frames(&[Said::Text("Look @ there.")], Some(End::Turn));
        let sent = frames.concat().replace('@', "\\ud83d");
        let endmark = Endmark::start(Script::new().otherwise(halved(frames))).await;
        let reply = wire.ask_unheard(&endmark, &wire.request(true), true).await;
        assert_eq!(reply.text(), sent, "{wire:?}");
    }
}

#[tokio::test]
async fn a_text_that_its_limit_cut_behind_half_a_character_is_told_and_not_gone_on_with() {
    for wire in Wire::ALL {
        let answer = halved(wire.frames(&[Said::Text("Look @")], Some(End::Limit)));
        let endmark = Endmark::start(Script::new().otherwise(answer)).await;
        // Without a limit of the client's own; Messages demands one, and this is as good as none.
        let mut body = wire.request(true);
        if wire != Wire::Other(Dialect::Messages) {
            let body = body.as_object_mut().unwrap();
            body.retain(|name, _| {
                !["max_tokens", "max_output_tokens", "generationConfig"].contains(&name.as_str())
            });
        }
        let what = wire.ask_unheard(&endmark, &body, true).await.text();
        assert!(what.contains(&format!("\"{}\"", wire.word(End::Limit))), "{wire:?}: {what}");
        assert!(what.contains("half a surrogate pair"), "{wire:?}: {what}");
        assert_eq!(endmark.upstream.requests().len(), 1, "{what}");
    }
}
