//! Checks whether the last code block is closed.

use crate::artifact::{Artifact, ArtifactKind, BlockKind};
use crate::finding::{Check, UnplacedFinding};

/// Detects a fenced code block without a closing fence. Such a block extends to the end of the text.
pub(crate) fn check(artifact: &Artifact<'_>) -> Option<UnplacedFinding> {
    let last = artifact.outline().last().filter(|_| artifact.kind() == ArtifactKind::Markdown)?;
    let is_open = matches!(last.kind, BlockKind::Code { is_closed: false, is_fenced: true });
    is_open.then(|| {
        let line = artifact.text()[last.range.clone()].lines().next().unwrap_or_default();
        let range = last.range.start..last.range.start + line.len();
        UnplacedFinding::new(
            Check::OpenFence,
            range,
            "this block of code is never closed: the text stops inside of it",
            "Write the rest of the block, and close its fence.",
        )
    })
}
