//! Determines how many findings to expect from an agent. (AR-6)

use serde::Serialize;

/// The number of findings to expect from an agent, and what it is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expected {
    /// The expected number of findings.
    pub findings: u32,
    /// What the number is based on.
    pub basis: Basis,
}

/// What an expected number of findings is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The number in the last checkpoint.
    Checkpoint,
    /// The number that the agent declared.
    #[serde(rename = "declared_findings")]
    Declared,
    /// The highest number in an id.
    HighestId,
}

impl Basis {
    /// Returns the machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Declared => "declared_findings",
            Self::HighestId => "highest_id",
        }
    }
}

/// The numbers in all ids of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct IdNumbers {
    pub(super) count: u32,
    /// The lowest and the highest number.
    range: Option<(u32, u32)>,
}

impl IdNumbers {
    /// The maximum number of ids that may be missing below the highest one. If more are missing, the highest number
    /// is probably a date or an id of another list.
    const MAX_UNSEEN_IDS: u32 = 1_000;

    /// The agents of a team may each start at a different hundred: `F101`, `F201`.
    const ID_BLOCK_SIZE: u32 = 100;

    pub(super) fn add(&mut self, number: Option<u32>) {
        self.count = self.count.saturating_add(1);
        if let Some(number) = number {
            let (lowest, highest) = self.range.unwrap_or((number, number));
            self.range = Some((lowest.min(number), highest.max(number)));
        }
    }

    /// Returns the number of findings that the highest id implies.
    pub(super) fn highest_count(&self) -> Option<u32> {
        let (_, highest) = self.range?;
        Some(highest - self.base()?).filter(|count| count.saturating_sub(self.count) <= Self::MAX_UNSEEN_IDS)
    }

    /// Returns the position of the lowest id, counted from the same base.
    pub(super) fn lowest_position(&self) -> Option<u32> {
        let (lowest, _) = self.range?;
        Some(lowest - self.base()?)
    }

    /// Returns the number before the first id: 0, or 100 for `F101`.
    fn base(&self) -> Option<u32> {
        let (lowest, _) = self.range?;
        Some(lowest.saturating_sub(1) / Self::ID_BLOCK_SIZE * Self::ID_BLOCK_SIZE)
    }
}
