//! Finds missing checkpoints. (AR-3)

use std::collections::BTreeSet;

use super::transcript::Checkpoint;

/// The number of turns between two checkpoints of an agent (AR-3).
pub const CHECKPOINT_TURNS: u32 = 10;

/// The maximum number of missing checkpoints that are listed. Further ones are only counted.
const MAX_LISTED_CHECKPOINTS: usize = 1_000;

/// The missing checkpoints (AR-3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MissingCheckpoints {
    /// The turns of the first 1000 missing checkpoints.
    pub turns: Vec<u32>,
    /// The total number of missing checkpoints.
    pub count: u32,
}

/// Returns the missing checkpoints up to the last existing one, or up to `turn` if that is later. A late checkpoint
/// counts as present if it comes before the next one is due (AR-3).
///
/// ```
/// use endmark_findings::{missing_checkpoints, read};
///
/// let text = "[CHECKPOINT] turn:10 findings:1\n[CHECKPOINT] turn:42 findings:9\n";
/// assert_eq!(missing_checkpoints(&read(text.as_bytes()).checkpoints, None).turns, [20, 30]);
/// assert_eq!(missing_checkpoints(&[], Some(25)).turns, [10, 20]);
/// ```
pub fn missing_checkpoints(checkpoints: &[Checkpoint], turn: Option<u32>) -> MissingCheckpoints {
    let present_steps: BTreeSet<u32> =
        checkpoints.iter().map(|checkpoint| checkpoint.turn / CHECKPOINT_TURNS).collect();
    let last = present_steps.last().copied().unwrap_or(0).max(turn.unwrap_or(0) / CHECKPOINT_TURNS);
    let due = present_steps.iter().filter(|step| **step > 0 && **step <= last).count();
    let count = last - u32::try_from(due).unwrap_or(u32::MAX).min(last);
    let missing = (1..=last)
        .filter(|step| !present_steps.contains(step))
        .map(|step| step.saturating_mul(CHECKPOINT_TURNS));
    MissingCheckpoints { turns: missing.take(MAX_LISTED_CHECKPOINTS).collect(), count }
}
