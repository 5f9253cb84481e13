//! Selects the upstream for requesting the rest of a reply.

use std::borrow::Cow;

use endmark_recovery::Ending;
use endmark_recovery::failover::Finishing;
use endmark_wire::request::Request;

use super::case::Case;
use crate::upstream::Destination;

/// The upstream for requesting the rest, and the request in its format.
pub(super) struct Site<'a> {
    case: &'a Case<'a>,
    pub(super) destination: &'a Destination,
    pub(super) request: Cow<'a, Request>,
    finishing: Finishing,
    is_fallback: bool,
}

impl<'a> Site<'a> {
    /// Starts with the upstream that began the reply.
    pub(super) fn new(case: &'a Case<'a>) -> Self {
        Self {
            case,
            destination: case.destination,
            request: Cow::Borrowed(case.request),
            finishing: Finishing::default(),
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
    pub(super) fn may_leave(&self) -> bool {
        !self.is_fallback && self.case.fallback.is_some()
    }

    /// Switches to the other upstream. Returns false without another upstream.
    pub(super) fn leave(&mut self) -> bool {
        let Some(fallback) = self.case.fallback.filter(|_| self.may_leave()) else {
            return false;
        };
        self.destination = fallback;
        self.request = Cow::Owned(fallback.adapt(self.case.request));
        self.is_fallback = true;
        true
    }

    /// Records how a stream of this upstream ended. Returns whether to use the other one from now on.
    pub(super) fn leaves_after(&mut self, ending: Ending) -> bool {
        let leaves = self.finishing.leaves(ending);
        leaves && self.may_leave()
    }
}
