//! `[disclose] incomplete = "error"`: an incomplete reply becomes an error, because frameworks do not show
//! headers.

use endmark_gateway::{IncompleteDelivery, ResumeMode, Settings};
use serde_json::Value;
use testkit::{ModelFormat, Reply, Request, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const CUT_TEXT: &str = "The harbour was quiet, and";

fn report_incomplete_as_error(settings: &mut Settings) {
    settings.disclose.incomplete = IncompleteDelivery::Error;
    settings.resume.mode = ResumeMode::On;
    settings.resume.treat_limit_as_cap = 1;
}

async fn ask(endmark: &Endmark, wire: Wire, stream: bool) -> Reply {
    Request::post(endmark.address, wire.path(stream)).json(&wire.request(stream)).send().await.read().await
}

/// Returns a script in which every continuation is cut immediately and adds nothing.
fn exhausting_script(wire: Wire, stream: bool) -> Script {
    let first = wire.answer(&[ReplyPart::Text(CUT_TEXT)], End::Limit, stream);
    Script::new().then(first).default_answer(wire.answer(&[], End::Limit, stream))
}

#[tokio::test]
async fn an_incomplete_reply_becomes_an_error_in_the_providers_format() {
    for wire in Wire::ALL {
        let endmark = Endmark::start_with(exhausting_script(wire, false), report_incomplete_as_error).await;
        let reply = ask(&endmark, wire, false).await;
        assert_eq!(
            (reply.status, reply.header("x-should-retry")),
            (422, Some("false")),
            "{wire:?} {}",
            reply.text()
        );
        assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"));
        let error = &reply.json()["error"];
        assert_eq!(error["endmark"]["partial"], CUT_TEXT, "{wire:?}: {error}");
        assert_eq!(error["endmark"]["outcome"], "exhausted");
        assert!(error["message"].as_str().is_some_and(|message| message.contains("incomplete")), "{error}");

        let endmark = Endmark::start_with(exhausting_script(wire, true), report_incomplete_as_error).await;
        let reply = ask(&endmark, wire, true).await;
        let events = reply.json_events();
        let is_error = |event: &Value| event.get("error").is_some() || event["type"] == "error";
        assert!(events.last().is_some_and(is_error), "{wire:?}: {}", reply.text());
        assert!(reply.text().contains("endmark_reply_incomplete"), "{wire:?}: {}", reply.text());
        if wire == Wire::Other(ModelFormat::Gemini) {
            // A stream ends with the same error as an unstreamed reply.
            let error = &events.last().unwrap_or(&Value::Null)["error"];
            assert_eq!((&error["code"], &error["status"]), (&422.into(), &"INVALID_ARGUMENT".into()));
        }
    }
}

#[tokio::test]
async fn an_incomplete_reply_keeps_its_finish_reason_by_default() {
    for stream in [false, true] {
        let endmark = Endmark::start_with(exhausting_script(Wire::Chat, stream), |settings| {
            report_incomplete_as_error(settings);
            settings.disclose.incomplete = IncompleteDelivery::FinishReason;
        })
        .await;
        let reply = ask(&endmark, Wire::Chat, stream).await;
        assert_eq!(reply.status, 200);
        assert!(reply.text().contains("\"finish_reason\":\"length\""), "{}", reply.text());
    }
}

/// A cut that the client requested is not an error.
#[tokio::test]
async fn a_deliberately_cut_reply_is_not_an_error() {
    for wire in [Wire::Chat, Wire::Other(ModelFormat::Gemini)] {
        for stream in [false, true] {
            let endmark = Endmark::start_with(exhausting_script(wire, stream), |settings| {
                report_incomplete_as_error(settings);
                settings.resume.mode = ResumeMode::Warn;
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
        let endmark =
            Endmark::start_with(Script::new().default_answer(answer), report_incomplete_as_error).await;
        let reply = ask(&endmark, Wire::Chat, stream).await;
        assert!(reply.text().contains("endmark_reply_incomplete"), "{}", reply.text());
        if !stream {
            assert_eq!(reply.status, 422);
            assert_eq!(reply.json()["error"]["endmark"]["partial_calls"][0]["name"], "get_weather");
        }
    }
}
