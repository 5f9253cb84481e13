//! Decides what follows an attempt without a reply.

use std::time::Duration;

use super::backoff::{pause, requested_wait};
use crate::Ending;

/// How often and how long a request is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Further tries at the same upstream.
    pub max_retries: u32,
    /// The longest `Retry-After` to wait for. A longer one is forwarded to the client.
    pub max_wait: Duration,
}

/// Why an attempt returned no reply. No part of a reply arrived, so the complete reply may be requested again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The upstream was unreachable, or disconnected before the head of its response.
    Unreachable,
    /// It accepted the request and did not begin to respond.
    Silent,
    /// Its response cannot be read. It may have processed the request, and may bill it.
    Unreadable,
    /// The stream ended like this after the head of its response and before any part of a reply.
    EmptyStream(Ending),
    /// It responded with this status.
    Refused {
        /// The status code.
        status: u16,
        /// The value of `Retry-After`.
        retry_after: Option<Duration>,
        /// The value of `x-should-retry`, which overrides the status.
        should_retry: Option<bool>,
    },
    /// The upstream rejects the request as too long for its context window.
    TooLong,
    /// The account has no quota left. Waiting does not help.
    QuotaExhausted,
}

/// The next step after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try the same upstream again after this wait, if the budget permits it.
    Retry(Duration),
    /// Use the other upstream.
    FallBack,
    /// Pass on the upstream's error.
    GiveUp,
}

/// The remedy for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// It may pass with time.
    Time,
    /// The same upstream will fail again, but another one may succeed.
    OtherUpstream,
    /// Every upstream would reject the request, or only the client can correct it.
    None,
}

/// The attempts of one request at one upstream, before any part of a reply.
///
/// ```
/// use std::time::Duration;
/// use endmark_recovery::failover::{Delivery, Failure, Next, RetryPolicy};
/// let policy = RetryPolicy { max_retries: 1, max_wait: Duration::from_secs(10) };
/// let mut delivery = Delivery::new(policy, true);
/// assert!(matches!(delivery.next_after(Failure::Unreachable, 0), Next::Retry(_)));
/// assert_eq!(delivery.next_after(Failure::Unreachable, 0), Next::FallBack);
/// ```
#[derive(Debug, Clone)]
pub struct Delivery {
    policy: RetryPolicy,
    has_fallback: bool,
    retries: u32,
}

impl Delivery {
    /// Starts a request without attempts. `has_fallback` is whether another upstream can answer it.
    pub fn new(policy: RetryPolicy, has_fallback: bool) -> Self {
        Self { policy, has_fallback, retries: 0 }
    }

    /// Returns the next step after this failure. `random` is a uniformly distributed number.
    pub fn next_after(&mut self, failure: Failure, random: u32) -> Next {
        match remedy(failure) {
            Remedy::None => Next::GiveUp,
            Remedy::OtherUpstream => self.next_without_retry(),
            Remedy::Time if self.retries >= self.policy.max_retries => self.next_without_retry(),
            Remedy::Time => {
                let wait = match failure {
                    Failure::Refused { retry_after: Some(told), .. } if told > self.policy.max_wait => {
                        return self.next_without_retry();
                    }
                    Failure::Refused { retry_after: Some(told), .. } => requested_wait(told, random),
                    _ => pause(self.retries + 1, random),
                };
                self.retries += 1;
                Next::Retry(wait)
            }
        }
    }

    /// Returns the next step if the same upstream is not tried again, for example because of the budget.
    pub fn next_without_retry(&self) -> Next {
        if self.has_fallback { Next::FallBack } else { Next::GiveUp }
    }
}

impl Next {
    /// Returns its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry(_) => "again",
            Self::FallBack => "fall_back",
            Self::GiveUp => "give_up",
        }
    }

    /// Returns the wait before the next try, if there is one.
    pub fn wait(self) -> Option<Duration> {
        if let Self::Retry(wait) = self { Some(wait) } else { None }
    }
}

impl Failure {
    /// Whether the failure indicates that the whole upstream is in trouble, and not only this request or its sender.
    pub fn affects_upstream(self) -> bool {
        match self {
            Self::Unreachable | Self::Silent | Self::Unreadable | Self::EmptyStream(_) => true,
            Self::Refused { status, .. } => matches!(status, 502..=504 | 529),
            Self::TooLong | Self::QuotaExhausted => false,
        }
    }

    /// Returns its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Silent => "silent",
            Self::Unreadable => "unreadable",
            Self::EmptyStream(ending) => ending.name(),
            Self::Refused { .. } => "error_status",
            Self::TooLong => "too_long",
            Self::QuotaExhausted => "quota_used_up",
        }
    }

    /// Returns the status of the response, if the failure is a response.
    pub fn status(self) -> Option<u16> {
        if let Self::Refused { status, .. } = self { Some(status) } else { None }
    }

    /// Whether there may be a remedy for the failure. Any other response is the reply or a final rejection.
    pub fn has_remedy(self) -> bool {
        remedy(self) != Remedy::None
    }
}

/// OpenAI's client retries after the same statuses, and after 409, which is excluded because only the client can
/// resolve a conflict. An upstream that was silent for the whole permitted time does not get that time again. An
/// upstream with an unreadable response does not get the same request again.
fn remedy(failure: Failure) -> Remedy {
    match failure {
        Failure::Unreachable
        | Failure::EmptyStream(_)
        | Failure::Refused { should_retry: Some(true), .. } => Remedy::Time,
        Failure::Silent | Failure::Unreadable | Failure::TooLong | Failure::QuotaExhausted => {
            Remedy::OtherUpstream
        }
        Failure::Refused { status, should_retry, .. } => match status {
            408 | 429 | 500 | 502..=504 | 529 if should_retry == Some(false) => Remedy::OtherUpstream,
            // Anthropic uses 529 for an overloaded server.
            408 | 429 | 500 | 502..=504 | 529 => Remedy::Time,
            _ => Remedy::None,
        },
    }
}
