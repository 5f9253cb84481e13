//! A second upstream answers if the first cannot, and completes the replies that the first began.

use std::time::Duration;

use endmark_gateway::Settings;
use endmark_store::FinalStatus;
use testkit::{
    Answer, ChatFrames, Fault, PrefillBehaviour, PromptBehaviour, Respond, Script, ScriptedModel, Upstream,
    chat_reply,
};

use crate::support::{Endmark, read_stream, request, stream_request, text};

const STORY: &str = "The harbour was quiet that morning, and the gulls had not yet found the boats. \
Mira counted the nets twice, because her father had taught her to count everything twice.";

/// Starts a gateway with two upstreams. The second has its own key and model.
async fn start_with_fallback(
    first: impl Respond,
    second: &Upstream,
    change: impl FnOnce(&mut Settings),
) -> Endmark {
    Endmark::with_fallback(first, second, ("key-of-the-second", "its-model"), change).await
}

fn overloaded_answer() -> Answer {
    Answer::error(503, "server_error", Some("overloaded"), "overloaded")
}

#[tokio::test]
async fn the_fallback_answers_with_its_own_key_and_model() {
    let second = Upstream::start(ScriptedModel::new("Yes.")).await;
    let endmark =
        start_with_fallback(Script::new().default_answer(overloaded_answer()), &second, |_| {}).await;
    let reply = endmark.chat(&request(50)).header("cookie", "secret=1").send().await.read().await;
    assert_eq!((reply.status, text(&reply).as_str()), (200, "Yes."));
    assert_eq!(reply.header("x-endmark-upstream"), Some("second"));
    assert_eq!(reply.header("x-endmark-retries"), Some("2"));
    let sent_request = &second.requests()[0];
    assert_eq!(sent_request.header("authorization"), Some("Bearer key-of-the-second"));
    assert_eq!(sent_request.header("cookie"), None);
    assert_eq!(sent_request.json()["model"], "its-model");
    let own = endmark.upstream.requests();
    assert_eq!(own[0].header("authorization"), Some("Bearer key"));
    assert!(own.iter().all(|request| request.json()["model"] == "scripted"));
}

