//! Budgets for calls (CX-7): their calendar windows, and the amounts that calls hold and cost.
//!
//! This module reads no clock and uses no store. Before a call, the budget holds (reserves) the highest
//! possible cost of the call. After the call, the actual cost replaces the hold. Holds count as spent, so
//! concurrent calls cannot exceed a budget.

mod account;
mod lease;
mod rate;
mod share;
pub mod sim;
mod window;

pub use account::{Account, Level};
pub use lease::{Lease, StoredBudget};
pub use rate::{RateLimits, RemainingRate, oldest_kept_window, rate_period, rate_retry_seconds};
pub use share::{Demands, Pool, Share, ShareReport, TENURE_MS, Tenure, WantedShare, pace};
pub use window::{Period, Zone, ZoneError};

/// Maximum output tokens of the closing call, which is the last call of a session before its budget is used
/// up.
pub const CLOSING_OUTPUT_TOKENS: u64 = 1_024;

/// The group of calls that a budget counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// One session.
    Session,
    /// One key, by its hash.
    Key,
    /// One model.
    Model,
    /// All calls.
    All,
    /// The rate limits of one key, by its hash. They do not count as spending, and they cause no warnings.
    Rate,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 5] = [Self::Session, Self::Key, Self::Model, Self::All, Self::Rate];

    /// Returns the scope's name in the database table and in responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Key => "key",
            Self::Model => "model",
            Self::All => "all",
            Self::Rate => "rate",
        }
    }
}

/// Unit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Prompt tokens plus generated tokens.
    Tokens,
    /// Nano-dollars.
    NanoUsd,
    /// Requests.
    Requests,
    /// Requests in progress. Each one holds 1 until it ends, and costs nothing.
    Parallel,
}

impl Unit {
    /// All units.
    pub const ALL: [Self; 4] = [Self::Tokens, Self::NanoUsd, Self::Requests, Self::Parallel];

    /// Returns the unit's name in the database table and in responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::NanoUsd => "nano_usd",
            Self::Requests => "requests",
            Self::Parallel => "parallel",
        }
    }

    /// Returns the unit with a name from the table. Returns [`Unit::Tokens`] for any other name.
    ///
    /// ```
    /// use endmark_context::budget::Unit;
    /// assert_eq!(Unit::from_name(Unit::NanoUsd.name()), Unit::NanoUsd);
    /// ```
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|unit| unit.name() == name).unwrap_or(Self::Tokens)
    }

    /// Formats an amount with its unit for display, such as `500 tokens` or `$2.50`.
    pub fn format(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens"),
            Self::NanoUsd => format!("${}", crate::dollars_for_people(amount)),
            Self::Requests => format!("{amount} requests"),
            Self::Parallel => format!("{amount} requests at once"),
        }
    }
}

/// A budget from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetRule {
    /// The calls that it limits.
    pub scope: Scope,
    /// Unit of the limit.
    pub unit: Unit,
    /// How often it is reset.
    pub period: Period,
    /// The limit.
    pub limit: u64,
}

#[cfg(test)]
mod tests;
