//! When a price applies, and above which size long prompts have another price.

use super::Rates;
use crate::moment::{Day, Moment};

/// A part of each day, in minutes since midnight, UTC. If it ends before it begins, it includes midnight.
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

/// A price, the time in which it applies, and the price for long prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceEntry {
    /// The first day on which it applies; `None` means no beginning.
    pub from: Option<Day>,
    /// The hours in which it applies; `None` means all day.
    pub hours: Option<Span>,
    /// The rates.
    pub rates: Rates,
    /// The rates for a request with more prompt tokens than this. They apply to all of its tokens, including output.
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
            Some((start, above)) if prompt_tokens > start => above.or_base(self.rates),
            _ => self.rates,
        }
    }
}
