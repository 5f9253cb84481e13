//! Checks the minimum number of lines.

use crate::artifact::Artifact;
use crate::finding::{Check, UnplacedFinding};

/// Counts the lines that are not blank, without front matter.
pub(crate) fn check(artifact: &Artifact<'_>, least: Option<usize>) -> Option<UnplacedFinding> {
    let least = least?;
    let count = artifact.body().lines().filter(|line| !line.trim().is_empty()).count();
    (count < least).then(|| {
        let why =
            format!("the artifact has {count} lines that are not blank, and must have at least {least}");
        let fix = format!("Go on from here: at least {} more lines of content are needed.", least - count);
        UnplacedFinding::new(Check::MinLines, artifact.end(), why, fix)
    })
}