#[tokio::test]
async fn a_fallback_without_a_key_does_not_get_the_clients_key() {
    let second = Upstream::start(ScriptedModel::new("Yes.")).await;
    let endmark =
        start_with_fallback(Script::new().default_answer(overloaded_answer()), &second, |settings| {
            settings.upstreams[1].api_key = None;
        })
        .await;
    assert_eq!(endmark.ask(&request(50)).await.status, 200);
    assert_eq!(second.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn if_both_upstreams_fail_the_client_gets_the_first_error() {
    let second = Upstream::start(Script::new().default_answer(Answer::unauthorized())).await;
    let endmark =
        start_with_fallback(Script::new().default_answer(overloaded_answer()), &second, |_| {}).await;
    let reply = endmark.ask(&request(50)).await;
    assert_eq!((reply.status, reply.body), (503, overloaded_answer().body()));
    assert_eq!(reply.headers.iter().find(|(name, _)| name == "x-endmark-upstream"), None);
}

#[tokio::test]
async fn a_client_error_is_not_sent_to_the_fallback() {
    for refusal in
        [Answer::unauthorized(), Answer::error(400, "invalid_request_error", None, "no such field")]
    {
        let second = Upstream::start(ScriptedModel::new("Yes.")).await;
        let bytes = refusal.body();
        let endmark = start_with_fallback(Script::new().default_answer(refusal), &second, |_| {}).await;
        assert_eq!(endmark.ask(&request(50)).await.body, bytes);
        assert_eq!((endmark.calls(), second.requests().len()), (1, 0));
    }
}

#[tokio::test]
async fn a_whole_reply_of_the_fallback_is_byte_identical() {
    let frames = testkit::chat_stream(&["Yes", ", ", "it is."], "stop");
    let second = Upstream::start(Script::new().default_answer(Answer::sse(frames.clone()))).await;
    let endmark =
        start_with_fallback(Script::new().default_answer(overloaded_answer()), &second, |_| {}).await;
    assert_eq!(endmark.ask(&stream_request(50)).await.body, frames.concat().into_bytes());
}

/// Covers all endings of a stream that the first upstream begins but does not finish.
#[tokio::test]
async fn the_fallback_finishes_a_stream_of_the_first_upstream() {
    let words = || STORY.split_inclusive(' ').take(9).fold(ChatFrames::new(), ChatFrames::text);
    let whole_frames = |frames: Vec<String>| (frames.concat().len(), Answer::sse(frames));
    let (length, cut) = whole_frames(words().cut());
    let endings = [
        ("reset", cut.clone().fault(length, Fault::Reset), "dropped"),
        ("closed", cut.clone().fault(length, Fault::Close), "dropped"),
        ("without a terminal event", cut.clone(), "dropped"),
        ("silent", cut.clone().fault(length, Fault::Stall), "stalled"),
        ("malformed transfer coding", cut.clone().fault(length, Fault::MalformedChunk), "dropped"),
        ("error event", cut.clone().add_part(testkit::error_event("overloaded")), "upstream_error"),
        (
            "broken chunk",
            cut.add_part("data: {\"choices\": [{\"delta\": {\"content\":\n\n"),
            "upstream_error",
        ),
    ];
    for (name, first, ending) in endings {
        let second = Upstream::start(ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes)).await;
        let script = Script::new().then(first).default_answer(overloaded_answer());
        let endmark = start_with_fallback(script, &second, |settings| {
            settings.limits.idle = Duration::from_millis(300);
        })
        .await;
        let reply = endmark.ask(&stream_request(500)).await;
        let read = read_stream(&reply);
        assert_eq!(read.text, STORY, "{name}");
        assert_eq!((read.finish.as_deref(), read.is_done, read.error), (Some("stop"), true, None), "{name}");
        // If the network may be the cause, the first upstream gets a second attempt.
        assert_eq!(endmark.calls(), if ending == "dropped" { 2 } else { 1 }, "{name}");
        let disclosed = read.endmark.unwrap();
        assert_eq!(
            (&disclosed["outcome"], &disclosed["upstream"]),
            (&"resumed".into(), &"second".into()),
            "{name}"
        );
        assert_eq!(second.requests()[0].header("authorization"), Some("Bearer key-of-the-second"), "{name}");
        let log = endmark.log(1).await;
        assert_eq!((log.len(), log[0].final_status), (1, FinalStatus::Resolved), "{name}");
        let shown = endmark.store.show(disclosed["request"].as_str().unwrap()).unwrap().unwrap();
        let pieces: Vec<(&str, &str)> =
            shown.pieces.iter().map(|piece| (&*piece.piece.ending, &*piece.piece.strategy)).collect();
        assert_eq!(pieces, [(ending, "first"), ("clean", "prefill@second")], "{name}");
    }
}

#[tokio::test]
async fn an_upstream_that_breaks_twice_is_replaced() {
    let words: Vec<&str> = STORY.split_inclusive(' ').collect();
    let broken =
        |words: &[&str]| Answer::sse(words.iter().copied().fold(ChatFrames::new(), ChatFrames::text).cut());
    let second = Upstream::start(ScriptedModel::new(STORY)).await;
    let script = Script::new().then(broken(&words[..9])).default_answer(broken(&words[9..18]));
    let endmark = start_with_fallback(script, &second, |_| {}).await;
    let read = read_stream(&endmark.ask(&stream_request(500)).await);
    assert_eq!((read.text.as_str(), read.is_done), (STORY, true));
    assert_eq!((endmark.calls(), second.requests().len()), (2, 1));
}

/// A refusal by one upstream shows nothing about the other, which may support prefill.
#[tokio::test]
async fn the_prefill_support_of_the_fallback_is_learned_separately() {
    let words = STORY.split_inclusive(' ').take(9).fold(ChatFrames::new(), ChatFrames::text);
    let refused = Answer::error(400, "invalid_request_error", None, "the last message must be the user's");
    let script =
        Script::new().then(Answer::sse(words.cut())).then(refused).default_answer(overloaded_answer());
    let model = ScriptedModel::new(STORY)
        .prefill(PrefillBehaviour::Rejects)
        .with_prompt_behaviour(PromptBehaviour::Restarts);
    let second = Upstream::start(model).await;
    let endmark = start_with_fallback(script, &second, |_| {}).await;
    let read = read_stream(&endmark.ask(&stream_request(500)).await);
    assert_eq!((read.text.as_str(), read.is_done), (STORY, true));
    assert_eq!((endmark.calls(), second.requests().len()), (3, 2));
}

#[tokio::test]
async fn the_fallback_finishes_its_own_reply() {
    let words = STORY.split_inclusive(' ').take(9).fold(ChatFrames::new(), ChatFrames::text).cut();
    let length = words.concat().len();
    let rest = Answer::sse(testkit::chat_stream(&["and the boats were there."], "stop"));
    let script = Script::new().then(Answer::sse(words).fault(length, Fault::Stall)).default_answer(rest);
    let second = Upstream::start(script).await;
    let endmark =
        start_with_fallback(Script::new().default_answer(overloaded_answer()), &second, |settings| {
            settings.limits.idle = Duration::from_millis(300);
        })
        .await;
    let read = read_stream(&endmark.ask(&stream_request(500)).await);
    assert!(read.is_done && read.text.ends_with("and the boats were there."), "{}", read.text);
    assert_eq!((endmark.calls(), second.requests().len()), (3, 2));
    assert_eq!(second.requests()[1].header("authorization"), Some("Bearer key-of-the-second"));
}

#[tokio::test]
async fn a_stream_that_no_upstream_finishes_ends_in_an_error() {
    let second = Upstream::start(Script::new().default_answer(Answer::unauthorized())).await;
    let cut = Answer::sse(ChatFrames::new().text("The harbour ").text("was").cut());
    let endmark =
        start_with_fallback(Script::new().then(cut).default_answer(overloaded_answer()), &second, |_| {})
            .await;
    let reply = endmark.ask(&stream_request(500)).await;
    let read = read_stream(&reply);
    assert_eq!((read.text.as_str(), read.is_done, read.finish), ("The harbour was", false, None));
    assert_eq!(read.error.unwrap()["type"], "endmark_reply_cut");
    assert_eq!(endmark.log(1).await[0].final_status, FinalStatus::Exhausted);
}

#[tokio::test]
async fn an_unreachable_upstream_is_skipped_until_it_is_back() {
    let second = Upstream::start(ScriptedModel::new("Yes.")).await;
    let back = Answer::json(200, &chat_reply("I am back.", "stop", (1, 1)));
    let script =
        (0..4).fold(Script::new(), |script, _| script.then(overloaded_answer())).default_answer(back);
    let endmark = start_with_fallback(script, &second, |settings| {
        settings.retry.cooldown = Duration::from_millis(1_500);
    })
    .await;
    assert_eq!(text(&endmark.ask(&request(50)).await), "Yes.");
    assert_eq!(text(&endmark.ask(&request(50)).await), "Yes.");
    assert_eq!(endmark.calls(), 4);
    assert_eq!(text(&endmark.ask(&request(50)).await), "Yes.");
    assert_eq!(endmark.calls(), 4, "it is left alone");
    tokio::time::sleep(Duration::from_millis(1_600)).await;
    assert_eq!(text(&endmark.ask(&request(50)).await), "I am back.");
    assert_eq!(text(&endmark.ask(&request(50)).await), "I am back.");
}

/// The wait for the head is subtracted from the timeout of the first byte.
#[tokio::test]
async fn the_head_and_the_first_byte_of_a_stream_share_one_timeout() {
    let second =
        Upstream::start(Script::new().default_answer(Answer::sse(testkit::chat_stream(&["Yes."], "stop"))))
            .await;
    let slow = Answer::sse(testkit::chat_stream(&["Late."], "stop"))
        .wait(Duration::from_millis(1_400))
        .wait_after_head(Duration::from_millis(1_400));
    let endmark = start_with_fallback(Script::new().default_answer(slow), &second, |settings| {
        settings.limits.first_token = Duration::from_secs(2);
    })
    .await;
    let reply = endmark.ask(&stream_request(50)).await;
    assert_eq!(
        (read_stream(&reply).text.as_str(), reply.header("x-endmark-upstream")),
        ("Yes.", Some("second"))
    );
}

/// Each request waits the full timeout for a silent upstream. After four requests the upstream is skipped.
#[tokio::test]
async fn a_silent_upstream_counts_as_unreachable() {
    let second =
        Upstream::start(Script::new().default_answer(Answer::sse(testkit::chat_stream(&["Yes."], "stop"))))
            .await;
    let endmark = start_with_fallback(
        Script::new().default_answer(Answer::without_status(Fault::Stall)),
        &second,
        |settings| {
            settings.limits.first_token = Duration::from_millis(50);
            settings.retry.cooldown = Duration::from_mins(10);
        },
    )
    .await;
    for _ in 0..8 {
        assert!(read_stream(&endmark.ask(&stream_request(50)).await).is_done);
    }
    assert_eq!((endmark.calls(), second.requests().len()), (4, 8));
}
