//! Replies that are requested again because no continuation could be joined: whether the new reply replaces
//! the cut one, and how that is reported.

use endmark_gateway::{Prefill, ResumeMode, Settings};
use endmark_recovery::Restart;
use endmark_store::FinalStatus;
use serde_json::json;
use testkit::{ModelFormat, Request, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const QUESTION: &str = "Could you tell me where to go on?";

fn resume_by_prompt(settings: &mut Settings) {
    settings.resume.mode = ResumeMode::On;
    settings.upstreams[0].prefill = Prefill::Never;
}

/// Starts a gateway whose upstream returns a cut reply, then an answer that is not its rest, then always
/// `again`.
async fn start_regenerating(
    wire: Wire,
    (first, again): (ReplyPart<'_>, ReplyPart<'_>),
    end: End,
    change: impl FnOnce(&mut Settings),
) -> Endmark {
    let script = Script::new()
        .then(wire.answer(&[first], End::Limit, false))
        .then(wire.answer(&[ReplyPart::Text(QUESTION)], End::Turn, false))
        .default_answer(wire.answer(&[again], end, false));
    Endmark::start_with(script, |settings| {
        resume_by_prompt(settings);
        change(settings);
    })
    .await
}

#[tokio::test]
async fn a_regenerated_text_is_reported_as_restarted() {
    let first = "The harbour was quiet that morning, and the boats lay sti";
    let again = "The harbour was still at dawn. All the boats lay at their moorings.";
    for wire in Wire::ALL {
        let endmark =
            start_regenerating(wire, (ReplyPart::Text(first), ReplyPart::Text(again)), End::Turn, |_| {})
                .await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(false), false).await;
        assert_eq!((heard.text.as_str(), endmark.calls()), (again, 3), "{wire:?}");
        assert_eq!(reply.header("x-endmark-outcome"), Some("restarted"), "{wire:?}");
        let log = endmark.log(1).await;
        assert_eq!((log[0].outcome.as_str(), log[0].final_status), ("restarted", FinalStatus::Resolved));
        assert!(log[0].reason.contains("generated again: 57 characters"), "{}", log[0].reason);
        assert!(log[0].reason.contains("67 are delivered"), "{}", log[0].reason);
        let metrics = Request::get(endmark.address, "/endmark/metrics").send().await.read().await;
        assert!(metrics.text().contains("outcome=\"restarted\""), "{}", metrics.text());
    }
}

#[tokio::test]
async fn a_regenerated_stream_continues_the_delivered_text() {
    let (first, again) = ("The harbour was qu", "The harbour was quiet, and nobody came.");
    for wire in Wire::ALL {
        let answer = |text, end| wire.answer(&[ReplyPart::Text(text)], end, true);
        let script = Script::new()
            .then(answer(first, End::Limit))
            .then(answer(QUESTION, End::Turn))
            .default_answer(answer(again, End::Turn));
        let endmark = Endmark::start_with(script, resume_by_prompt).await;
        let (_, heard) = wire.ask(&endmark, &wire.request(true), true).await;
        assert_eq!(heard.text, again, "{wire:?}");
        assert_eq!(heard.endmark.unwrap_or_default()["outcome"], "resumed", "{wire:?}");
    }
}

#[tokio::test]
async fn a_poorer_or_different_reply_does_not_replace_the_cut_one() {
    let report = "The harbour was quiet, and the first boats came in before the tide. ".repeat(30);
    let poor = "Sure! Let me know if you would like to read the report once more.";
    for (restart, again, outcome) in [
        (Restart::Any, poor, "exhausted"),
        (Restart::Any, &report.replace("quiet", "still"), "restarted"),
        (Restart::Same, &report.replace("quiet", "still"), "exhausted"),
        (Restart::Off, &report.replace("tide. ", "tide: "), "exhausted"),
    ] {
        let parts = (ReplyPart::Text(&report), ReplyPart::Text(again));
        let set = |settings: &mut Settings| settings.resume.restart = restart;
        let endmark = start_regenerating(Wire::Chat, parts, End::Turn, set).await;
        let (reply, heard) = Wire::Chat.ask(&endmark, &Wire::Chat.request(false), false).await;
        assert_eq!(reply.header("x-endmark-outcome"), Some(outcome), "{restart:?}");
        let delivered = if outcome == "restarted" { again } else { &report };
        assert_eq!(heard.text, delivered, "{restart:?}");
    }
}

