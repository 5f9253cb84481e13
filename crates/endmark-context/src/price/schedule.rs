//! When a price applies, and from how many tokens of the prompt on another one does.

use super::Rates;
use crate::moment::{Day, Moment};

/// A part of each day, in minutes since midnight, UTC. One that ends before it begins goes over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first minute.
    pub from_minute: u16,
    /// The minute after the last one.
    pub until_minute: u16,
}

impl Span {
    fn holds(self, minute: u16) -> bool {
        if self.from_minute <= self.until_minute {
            (self.from_minute..self.until_minute).contains(&minute)
        } else {
            minute >= self.from_minute || minute < self.until_minute
        }
    }
}

/// A price, when it applies, and what long prompts cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceEntry {
    /// The first day on which it applies; none: always has.
    pub from: Option<Day>,
    /// The hours in which it applies; none: all day.
    pub hours: Option<Span>,
    /// What tokens cost.
    pub rates: Rates,
    /// What they cost in a request whose prompt has more than this many tokens: then all of them, output too.
    pub above: Option<(u64, Rates)>,
}

impl PriceEntry {
    /// One that applies always.
    pub fn always(rates: Rates) -> Self {
        Self { from: None, hours: None, rates, above: None }
    }

    pub(super) fn applies(&self, at: Moment) -> bool {
        self.from.is_none_or(|day| at.day() >= day)
            && self.hours.is_none_or(|span| span.holds(at.minute_of_day()))
    }

    pub(super) fn rates_for(&self, prompt_tokens: u64) -> Rates {
        match self.above {
            Some((start, above)) if prompt_tokens > start => above.over(self.rates),
            _ => self.rates,
        }
    }
}
