//! Selects the upstream from which the rest of a reply is requested.

use std::borrow::Cow;

use endmark_recovery::Ending;
use endmark_recovery::failover::UpstreamSwitch;
use endmark_wire::request::Request;

use super::case::RecoveryCase;
use crate::upstream::Destination;

/// The upstream from which the rest is requested, and the request in its format.
pub(super) struct RestUpstream<'a> {
    case: &'a RecoveryCase<'a>,
    pub(super) destination: &'a Destination,
    pub(super) request: Cow<'a, Request>,
    finishing: UpstreamSwitch,
    is_fallback: bool,
}

impl<'a> RestUpstream<'a> {
    /// Starts with the upstream that began the reply.
    pub(super) fn new(case: &'a RecoveryCase<'a>) -> Self {
        Self {
            case,
            destination: case.destination,
            request: Cow::Borrowed(case.request),
            finishing: UpstreamSwitch::default(),
            is_fallback: false,
        }
    }

    /// Returns the upstream's name in the configuration.
    pub(super) fn name(&self) -> &'a str {
        &self.destination.upstream.name
    }

    /// Whether this is the other upstream.
    pub(super) fn is_fallback(&self) -> bool {
        self.is_fallback
    }

    /// Whether there is another upstream to switch to.
    pub(super) fn can_switch(&self) -> bool {
        !self.is_fallback && self.case.fallback.is_some()
    }

    /// Switches to the other upstream. Returns `false` if there is no other upstream.
    pub(super) fn switch(&mut self) -> bool {
        let Some(fallback) = self.case.fallback.filter(|_| self.can_switch()) else {
            return false;
        };
        self.destination = fallback;
        self.request = Cow::Owned(fallback.adapt(self.case.request));
        self.is_fallback = true;
        true
    }

    /// Records how a stream of this upstream ended. Returns whether to use the other upstream from now on.
    pub(super) fn note_ending(&mut self, ending: Ending) -> bool {
        let leaves = self.finishing.should_switch(ending);
        leaves && self.can_switch()
    }
}
