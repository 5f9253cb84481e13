//! The number of findings that an agent must have had. (AR-6)

use serde::Serialize;

/// The number of findings that an agent must have had, and the evidence for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expected {
    /// The number.
    pub findings: u32,
    /// The evidence for it.
    pub basis: Basis,
}

/// The evidence for a number of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The last checkpoint.
    Checkpoint,
    /// The number that the agent declared.
    #[serde(rename = "declared_findings")]
    Declared,
    /// The highest id that was seen.
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

/// The numbers in the ids that were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Numbers {
    pub(super) count: u32,
    /// The lowest and the highest number.
    range: Option<(u32, u32)>,
}

impl Numbers {
    /// The maximum number of unseen ids below the highest. With more, the number is not a count but a date or an id
    /// of another list.
    const MAX_UNSEEN_IDS: u32 = 1_000;

    /// The agents of a team may each start at a different hundred: `F101`, `F201`.
    const BLOCK: u32 = 100;

    pub(super) fn add(&mut self, number: Option<u32>) {
        self.count = self.count.saturating_add(1);
        if let Some(number) = number {
            let (lowest, highest) = self.range.unwrap_or((number, number));
            self.range = Some((lowest.min(number), highest.max(number)));
        }
    }

    /// Returns the number of findings according to the highest id.
    pub(super) fn highest(&self) -> Option<u32> {
        let (_, highest) = self.range?;
        Some(highest - self.base()?).filter(|count| count.saturating_sub(self.count) <= Self::MAX_UNSEEN_IDS)
    }

    /// Returns the lowest number, relative to the same base.
    pub(super) fn lowest(&self) -> Option<u32> {
        let (lowest, _) = self.range?;
        Some(lowest - self.base()?)
    }

    /// Returns the base that ids count from.
    fn base(&self) -> Option<u32> {
        let (lowest, _) = self.range?;
        Some(lowest.saturating_sub(1) / Self::BLOCK * Self::BLOCK)
    }
}
