//! What may still be spent (CX-7): budgets, the windows they are counted in, and what a call holds and costs.
//!
//! Nothing here knows a clock or a store. A call is held before it is made, with the most that it can cost; when it is over,
//! the hold gives way to what it did cost. Holds count as spent, so that calls made at once cannot go beyond a budget.

mod account;
mod lease;
mod share;
mod window;

pub use account::{Account, Level};
pub use lease::{Lease, Standing};
pub use share::{Pool, Share, ShareReport, TENURE_MS, Tenure};
pub use window::{Period, Zone, ZoneError};

/// The most tokens of output that the closing call of a session may have.
pub const CLOSING_OUTPUT_TOKENS: u64 = 1_024;

/// Whose spending is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// One session's.
    Session,
    /// One key's, by its hash.
    Key,
    /// One model's.
    Model,
    /// All.
    All,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Session, Self::Key, Self::Model, Self::All];

    /// The literal in the table and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Key => "key",
            Self::Model => "model",
            Self::All => "all",
        }
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Tokens: those of the prompt and those generated.
    Tokens,
    /// Nano-dollars.
    NanoUsd,
}

impl Unit {
    /// The literal in the table and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::NanoUsd => "nano_usd",
        }
    }

    /// An amount as people read it.
    pub fn shown(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens"),
            Self::NanoUsd => format!("${}", crate::dollars_for_people(amount)),
        }
    }
}

/// A budget as it is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Whose.
    pub scope: Scope,
    /// Of what.
    pub unit: Unit,
    /// In which windows of time.
    pub period: Period,
    /// How much.
    pub limit: u64,
}

#[cfg(test)]
mod tests;
