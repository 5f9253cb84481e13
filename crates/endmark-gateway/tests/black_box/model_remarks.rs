//! Sentences in the model's own message are part of the text. Remarks about the text are removed, and the
//! removal is disclosed.

use serde_json::Value;
use testkit::{Answer, Script};

use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, read_stream, stream_request};

const CUT_LETTER: &str = "Dear Ms Byrne,\n\nthe harbour was quiet and the boats lay st";
const REST: &str = "ill that morning.";
const CLOSING_REMARK: &str = "\n\nLet me know if you have any questions.";

/// Returns the text and the `endmark` object that a streaming client gets from these answers.
async fn resume_streaming(endmark: &Endmark) -> (String, Value) {
    let heard = read_stream(&endmark.ask(&stream_request(500)).await);
    assert_eq!(heard.finish.as_deref(), Some("stop"), "{heard:?}");
    (heard.text, heard.endmark.unwrap_or_default())
}

fn cut_answer(text: &str) -> Answer {
    Wire::Chat.answer(&[ReplyPart::Text(text)], End::Limit, true)
}

fn whole_answer(text: &str) -> Answer {
    Wire::Chat.answer(&[ReplyPart::Text(text)], End::Turn, true)
}

#[tokio::test]
async fn a_remark_stays_if_the_model_continues_its_own_message() {
    let rest = [REST, CLOSING_REMARK].concat();
    let script = Script::new().then(cut_answer(CUT_LETTER)).then(whole_answer(&rest));
    let endmark = Endmark::start_resuming(script).await;
    let (text, told) = resume_streaming(&endmark).await;
    assert_eq!(text, [CUT_LETTER, &rest].concat());
    assert_eq!((&told["outcome"], told.get("left_out")), (&"resumed".into(), None), "{told}");
}

#[tokio::test]
async fn the_first_words_of_a_proven_continuation_are_kept() {
    let (waiting, then) = ("Wait for it", "... and then it came, and all of the boats were there.");
    let script = Script::new()
        .then(cut_answer(CUT_LETTER))
        .then(whole_answer(REST))
        .then(cut_answer(waiting))
        .then(whole_answer(then));
    let endmark = Endmark::start_resuming(script).await;
    assert_eq!(resume_streaming(&endmark).await.0, [CUT_LETTER, REST].concat());
    let (text, told) = resume_streaming(&endmark).await;
    assert_eq!(text, [waiting, then].concat());
    assert_eq!(told.get("left_out"), None, "{told}");
}

#[tokio::test]
async fn omitted_words_of_a_continuation_are_disclosed() {
    let announced = ["Sure, here is the rest:\n\n", REST].concat();
    let script = Script::new()
        .then(cut_answer(CUT_LETTER))
        .then(Answer::error(400, "invalid_request_error", None, "assistant prefill is not supported"))
        .default_answer(whole_answer(&announced));
    // A model that gives the same answer to different quotes continues at the cut.
    let endmark = Endmark::start_resuming(script).await;
    let (text, told) = resume_streaming(&endmark).await;
    assert_eq!(text, [CUT_LETTER, REST].concat());
    // The first answer proves nothing by itself, so it is omitted completely. The announcement of the second
    // answer is omitted, too.
    assert_eq!(told["left_out"], 2 * announced.len() - REST.len(), "{told}");
}
