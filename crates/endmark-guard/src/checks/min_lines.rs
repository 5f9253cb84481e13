//! Checks the minimum number of lines.

use crate::artifact::Artifact;
use crate::finding::{Check, UnplacedFinding};

/// Detects too few lines. Blank lines and front matter do not count.
pub(crate) fn check(artifact: &Artifact<'_>, min_lines: Option<usize>) -> Option<UnplacedFinding> {
    let least = min_lines?;
    let count = artifact.body().lines().filter(|line| !line.trim().is_empty()).count();
    (count < least).then(|| {
        let why =
            format!("the artifact has {count} lines that are not blank, and must have at least {least}");
        let fix = format!("Go on from here: at least {} more lines of content are needed.", least - count);
        UnplacedFinding::new(Check::MinLines, artifact.end(), why, fix)
    })
}
