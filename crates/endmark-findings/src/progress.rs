//! Checkpoints: which have come, and which are missing. (AR-3)

use std::collections::BTreeSet;

use super::transcript::Checkpoint;

/// An agent prints a checkpoint every so many turns (AR-3).
pub const CHECKPOINT_TURNS: u32 = 10;

/// More missing checkpoints are counted, but not named.
const MOST_NAMED: usize = 1_000;

/// Which checkpoints are missing (AR-3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MissingCheckpoints {
    /// The turns after which one should have come: the first thousand of them.
    pub turns: Vec<u32>,
    /// How many there are in all.
    pub count: u32,
}

/// The checkpoints that should have come up to the last one, or up to this turn if it is known; one that comes late, but
/// before the next is due, is there (AR-3).
///
/// ```
/// use endmark_findings::{missing_checkpoints, read};
///
/// let text = "[CHECKPOINT] turn:10 findings:1\n[CHECKPOINT] turn:42 findings:9\n";
/// assert_eq!(missing_checkpoints(&read(text.as_bytes()).checkpoints, None).turns, [20, 30]);
/// assert_eq!(missing_checkpoints(&[], Some(25)).turns, [10, 20]);
/// ```
pub fn missing_checkpoints(checkpoints: &[Checkpoint], turn: Option<u32>) -> MissingCheckpoints {
    let there: BTreeSet<u32> =
        checkpoints.iter().map(|checkpoint| checkpoint.turn / CHECKPOINT_TURNS).collect();
    let last = there.last().copied().unwrap_or(0).max(turn.unwrap_or(0) / CHECKPOINT_TURNS);
    let due = there.iter().filter(|step| **step > 0 && **step <= last).count();
    let count = last - u32::try_from(due).unwrap_or(u32::MAX).min(last);
    let missing =
        (1..=last).filter(|step| !there.contains(step)).map(|step| step.saturating_mul(CHECKPOINT_TURNS));
    MissingCheckpoints { turns: missing.take(MOST_NAMED).collect(), count }
}
