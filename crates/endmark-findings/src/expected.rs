//! How many findings an agent must have had. (AR-6)

use serde::Serialize;

/// How many findings an agent must have had, and how that is known (AR-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expected {
    /// How many.
    pub findings: u32,
    /// How that is known.
    pub basis: Basis,
}

/// How the number of findings is known (AR-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// From the last checkpoint.
    Checkpoint,
    /// From what the agent declared.
    #[serde(rename = "declared_findings")]
    Declared,
    /// From the highest id that was seen.
    HighestId,
}

impl Basis {
    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Declared => "declared_findings",
            Self::HighestId => "highest_id",
        }
    }
}

/// The numbers in the ids of findings that were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Numbers {
    pub(super) count: u32,
    /// The lowest and the highest number.
    range: Option<(u32, u32)>,
}

impl Numbers {
    /// A jump over more numbers than these is no count: the number is a date, or that of another list.
    const MOST_UNSEEN: u32 = 1_000;

    /// Agents of a team may count from a hundred of their own: `F101`, `F201`.
    const BLOCK: u32 = 100;

    pub(super) fn add(&mut self, number: Option<u32>) {
        self.count = self.count.saturating_add(1);
        if let Some(number) = number {
            let (lowest, highest) = self.range.unwrap_or((number, number));
            self.range = Some((lowest.min(number), highest.max(number)));
        }
    }

    /// How many findings there are by the highest of them.
    pub(super) fn highest(&self) -> Option<u32> {
        let (_, highest) = self.range?;
        Some(highest - self.base()?).filter(|count| count.saturating_sub(self.count) <= Self::MOST_UNSEEN)
    }

    /// The lowest of them, counted alike.
    pub(super) fn lowest(&self) -> Option<u32> {
        let (lowest, _) = self.range?;
        Some(lowest - self.base()?)
    }

    /// What is counted from.
    fn base(&self) -> Option<u32> {
        let (lowest, _) = self.range?;
        Some(lowest.saturating_sub(1) / Self::BLOCK * Self::BLOCK)
    }
}