/// A refusal, an apology or a question is a different reply, even if it is longer.
#[tokio::test]
async fn a_refusal_does_not_replace_the_cut_text() {
    for (first, again) in [
        ("Sure, here is the report. Revenue gr", "I'm sorry, but I can't assist with that request."),
        (
            "# Report\n\n- revenue: 100\n- costs: 50\n- ma",
            "What would you like to know? I can help you with it.",
        ),
    ] {
        for wire in Wire::ALL {
            let parts = (ReplyPart::Text(first), ReplyPart::Text(again));
            let endmark = start_regenerating(wire, parts, End::Turn, |_| {}).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(false), false).await;
            assert_eq!((heard.text.as_str(), endmark.calls()), (first, 3), "{wire:?}");
            assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"), "{wire:?}");
        }
    }
}

/// A call is an action, so its complete received values are kept unless the configuration allows other
/// values.
#[tokio::test]
async fn a_call_keeps_its_complete_values() {
    let cut = r#"{"to":"alice","amount":100,"memo":"for the ren"#;
    let other = r#"{"to":"bob","amount":9999,"memo":"for the rent"}"#;
    let same = r#"{"to": "alice", "amount": 100, "memo": "for the rent, flat 7"}"#;
    let extended = r#"{"to":"alice","amount":100,"memo":"for the rent"}"#;
    for wire in [Wire::Chat, Wire::Other(ModelFormat::Responses)] {
        for (restart, again, outcome) in [
            (None, other, "exhausted"),
            (Some(Restart::Any), other, "restarted"),
            (None, same, "restarted"),
            (None, extended, "resumed"),
            (Some(Restart::Off), other, "exhausted"),
        ] {
            let call = |arguments| ReplyPart::Call("get_weather", arguments);
            let set = |settings: &mut Settings| {
                settings.tools.restart = restart.unwrap_or(settings.tools.restart);
                // A correction may complete a call, too.
                settings.correct.max_attempts = u32::from(again == other);
            };
            let endmark = start_regenerating(wire, (call(cut), call(again)), End::Calls, set).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(false), false).await;
            let what = format!("{wire:?} {restart:?} {again} {:?}", heard.tool_calls);
            assert_eq!(reply.header("x-endmark-outcome"), Some(outcome), "{what}");
            let delivered = heard.tool_calls.first().map(|(_, arguments)| arguments.as_str());
            if outcome != "exhausted" {
                assert_eq!(delivered, Some(again), "{what}");
            }
            assert!(!heard.text.contains("bob"), "{what}");
        }
    }
}

/// A correction may add to the received text, but never shorten it. A reply that was rejected as a restart
/// was once returned as a correction.
#[tokio::test]
async fn a_correction_keeps_the_received_text() {
    let body = "The committee met on Monday and heard four reports. ".repeat(30);
    let cut = format!(r#"{{"title":"Minutes","body":"{body}"#);
    let short = r#"{"title":"Minutes","body":"Short."}"#.to_owned();
    let extended = format!(r#"{{"body":"{body}The end.","title":"Minutes"}}"#);
    for wire in [Wire::Chat, Wire::Other(ModelFormat::Responses)] {
        for (again, outcome) in [(&short, "exhausted"), (&extended, "corrected")] {
            for is_call in [false, true] {
                let part =
                    |text| if is_call { ReplyPart::Call("get_weather", text) } else { ReplyPart::Text(text) };
                let mut request = wire.request(false);
                if !is_call {
                    let format = json!({"type": "json_object"});
                    request[if wire == Wire::Chat { "response_format" } else { "text" }] =
                        if wire == Wire::Chat { format } else { json!({"format": format}) };
                }
                let set = |settings: &mut Settings| {
                    settings.resume.restart = Restart::Off;
                    settings.tools.restart = Restart::Off;
                };
                let end = if is_call { End::Calls } else { End::Turn };
                let endmark = start_regenerating(wire, (part(&cut), part(again)), end, set).await;
                let (reply, heard) = wire.ask(&endmark, &request, false).await;
                let what = format!("{wire:?} {is_call} {again}");
                assert_eq!(reply.header("x-endmark-outcome"), Some(outcome), "{what}");
                let call = heard.tool_calls.first().map_or("", |(_, arguments)| arguments.as_str());
                let delivered = if is_call { call } else { heard.text.as_str() };
                let expected = if outcome == "corrected" { again } else { &cut };
                assert_eq!(delivered, expected, "{what}");
                let reason = endmark.log(1).await[0].reason.clone();
                assert_eq!(outcome == "corrected", reason.contains("was corrected"), "{reason}");
            }
        }
    }
}
