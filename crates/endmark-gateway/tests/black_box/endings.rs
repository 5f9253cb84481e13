//! Unusual endings of replies. Each is judged correctly, and only once.

use std::time::Duration;

use endmark_gateway::ResumeMode;
use endmark_store::FinalStatus;
use serde_json::{Value, json};
use testkit::{
    Answer, ChatFrames, Fault, PrefillBehaviour, PromptBehaviour, Respond, ResponseOutcome, Script,
    ScriptedModel,
};

use crate::support::{Endmark, finish, read_stream, request, stream_request, text};

const STORY: &str = "The harbour was quiet that morning, and the gulls had not yet found the boats. \
Mira counted the nets twice, because her father had taught her to count everything twice.";

/// Returns the text, the arguments and the finish reason of the client's reply.
async fn ask_for_ending(
    endmark: &Endmark,
    mut body: Value,
    stream: bool,
) -> (String, String, Option<String>) {
    body["stream"] = json!(stream);
    let reply = endmark.ask(&body).await;
    if stream {
        let read = read_stream(&reply);
        return (read.text, read.arguments, read.finish);
    }
    let call = &reply.json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"];
    (text(&reply), call.as_str().unwrap_or_default().to_owned(), Some(finish(&reply)))
}

async fn start_resuming(model: impl Respond) -> Endmark {
    Endmark::start_with(model, |settings| settings.resume.mode = ResumeMode::On).await
}

#[tokio::test]
async fn a_text_cut_by_its_limit_is_completed() {
    for stream in [true, false] {
        let endmark = start_resuming(ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes)).await;
        let (text, _, finish) = ask_for_ending(&endmark, request(7), stream).await;
        assert_eq!((text.as_str(), finish.as_deref()), (STORY, Some("stop")), "{stream}");
    }
}

#[tokio::test]
async fn tool_arguments_cut_by_the_limit_are_completed() {
    let arguments = r#"{"path": "sea.txt", "content": "The harbour was quiet that morning."}"#;
    for stream in [true, false] {
        let endmark = start_resuming(
            ScriptedModel::new(arguments).calls("write_file").prefill(PrefillBehaviour::Rejects),
        )
        .await;
        let mut body = request(9);
        body["tools"] = json!([{"type": "function", "function": {"name": "write_file"}}]);
        let (_, came, finish) = ask_for_ending(&endmark, body, stream).await;
        assert_eq!((came.as_str(), finish.as_deref()), (arguments, Some("tool_calls")), "{stream}");
    }
}

/// The provider reports `stop` although the limit cut the text. The grammar and the token count contradict
/// it.
#[tokio::test]
async fn a_false_finish_reason_is_detected() {
    let document = r#"{"title": "Harbour", "tags": ["gulls", "nets", "boats"], "count": 42}"#;
    let (first, rest) = document.split_at(30);
    for stream in [true, false] {
        let answer = |text: &str| {
            if stream {
                Answer::sse(ChatFrames::new().text(text).finish("stop").done())
            } else {
                Answer::json(200, &testkit::chat_reply(text, "stop", (3, 9)))
            }
        };
        let endmark = start_resuming(Script::new().then(answer(first)).default_answer(answer(rest))).await;
        let mut body = request(500);
        body["response_format"] = json!({"type": "json_object"});
        let (text, _, finish) = ask_for_ending(&endmark, body, stream).await;
        assert_eq!((text.as_str(), finish.as_deref()), (document, Some("stop")), "{stream}");
    }
}

#[tokio::test]
async fn a_reply_of_only_reasoning_gets_more_room() {
    for stream in [true, false] {
        let model = ScriptedModel::new(STORY).reasoning("First I think of the sea and of all its boats.");
        let endmark = start_resuming(model).await;
        let (text, _, finish) = ask_for_ending(&endmark, request(5), stream).await;
        assert_eq!((text.as_str(), finish.as_deref()), (STORY, Some("stop")), "{stream}");
        assert_eq!(endmark.calls(), 2);
    }
}

#[tokio::test]
async fn a_repeated_identical_cut_ends_the_recovery() {
    for stream in [true, false] {
        let model = ScriptedModel::new(STORY)
            .prefill(PrefillBehaviour::Rejects)
            .with_prompt_behaviour(PromptBehaviour::Restarts)
            .own_limit(7);
        let endmark = start_resuming(model).await;
        let (text, _, finish) = ask_for_ending(&endmark, request(7), stream).await;
        assert_eq!(
            (text, finish.as_deref()),
            (testkit::tokens(STORY)[..7].concat(), Some("length")),
            "{stream}"
        );
        assert!(endmark.calls() <= 4, "{}", endmark.calls());
        let log = endmark.log(1).await;
        assert_eq!((log.len(), log[0].final_status), (1, FinalStatus::Exhausted));
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_upstream_call() {
    let frames = STORY.split_inclusive(' ').fold(ChatFrames::new(), ChatFrames::text).finish("stop").done();
    let slow = Answer::sse(frames).pause(Duration::from_millis(50));
    let endmark = Endmark::start(Script::new().default_answer(slow)).await;
    let mut open = endmark.chat(&stream_request(50)).send().await;
    open.next_frame().await.unwrap();
    open.reset();
    assert_eq!(endmark.upstream.wait_for_outcome(0).await, ResponseOutcome::ClientGone);
    assert_eq!(endmark.calls(), 1);
}

#[tokio::test]
async fn a_stream_over_the_size_limit_is_neither_mended_nor_whole() {
    let long = STORY.repeat(4);
    let frames = long.split_inclusive(' ').fold(ChatFrames::new(), ChatFrames::text).cut();
    let endmark = Endmark::start_with(Script::new().default_answer(Answer::sse(frames)), |settings| {
        settings.limits.reply_bytes = 400;
    })
    .await;
    let read = read_stream(&endmark.ask(&stream_request(500)).await);
    assert_eq!((read.text, read.is_done, read.finish), (long, false, None));
    assert_eq!(read.error.unwrap()["type"], "endmark_reply_cut");
    assert_eq!(endmark.calls(), 1, "what is not kept cannot be continued");
}

/// If a reply is forwarded without parsing, its HTTP body ends exactly as the upstream's did.
#[tokio::test]
async fn a_frame_over_the_size_limit_passes_unchanged() {
    let frames = ChatFrames::new().text(STORY).text(&STORY.repeat(20)).finish("stop").done();
    let bytes = frames.concat().into_bytes();
    let cases = [
        (Answer::sse(frames.clone()), true),
        (Answer::sse(frames.clone()).fault(2_500, Fault::Stall), false),
        (Answer::sse(frames.clone()).fault(2_500, Fault::Close), false),
        (Answer::sse(frames).fault(2_500, Fault::Reset), false),
    ];
    for (answer, is_whole) in cases {
        let endmark = Endmark::start_with(Script::new().default_answer(answer), |settings| {
            settings.limits.reply_bytes = 1_000;
            settings.limits.idle = Duration::from_millis(300);
        })
        .await;
        let reply = endmark.ask(&stream_request(500)).await;
        assert_eq!((reply.is_complete, reply.body == bytes), (is_whole, is_whole));
        assert!(bytes.starts_with(&reply.body));
        assert_eq!(endmark.calls(), 1);
    }
}
