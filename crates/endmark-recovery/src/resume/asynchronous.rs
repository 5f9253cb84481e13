//! Resumes a reply with a model that is called asynchronously (PC-5).

use endmark_text::Format;

use super::{AskFailure, Join, Reply, Resume, ResumeAsk, ResumeOutcome, ResumePolicy, ResumeStep};

/// Does the same as [`resume_if_truncated`](crate::resume_if_truncated) with an async function (PC-5). It
/// works in any runtime. Its future is `Send` if that of `ask` is.
///
/// ```
/// use endmark_recovery::{Join, Reply, ResumePolicy, Stop, resume_if_truncated_async};
/// use endmark_text::Format;
///
/// # use std::pin::pin;
/// # use std::task::{Context, Poll, Waker};
/// async fn ask_the_model(prompt: String) -> Reply {
///     assert!(prompt.contains("Continue the JSON payload"));
///     Reply::with_stop("\"b.rs\"]}", Stop::Normal)
/// }
///
/// let first = Reply::with_stop(r#"{"files": ["a.rs", "#, Stop::Limit);
/// let resumed = resume_if_truncated_async(ResumePolicy::default(), Some(Format::Json), first, |ask| async {
///     Ok((ask_the_model(ask.prompt).await, Join::Exact))
/// });
/// // Your runtime awaits this future. In this example it is ready immediately.
/// # let mut resumed = pin!(resumed);
/// # let Poll::Ready(outcome) = resumed.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { panic!() };
/// assert_eq!(outcome.into_text()?, r#"{"files": ["a.rs", "b.rs"]}"#);
/// # Ok::<(), endmark_recovery::ResumeError>(())
/// ```
pub async fn resume_if_truncated_async<Asked>(
    policy: ResumePolicy,
    demanded: Option<Format>,
    first: Reply,
    mut ask: impl FnMut(ResumeAsk) -> Asked,
) -> ResumeOutcome
where
    Asked: Future<Output = Result<(Reply, Join), AskFailure>>,
{
    let mut resume = Resume::new(policy, demanded, first);
    loop {
        match resume.next() {
            ResumeStep::Ask(request) => match ask(request).await {
                Ok((reply, join)) => resume.reply(reply, join),
                Err(failure) => resume.note_failure(failure),
            },
            ResumeStep::Done(outcome) => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::{ExhaustedCause, ResumeError, Stop, resume_if_truncated};

    type Answer = Result<(Reply, Join), AskFailure>;

    fn cut() -> Reply {
        Reply::with_stop("[1, 2", Stop::Limit)
    }

    fn run_ready(ask: impl FnMut(ResumeAsk) -> Ready<Answer> + Send) -> ResumeOutcome {
        fn is_send<T: Send>(future: T) -> T {
            future
        }
        let future = resume_if_truncated_async(ResumePolicy::default(), Some(Format::Json), cut(), ask);
        match pin!(is_send(future)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("nothing is pending"),
        }
    }

    #[test]
    fn the_asynchronous_resume_matches_the_blocking_one() {
        let answers: [fn() -> Answer; 4] = [
            || Ok((Reply::with_stop(", 3]", Stop::Normal), Join::Exact)),
            || Ok((Reply::with_stop("", Stop::Normal), Join::Exact)),
            || Err(AskFailure::Lost("the line".to_owned())),
            || Err(AskFailure::Budget("the day's".to_owned())),
        ];
        for answer in answers {
            let waited =
                resume_if_truncated(ResumePolicy::default(), Some(Format::Json), cut(), |_ask| answer());
            assert_eq!(run_ready(|_ask| ready(answer())), waited);
        }
    }

    #[test]
    fn the_asynchronous_resume_returns_whole_text_or_an_error() {
        let whole = run_ready(|_ask| ready(Ok((Reply::with_stop(", 3]", Stop::Normal), Join::Exact))));
        assert_eq!(whole.into_text(), Ok("[1, 2, 3]".to_owned()));
        let lost = run_ready(|_ask| ready(Err(AskFailure::Lost("the line".to_owned()))));
        let Err(error @ ResumeError::Exhausted(_)) = lost.into_text() else { panic!("it is whole") };
        assert_eq!(
            error.to_string(),
            "the reply stays cut: still not whole after 2 of 2 attempts: no answer arrived: the line"
        );
        let ResumeError::Exhausted(exhausted) = error else { panic!("passed") };
        assert_eq!((exhausted.cause, exhausted.merged_raw.as_str()), (ExhaustedCause::Attempts, "[1, 2"));
    }

    #[test]
    fn a_refusal_returns_no_text() {
        let refused = Reply::with_stop("I cannot", Stop::Refused);
        let outcome =
            resume_if_truncated(ResumePolicy::default(), None, refused, |_ask| panic!("it is asked"));
        assert_eq!(outcome.into_text(), Err(ResumeError::Passed));
    }
}
