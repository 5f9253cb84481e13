//! When a price applies, and the size from which long prompts have another price.

use super::Rates;
use crate::moment::{Day, Moment};

/// A part of each day, in minutes since midnight, UTC. If it ends before it begins, it continues after midnight.
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

/// A price, when it applies, and the price for long prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceEntry {
    /// The first day on which it applies. `None` means since ever.
    pub from: Option<Day>,
    /// The hours in which it applies. `None` means all day.
    pub hours: Option<Span>,
    /// The rates.
    pub rates: Rates,
    /// The rates of a request whose prompt has more than this many tokens. They apply to all its tokens, output
    /// included.
    pub above: Option<(u64, Rates)>,
}

impl PriceEntry {
    /// Returns an entry that always applies.
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
