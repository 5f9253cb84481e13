//! Sentences in a model's own message belong to the text, whatever they read like. Remarks about the text are removed
//! and disclosed.

use serde_json::Value;
use testkit::{Answer, Script};

use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, read_stream, stream_request};

const LETTER: &str = "Dear Ms Byrne,\n\nthe harbour was quiet and the boats lay st";
const REST: &str = "ill that morning.";
const OFFER: &str = "\n\nLet me know if you have any questions.";

/// Returns what a streaming client gets if these answers arrive one after another and the last one is whole.
async fn resume_streaming(endmark: &Endmark) -> (String, Value) {
    let heard = read_stream(&endmark.ask(&stream_request(500)).await);
    assert_eq!(heard.finish.as_deref(), Some("stop"), "{heard:?}");
    (heard.text, heard.endmark.unwrap_or_default())
}

fn cut(text: &str) -> Answer {
    Wire::Chat.answer(&[ReplyPart::Text(text)], End::Limit, true)
}

fn whole_answer(text: &str) -> Answer {
    Wire::Chat.answer(&[ReplyPart::Text(text)], End::Turn, true)
}

#[tokio::test]
async fn a_remark_stays_if_the_model_continues_its_own_message() {
    let rest = [REST, OFFER].concat();
    let script = Script::new().then(cut(LETTER)).then(whole_answer(&rest));
    let endmark = Endmark::start_resuming(script).await;
    let (text, told) = resume_streaming(&endmark).await;
    assert_eq!(text, [LETTER, &rest].concat());
    assert_eq!((&told["outcome"], told.get("left_out")), (&"resumed".into(), None), "{told}");
}

#[tokio::test]
async fn the_first_words_of_a_proven_continuation_are_kept() {
    let (waiting, then) = ("Wait for it", "... and then it came, and all of the boats were there.");
    let script =
        Script::new().then(cut(LETTER)).then(whole_answer(REST)).then(cut(waiting)).then(whole_answer(then));
    let endmark = Endmark::start_resuming(script).await;
    assert_eq!(resume_streaming(&endmark).await.0, [LETTER, REST].concat());
    let (text, told) = resume_streaming(&endmark).await;
    assert_eq!(text, [waiting, then].concat());
    assert_eq!(told.get("left_out"), None, "{told}");
}

#[tokio::test]
async fn omitted_words_of_a_continuation_are_disclosed() {
    let announced = ["Sure, here is the rest:\n\n", REST].concat();
    let script = Script::new()
        .then(cut(LETTER))
        .then(Answer::error(400, "invalid_request_error", None, "assistant prefill is not supported"))
        .default_answer(whole_answer(&announced));
    // A model that gives the same answer for different shown parts continues at the cut.
    let endmark = Endmark::start_resuming(script).await;
    let (text, told) = resume_streaming(&endmark).await;
    assert_eq!(text, [LETTER, REST].concat());
    // The first answer proved nothing by itself, so all of it is omitted, and the announcement of the second one as
    // well.
    assert_eq!(told["left_out"], 2 * announced.len() - REST.len(), "{told}");
}
