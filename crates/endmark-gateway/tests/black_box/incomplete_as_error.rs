//! `[disclose] incomplete = "error"`: a reply that could not be made whole is an error, because frameworks do not
//! show headers.

use endmark_gateway::{Incomplete, Mode, Settings};
use serde_json::Value;
use testkit::{Dialect, Reply, Request, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const BEGUN: &str = "The harbour was quiet, and";

fn as_errors(settings: &mut Settings) {
    settings.disclose.incomplete = Incomplete::Error;
    settings.resume.mode = Mode::On;
    settings.resume.treat_limit_as_cap = 1;
}

async fn ask(endmark: &Endmark, wire: Wire, stream: bool) -> Reply {
    Request::post(endmark.address, wire.path(stream)).json(&wire.request(stream)).send().await.read().await
}

/// Requesting the rest fails: each answer is cut at once and adds nothing.
fn exhausting_script(wire: Wire, stream: bool) -> Script {
    let first = wire.answer(&[ReplyPart::Text(BEGUN)], End::Limit, stream);
    Script::new().then(first).default_answer(wire.answer(&[], End::Limit, stream))
}

#[tokio::test]
async fn an_incomplete_reply_becomes_an_error_in_the_providers_format() {
    for wire in Wire::ALL {
        let endmark = Endmark::start_with(exhausting_script(wire, false), as_errors).await;
        let reply = ask(&endmark, wire, false).await;
        assert_eq!(
            (reply.status, reply.header("x-should-retry")),
            (422, Some("false")),
            "{wire:?} {}",
            reply.text()
        );
        assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"));
        let error = &reply.json()["error"];
        assert_eq!(error["endmark"]["partial"], BEGUN, "{wire:?}: {error}");
        assert_eq!(error["endmark"]["outcome"], "exhausted");
        assert!(error["message"].as_str().is_some_and(|message| message.contains("incomplete")), "{error}");

        let endmark = Endmark::start_with(exhausting_script(wire, true), as_errors).await;
        let reply = ask(&endmark, wire, true).await;
        let events = reply.json_events();
        let is_error = |event: &Value| event.get("error").is_some() || event["type"] == "error";
        assert!(events.last().is_some_and(is_error), "{wire:?}: {}", reply.text());
        assert!(reply.text().contains("endmark_reply_incomplete"), "{wire:?}: {}", reply.text());
        if wire == Wire::Other(Dialect::Gemini) {
            // The same error as for a reply that is not a stream.
            let error = &events.last().unwrap_or(&Value::Null)["error"];
            assert_eq!((&error["code"], &error["status"]), (&422.into(), &"INVALID_ARGUMENT".into()));
        }
    }
}

#[tokio::test]
async fn an_incomplete_reply_keeps_its_finish_reason_by_default() {
    for stream in [false, true] {
        let endmark = Endmark::start_with(exhausting_script(Wire::Chat, stream), |settings| {
            as_errors(settings);
            settings.disclose.incomplete = Incomplete::FinishReason;
        })
        .await;
        let reply = ask(&endmark, Wire::Chat, stream).await;
        assert_eq!(reply.status, 200);
        assert!(reply.text().contains("\"finish_reason\":\"length\""), "{}", reply.text());
    }
}

/// A cut that the client wanted is not an error.
#[tokio::test]
async fn a_deliberately_cut_reply_is_not_an_error() {
    for wire in [Wire::Chat, Wire::Other(Dialect::Gemini)] {
        for stream in [false, true] {
            let endmark = Endmark::start_with(exhausting_script(wire, stream), |settings| {
                as_errors(settings);
                settings.resume.mode = Mode::Warn;
            })
            .await;
            let reply = ask(&endmark, wire, stream).await;
            assert_eq!((reply.status, endmark.calls()), (200, 1));
            assert!(!reply.text().contains("endmark_reply_incomplete"), "{}", reply.text());
        }
    }
}

/// The reply was cut after a whole call, so another call may be missing.
#[tokio::test]
async fn a_reply_that_may_lack_calls_is_an_error() {
    for stream in [false, true] {
        let call = ReplyPart::Call("get_weather", r#"{"city":"Berlin","unit":"celsius"}"#);
        let answer = Wire::Chat.answer(&[call], End::Limit, stream);
        let endmark = Endmark::start_with(Script::new().default_answer(answer), as_errors).await;
        let reply = ask(&endmark, Wire::Chat, stream).await;
        assert!(reply.text().contains("endmark_reply_incomplete"), "{}", reply.text());
        if !stream {
            assert_eq!(reply.status, 422);
            assert_eq!(reply.json()["error"]["endmark"]["partial_calls"][0]["name"], "get_weather");
        }
    }
}
