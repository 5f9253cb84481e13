//! How requests and calls ended.

use endmark_recovery::{Ending, Judgement, Stop};
use endmark_wire::reply::{Choice, Received, Usage};
use endmark_wire::response::Reply;

use crate::reply::Outcome;

/// How a request ended, for metrics and the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// The gateway examined the reply.
    Replied(Outcome),
    /// The response was forwarded unread.
    Unread,
    /// The upstream returned an error with this status.
    UpstreamError(u16),
    /// The gateway returned an error after an upstream call.
    Failed,
    /// The gateway returned an error before any upstream call.
    Refused,
    /// The client disconnected.
    Cancelled,
}

impl RequestEnd {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Replied(outcome) => outcome.name(),
            Self::Unread => "unread",
            // All requests without a reply have the same name, whichever server wrote the error. The console
            // uses that name, too.
            Self::UpstreamError(_) | Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the client did not get what it requested.
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
    /// The upstream's stop reason of each choice, in order.
    pub(crate) finish_reasons: Vec<String>,
    /// The verdict. `None` if the response was not examined, or contains only a part of the reply.
    pub(crate) judgement: Option<Judgement>,
    /// Whether the response was forwarded unread.
    pub(crate) is_unread: bool,
    pub(crate) usage: Option<Usage>,
    /// Whether the response ended with its usage.
    pub(crate) is_counted: bool,
    /// The service tier in the response.
    pub(crate) tier: Option<String>,
    /// Web searches that the usage does not include.
    pub(crate) web_searches: u64,
    /// The model named in the response.
    pub(crate) model: Option<String>,
}

impl CallEnd {
    /// Creates a record that contains only the ending.
    pub(crate) fn new(ending: Ending) -> Self {
        Self {
            ending,
            stop: None,
            finish_reasons: Vec::new(),
            judgement: None,
            is_unread: false,
            usage: None,
            is_counted: false,
            tier: None,
            web_searches: 0,
            model: None,
        }
    }

    /// Creates the record of a stream that was read.
    pub(crate) fn from_stream(ending: Ending, received: &Received) -> Self {
        Self {
            usage: received.usage().cloned(),
            is_counted: received.is_counted(),
            model: received.model().map(str::to_owned),
            tier: received.tier().map(str::to_owned),
            ..Self::from_choices(ending, received.choices())
        }
    }

    /// Creates the record of a complete response that was read.
    pub(crate) fn from_reply(reply: &Reply) -> Self {
        Self {
            usage: reply.usage.clone(),
            is_counted: true,
            model: Some(reply.model.clone()),
            tier: reply.tier.clone(),
            ..Self::from_choices(Ending::Clean, &reply.choices)
        }
    }

    fn from_choices(ending: Ending, choices: &[Choice]) -> Self {
        Self {
            stop: first_stop(choices),
            finish_reasons: finish_reasons(choices),
            web_searches: choices.iter().map(|choice| choice.web_searches).sum(),
            ..Self::new(ending)
        }
    }

    /// Creates the record of a response that is forwarded unread, so its stop reason is unknown.
    pub(crate) fn unread(ending: Ending) -> Self {
        Self { is_unread: true, ..Self::new(ending) }
    }
}

/// Returns the stop reason of the first choice, or the unknown reason of any other choice.
fn first_stop(choices: &[Choice]) -> Option<Stop> {
    let stop = |choice: &Choice| choice.finish.as_ref()?.stop;
    let is_unknown = choices.iter().any(|choice| stop(choice) == Some(Stop::Unknown));
    if is_unknown { Some(Stop::Unknown) } else { choices.first().and_then(stop) }
}

/// Returns the stop reasons of the choices that have ended.
pub(super) fn finish_reasons(choices: &[Choice]) -> Vec<String> {
    choices.iter().filter_map(|choice| Some(choice.finish.as_ref()?.reason.clone())).collect()
}
