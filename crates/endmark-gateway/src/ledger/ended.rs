//! How requests and calls ended, as plain values.

use endmark_recovery::{Ending, Judgement, Stop};
use endmark_wire::reply::{Choice, Received, Usage};
use endmark_wire::response::Reply;

use crate::reply::Outcome;

/// How a request ended, for metrics and log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With a reply that was looked at.
    Replied(Outcome),
    /// With an answer that passed unread.
    Unread,
    /// With the upstream's own error, under this status.
    UpstreamError(u16),
    /// With an error of Endmark's own, after an upstream was called.
    Failed,
    /// With an error of Endmark's own, before any upstream was called.
    Refused,
    /// With a client that did not wait for it.
    Cancelled,
}

impl Ended {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Replied(outcome) => outcome.word(),
            Self::Unread => "unread",
            // One word for a request without a reply, whichever server wrote the error: the pages have it, too.
            Self::UpstreamError(_) | Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether its client did not get what it asked for.
    pub(crate) fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Failed | Self::Refused | Self::UpstreamError(_) | Self::Replied(Outcome::Exhausted)
        )
    }
}

/// How a call ended.
#[derive(Debug, Clone)]
pub(crate) struct CallEnd {
    pub(crate) ending: Ending,
    pub(crate) stop: Option<Stop>,
    /// What the upstream calls the ends of its choices, in their order.
    pub(crate) finish_words: Vec<String>,
    /// None where the answer was not looked at, or cannot be judged alone.
    pub(crate) judged: Option<Judgement>,
    /// The answer passed without being looked at.
    pub(crate) unread: bool,
    pub(crate) usage: Option<Usage>,
    /// Whether the answer ended with its counts.
    pub(crate) is_counted: bool,
    /// The tier that the answer was served in.
    pub(crate) tier: Option<String>,
    /// Searches of the web that its counts lack.
    pub(crate) web_searches: u64,
    /// The model that says it answered.
    pub(crate) model: Option<String>,
}

impl CallEnd {
    /// What is known of every end.
    pub(crate) fn new(ending: Ending) -> Self {
        Self {
            ending,
            stop: None,
            finish_words: Vec::new(),
            judged: None,
            unread: false,
            usage: None,
            is_counted: false,
            tier: None,
            web_searches: 0,
            model: None,
        }
    }

    /// Of a stream that was read.
    pub(crate) fn stream(ending: Ending, received: &Received) -> Self {
        Self {
            usage: received.usage().cloned(),
            is_counted: received.is_counted(),
            model: received.model().map(str::to_owned),
            tier: received.tier().map(str::to_owned),
            ..Self::of_choices(ending, received.choices())
        }
    }

    /// Of an answer that came as a whole and was read.
    pub(crate) fn whole(reply: &Reply) -> Self {
        Self {
            usage: reply.usage.clone(),
            is_counted: true,
            model: Some(reply.model.clone()),
            tier: reply.tier.clone(),
            ..Self::of_choices(Ending::Clean, &reply.choices)
        }
    }

    fn of_choices(ending: Ending, choices: &[Choice]) -> Self {
        Self {
            stop: stop_of(choices),
            finish_words: finish_words(choices),
            web_searches: choices.iter().map(|choice| choice.web_searches).sum(),
            ..Self::new(ending)
        }
    }

    /// Of an answer that passes without being looked at: whatever it says of its own end is not known.
    pub(crate) fn unread(ending: Ending) -> Self {
        Self { unread: true, ..Self::new(ending) }
    }
}

/// Why an answer stopped: its first choice, unless the word of another is not known.
fn stop_of(choices: &[Choice]) -> Option<Stop> {
    let stop = |choice: &Choice| choice.finish.as_ref()?.stop;
    let is_unknown = choices.iter().any(|choice| stop(choice) == Some(Stop::Unknown));
    if is_unknown { Some(Stop::Unknown) } else { choices.first().and_then(stop) }
}

/// What an answer calls the ends of its choices, of those that have ended.
pub(super) fn finish_words(choices: &[Choice]) -> Vec<String> {
    choices.iter().filter_map(|choice| Some(choice.finish.as_ref()?.word.clone())).collect()
}
