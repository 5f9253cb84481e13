//! How requests and calls ended, as plain values.

use endmark_recovery::{Ending, Judgement, Stop};
use endmark_wire::reply::{Choice, Usage};

use crate::reply::Outcome;

/// How a request ended, for metrics and log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With a reply that was looked at.
    Replied(Outcome),
    /// With an answer that passed unread.
    Unread,
    /// With the upstream's own refusal.
    Refused,
    /// With an error of Endmark's own: no upstream gave a reply.
    Failed,
    /// With a client that did not wait for it.
    Cancelled,
}

impl Ended {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Replied(outcome) => outcome.word(),
            Self::Unread => "unread",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether its client did not get what it asked for.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Refused | Self::Replied(Outcome::Exhausted))
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
            model: None,
        }
    }

    /// Of an answer that was read, with what it says of itself.
    pub(crate) fn read(
        ending: Ending,
        choices: &[Choice],
        usage: Option<&Usage>,
        model: Option<&str>,
    ) -> Self {
        Self {
            stop: choices.first().and_then(|choice| choice.finish.as_ref()?.stop),
            finish_words: finish_words(choices),
            usage: usage.cloned(),
            model: model.map(str::to_owned),
            ..Self::new(ending)
        }
    }

    /// Of an answer that passes without being looked at: whatever it says of its own end is not known.
    pub(crate) fn unread(ending: Ending) -> Self {
        Self { unread: true, ..Self::new(ending) }
    }
}

/// What an answer calls the ends of its choices, of those that have ended.
pub(super) fn finish_words(choices: &[Choice]) -> Vec<String> {
    choices.iter().filter_map(|choice| Some(choice.finish.as_ref()?.word.clone())).collect()
}
