//! Checks whether the text stops inside a table.

use crate::artifact::{Artifact, ArtifactKind, BlockKind};
use crate::finding::{Check, UnplacedFinding};

const FIX: &str = "Write the rest of the table.";

/// Detects a table at the end of a text that has no rows, or an incomplete last row.
pub(crate) fn check(artifact: &Artifact<'_>) -> Option<UnplacedFinding> {
    let last = artifact.outline().last().filter(|_| artifact.kind() == ArtifactKind::Markdown)?;
    let text = artifact.text();
    let table = artifact
        .outline()
        .tables()
        .last()
        .filter(|table| last.range.end <= table.range.end && table.range.start <= last.range.start);
    let Some(table) = table else { return check_paragraph(artifact) };
    let source = text[table.range.clone()].trim_end();
    let row = source.lines().next_back().unwrap_or_default();
    let start = table.range.start + source.len() - row.len();
    let range = start..start + row.len();
    if table.rows == 0 {
        return Some(UnplacedFinding::new(
            Check::OpenTable,
            range,
            "this table has a head and no rows: the text stops there",
            FIX,
        ));
    }
    let mut others = source.lines().rev().skip(1);
    let is_closed = |row: &str| row.trim_end().ends_with('|');
    let breaks_off = !is_closed(row) && others.all(is_closed);
    let cells = |row: &str| row.trim().trim_matches('|').replace("\\|", "").matches('|').count();
    let mut above = source.lines().rev().skip(1).map(cells);
    let has_fewer =
        above.next().is_some_and(|wanted| cells(row) < wanted && above.all(|cells| cells == wanted));
    let why = if breaks_off {
        "the last row of this table is not closed, and all others are"
    } else {
        "the last row of this table has fewer cells than all others"
    };
    (breaks_off || has_fewer).then(|| UnplacedFinding::new(Check::OpenTable, range, why, FIX))
}

/// Detects a table without a delimiter row, which is parsed as a paragraph.
fn check_paragraph(artifact: &Artifact<'_>) -> Option<UnplacedFinding> {
    let last =
        artifact.outline().last().filter(|last| last.kind == BlockKind::Paragraph && !last.is_quoted)?;
    let paragraph = artifact.text()[last.range.clone()].trim_end();
    let mut lines = paragraph.lines();
    let is_row = lines.next_back().is_some_and(|row| row.starts_with('|') && row.matches('|').count() >= 2);
    (is_row && lines.next().is_none_or(|above| above.starts_with('|'))).then(|| {
        UnplacedFinding::new(
            Check::OpenTable,
            last.range.clone(),
            "this is the head of a table, and the text stops there",
            FIX,
        )
    })
}
