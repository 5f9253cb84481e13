//! Decides when a price applies, and from which prompt size on a request has other rates.

use super::Rates;
use crate::moment::{Day, Moment};

/// A part of each day, in minutes since midnight UTC. If it ends before it begins, it includes midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailySpan {
    /// The first minute.
    pub from_minute: u16,
    /// The minute after the last one.
    pub until_minute: u16,
}

impl DailySpan {
    fn contains(self, minute: u16) -> bool {
        if self.from_minute <= self.until_minute {
            (self.from_minute..self.until_minute).contains(&minute)
        } else {
            minute >= self.from_minute || minute < self.until_minute
        }
    }
}

/// Rates with the time in which they apply, and the rates for long prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceEntry {
    /// The first day on which the entry applies. `None` if it has no first day.
    pub from: Option<Day>,
    /// The hours in which the entry applies. `None` if it applies all day.
    pub hours: Option<DailySpan>,
    /// The rates.
    pub rates: Rates,
    /// The rates for a request whose prompt has more tokens than this number. They apply to all tokens of the
    /// request, including output.
    pub long_prompt_rates: Option<(u64, Rates)>,
}

impl PriceEntry {
    /// Returns an entry that applies at any time and to any prompt.
    pub fn always_applicable(rates: Rates) -> Self {
        Self { from: None, hours: None, rates, long_prompt_rates: None }
    }

    pub(super) fn applies(&self, at: Moment) -> bool {
        self.from.is_none_or(|day| at.day() >= day)
            && self.hours.is_none_or(|span| span.contains(at.minute_of_day()))
    }

    pub(super) fn rates_for(&self, prompt_tokens: u64) -> Rates {
        match self.long_prompt_rates {
            Some((start, above)) if prompt_tokens > start => above.or_base(self.rates),
            _ => self.rates,
        }
    }
}
