//! Decides the next step after an attempt without a reply.

use std::time::Duration;

use super::backoff::{pause, requested_wait};
use crate::Ending;

/// How many times and how long a request is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of retries at the same upstream.
    pub max_retries: u32,
    /// The longest `Retry-After` that is waited for. The client receives a longer one.
    pub max_wait: Duration,
}

/// Why an attempt returned no reply. The client has received nothing, so the whole reply may be requested
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptFailure {
    /// The upstream was unreachable, or disconnected before the head of its response.
    Unreachable,
    /// The upstream accepted the request, but sent no response in time.
    Silent,
    /// The response cannot be read. The upstream may have processed and billed the request.
    Unreadable,
    /// The stream ended after the response head, before any part of a reply.
    EmptyStream(Ending),
    /// The upstream responded with an error status.
    Refused {
        /// The status code.
        status: u16,
        /// The value of `Retry-After`.
        retry_after: Option<Duration>,
        /// The value of `x-should-retry`, which overrides the status.
        should_retry: Option<bool>,
    },
    /// The upstream rejects the request because it exceeds the context window.
    TooLong,
    /// The quota of the account is exhausted. Waiting does not help.
    QuotaExhausted,
}

/// The next step after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Try the same upstream again after this wait, if the retry budget permits it.
    Retry(Duration),
    /// Use the fallback upstream.
    FallBack,
    /// Forward the error of the upstream.
    GiveUp,
}

/// What may help against a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// Waiting may help.
    Time,
    /// The same upstream would fail again, but another one may succeed.
    OtherUpstream,
    /// Nothing helps: every upstream would reject the request, or only the client can correct it.
    None,
}

/// The attempts of one request at one upstream, before any part of a reply arrives.
///
/// ```
/// use std::time::Duration;
/// use endmark_recovery::failover::{AttemptFailure, Delivery, NextStep, RetryPolicy};
/// let policy = RetryPolicy { max_retries: 1, max_wait: Duration::from_secs(10) };
/// let mut delivery = Delivery::new(policy, true);
/// assert!(matches!(delivery.next_after(AttemptFailure::Unreachable, 0), NextStep::Retry(_)));
/// assert_eq!(delivery.next_after(AttemptFailure::Unreachable, 0), NextStep::FallBack);
/// ```
#[derive(Debug, Clone)]
pub struct Delivery {
    policy: RetryPolicy,
    has_fallback: bool,
    retries: u32,
}

impl Delivery {
    /// Creates the state before the first attempt. `has_fallback`: whether another upstream can serve the
    /// request.
    pub fn new(policy: RetryPolicy, has_fallback: bool) -> Self {
        Self { policy, has_fallback, retries: 0 }
    }

    /// Returns the next step after this failure. `random` must be uniformly distributed.
    pub fn next_after(&mut self, failure: AttemptFailure, random: u32) -> NextStep {
        match remedy(failure) {
            Remedy::None => NextStep::GiveUp,
            Remedy::OtherUpstream => self.next_without_retry(),
            Remedy::Time if self.retries >= self.policy.max_retries => self.next_without_retry(),
            Remedy::Time => {
                let wait = match failure {
                    AttemptFailure::Refused { retry_after: Some(told), .. }
                        if told > self.policy.max_wait =>
                    {
                        return self.next_without_retry();
                    }
                    AttemptFailure::Refused { retry_after: Some(told), .. } => requested_wait(told, random),
                    _ => pause(self.retries + 1, random),
                };
                self.retries += 1;
                NextStep::Retry(wait)
            }
        }
    }

    /// Returns the next step if the same upstream must not be tried again, for example because the retry
    /// budget is exhausted.
    pub fn next_without_retry(&self) -> NextStep {
        if self.has_fallback { NextStep::FallBack } else { NextStep::GiveUp }
    }
}

impl NextStep {
    /// Returns the name that logs use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry(_) => "again",
            Self::FallBack => "fall_back",
            Self::GiveUp => "give_up",
        }
    }

    /// Returns the wait before a retry, or `None` for other steps.
    pub fn wait(self) -> Option<Duration> {
        if let Self::Retry(wait) = self { Some(wait) } else { None }
    }
}

impl AttemptFailure {
    /// Whether the failure indicates a problem of the whole upstream, and not only of this request or its
    /// client.
    pub fn affects_upstream(self) -> bool {
        match self {
            Self::Unreachable | Self::Silent | Self::Unreadable | Self::EmptyStream(_) => true,
            Self::Refused { status, .. } => matches!(status, 502..=504 | 529),
            Self::TooLong | Self::QuotaExhausted => false,
        }
    }

    /// Returns the name that logs use.
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

    /// Returns the response status, or `None` if there was no response.
    pub fn status(self) -> Option<u16> {
        if let Self::Refused { status, .. } = self { Some(status) } else { None }
    }

    /// Whether a retry or another upstream may help. If not, the response is the reply or a final rejection.
    pub fn has_remedy(self) -> bool {
        remedy(self) != Remedy::None
    }
}

/// Returns what may help against a failure. OpenAI's client retries after the same statuses, and also after
/// 409. A conflict (409) is excluded, because only the client can resolve it. An upstream that sent nothing
/// in time, or an unreadable response, does not receive the request again.
fn remedy(failure: AttemptFailure) -> Remedy {
    match failure {
        AttemptFailure::Unreachable
        | AttemptFailure::EmptyStream(_)
        | AttemptFailure::Refused { should_retry: Some(true), .. } => Remedy::Time,
        AttemptFailure::Silent
        | AttemptFailure::Unreadable
        | AttemptFailure::TooLong
        | AttemptFailure::QuotaExhausted => Remedy::OtherUpstream,
        AttemptFailure::Refused { status, should_retry, .. } => match status {
            408 | 429 | 500 | 502..=504 | 529 if should_retry == Some(false) => Remedy::OtherUpstream,
            // Anthropic uses 529 for an overloaded server.
            408 | 429 | 500 | 502..=504 | 529 => Remedy::Time,
            _ => Remedy::None,
        },
    }
}
