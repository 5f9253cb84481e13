//! What follows a try that brought no reply.

use std::time::Duration;

use super::backoff::{pause, wait_as_told};
use crate::Ending;

/// How often and how long a request is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Further tries at the same upstream.
    pub max_retries: u32,
    /// The longest `Retry-After` that is waited for; a longer one is no reason to keep a client waiting.
    pub max_wait: Duration,
}

/// Why a try brought no reply. Nothing of a reply was there: its text may be asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The upstream could not be reached, or broke off before the head of its answer.
    Unreachable,
    /// It took the request and did not begin to answer.
    Silent,
    /// It answered, and the answer cannot be read: it may have worked on the request, and bill it.
    Unreadable,
    /// Behind the head of its answer its stream went wrong so, before anything of a reply came.
    Fruitless(Ending),
    /// It answered with this status.
    Refused {
        /// The status code.
        status: u16,
        /// What `Retry-After` says.
        retry_after: Option<Duration>,
        /// What `x-should-retry` says, which counts for more than the status.
        should_retry: Option<bool>,
    },
    /// It refuses the request as too long for its context.
    TooLong,
    /// The account has nothing left: waiting does not help.
    QuotaUsedUp,
}

/// What to do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try the same upstream again after this wait, if the budget allows it.
    Again(Duration),
    /// Let the other upstream answer.
    FallBack,
    /// Pass on what the upstream said.
    GiveUp,
}

/// How a failure is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// It may pass in a moment.
    Time,
    /// Another upstream may be able to do it, the same one is not.
    Another,
    /// Everybody would refuse it, or only the client can mend it.
    None,
}

/// The tries of one request at one upstream, before there is any reply.
///
/// ```
/// use std::time::Duration;
/// use endmark_recovery::failover::{Delivery, Failure, Next, RetryPolicy};
/// let policy = RetryPolicy { max_retries: 1, max_wait: Duration::from_secs(10) };
/// let mut delivery = Delivery::new(policy, true);
/// assert!(matches!(delivery.failed(Failure::Unreachable, 0), Next::Again(_)));
/// assert_eq!(delivery.failed(Failure::Unreachable, 0), Next::FallBack);
/// ```
#[derive(Debug, Clone)]
pub struct Delivery {
    policy: RetryPolicy,
    has_fallback: bool,
    retries: u32,
}

impl Delivery {
    /// A request that was not tried yet; `has_fallback` says whether another upstream can answer it.
    pub fn new(policy: RetryPolicy, has_fallback: bool) -> Self {
        Self { policy, has_fallback, retries: 0 }
    }

    /// What to do after this failure. `random` is any number, evenly spread.
    pub fn failed(&mut self, failure: Failure, random: u32) -> Next {
        match remedy(failure) {
            Remedy::None => Next::GiveUp,
            Remedy::Another => self.otherwise(),
            Remedy::Time if self.retries >= self.policy.max_retries => self.otherwise(),
            Remedy::Time => {
                let wait = match failure {
                    Failure::Refused { retry_after: Some(told), .. } if told > self.policy.max_wait => {
                        return self.otherwise();
                    }
                    Failure::Refused { retry_after: Some(told), .. } => wait_as_told(told, random),
                    _ => pause(self.retries + 1, random),
                };
                self.retries += 1;
                Next::Again(wait)
            }
        }
    }

    /// What to do where the same upstream is not tried again: the budget may say so, too.
    pub fn otherwise(&self) -> Next {
        if self.has_fallback { Next::FallBack } else { Next::GiveUp }
    }
}

impl Next {
    /// Returns its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Again(_) => "again",
            Self::FallBack => "fall_back",
            Self::GiveUp => "give_up",
        }
    }

    /// Returns the wait before the next try, if there is one.
    pub fn wait(self) -> Option<Duration> {
        if let Self::Again(wait) = self { Some(wait) } else { None }
    }
}

impl Failure {
    /// Whether it says that the upstream as a whole is unwell, and not this request or its sender.
    pub fn is_of_upstream(self) -> bool {
        match self {
            Self::Unreachable | Self::Silent | Self::Unreadable | Self::Fruitless(_) => true,
            Self::Refused { status, .. } => matches!(status, 502..=504 | 529),
            Self::TooLong | Self::QuotaUsedUp => false,
        }
    }

    /// Returns its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Silent => "silent",
            Self::Unreadable => "unreadable",
            Self::Fruitless(ending) => ending.name(),
            Self::Refused { .. } => "error_status",
            Self::TooLong => "too_long",
            Self::QuotaUsedUp => "quota_used_up",
        }
    }

    /// Returns the status of its answer, if it is known by that.
    pub fn status(self) -> Option<u16> {
        if let Self::Refused { status, .. } = self { Some(status) } else { None }
    }

    /// Whether it is one at all: any other answer is the reply, or a refusal that stands.
    pub fn is_worth_a_remedy(self) -> bool {
        remedy(self) != Remedy::None
    }
}

/// The statuses are those after which OpenAI's own client tries again, without 409: a conflict is the client's
/// to settle. An upstream that was silent for the whole time allowed is not given that time twice, nor one that answered asked to
/// work on the same again.
fn remedy(failure: Failure) -> Remedy {
    match failure {
        Failure::Unreachable | Failure::Fruitless(_) | Failure::Refused { should_retry: Some(true), .. } => {
            Remedy::Time
        }
        Failure::Silent | Failure::Unreadable | Failure::TooLong | Failure::QuotaUsedUp => Remedy::Another,
        Failure::Refused { status, should_retry, .. } => match status {
            408 | 429 | 500 | 502..=504 | 529 if should_retry == Some(false) => Remedy::Another,
            // 529 is Anthropic's word for an overloaded server.
            408 | 429 | 500 | 502..=504 | 529 => Remedy::Time,
            _ => Remedy::None,
        },
    }
}
