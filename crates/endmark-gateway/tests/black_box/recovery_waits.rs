//! How long and how often the gateway retries an upstream that should complete a cut reply.

use std::time::Duration;

use testkit::{Answer, Fault, Script};

use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, read_stream, stream_request};

const BEGINNING: &str = "The harbour was quiet";

/// Returns a stream that breaks off.
fn broken_stream() -> Answer {
    let frames = Wire::Chat.frames(&[ReplyPart::Text(BEGINNING)], None);
    let length = frames.concat().len();
    Answer::sse(frames).fault(length, Fault::Reset)
}

#[tokio::test]
async fn all_continuations_of_a_reply_share_one_waiting_time() {
    for status in [429, 503, 529] {
        let overloaded = Answer::error(status, "overloaded_error", None, "we are overloaded");
        let script = Script::new().then(broken_stream()).default_answer(overloaded);
        let endmark = Endmark::start_with(script, |settings| {
            settings.limits.reconnect = Duration::from_secs(2);
            settings.retry.max_retries = 0;
        })
        .await;
        let heard = read_stream(&endmark.ask(&stream_request(500)).await);
        assert_eq!(heard.text, BEGINNING);
        assert_eq!(heard.endmark.unwrap_or_default()["outcome"], "exhausted");
        // The first pause is 1/8 second, and each further one is twice as long. At most five fit into the
        // time limit.
        assert!((2..=6).contains(&endmark.calls()), "{status}: {}", endmark.calls());
    }
}

#[tokio::test]
async fn an_overloaded_upstream_is_asked_again_at_its_retry_time() {
    for status in [429, 503, 529] {
        let overloaded = Answer::error(status, "overloaded_error", None, "we are overloaded");
        let rest = Wire::Chat.answer(&[ReplyPart::Text(" and grey.")], End::Turn, true);
        let script =
            Script::new().then(broken_stream()).then(overloaded.header("retry-after", "1")).then(rest);
        let endmark = Endmark::start(script).await;
        let heard = read_stream(&endmark.ask(&stream_request(500)).await);
        assert_eq!(heard.text, "The harbour was quiet and grey.", "{status}: {heard:?}");
        assert_eq!((heard.finish.as_deref(), endmark.calls()), (Some("stop"), 3), "{status}");
    }
}
