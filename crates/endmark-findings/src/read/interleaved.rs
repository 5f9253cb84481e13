//! The logs of several agents in one text, line by line among each other: each is read alone. (AR-1)

use std::borrow::Cow;

use super::checkpoint::checkpoint;
use super::cleaned::{LONGEST_PREFIX, Prefix};
use super::words::{Marker, marker};
use crate::{Position, Transcript};

/// More agents in one log are not told from each other.
const MOST: usize = 64;

/// What stands before the lines of each, where markers or checkpoints of several stand behind names; else none.
pub(super) fn prefixes<'t>(lines: &(impl Iterator<Item = Cow<'t, str>> + Clone)) -> Vec<Prefix> {
    let mut found: Vec<Prefix> = Vec::new();
    for text in lines.clone() {
        let Some(begins) = structure_at(&text) else { continue };
        let before = &text[..begins];
        if before.trim_start_matches(['>', ' ']).is_empty() {
            if found.is_empty() {
                return found;
            }
            continue;
        }
        let prefix = Prefix::new(before);
        let is_name = begins <= LONGEST_PREFIX && prefix.is_set_apart() && prefix.is_named();
        if is_name && found.len() < MOST && !found.iter().any(|known| known.has_names_of(before)) {
            found.push(prefix);
        }
    }
    if found.len() > 1 {
        // A word before a marker stands before one line; what a log sets before its lines, before several.
        found.retain(|prefix| lines.clone().filter(|text| prefix.is_before(text)).nth(1).is_some());
    }
    if found.len() > 1 { found } else { Vec::new() }
}

/// Where in a line a start marker or a checkpoint begins.
fn structure_at(text: &str) -> Option<usize> {
    if text.contains("AGENT_RESULT") {
        let begins = text.find("==")?;
        return (marker(&text[begins..]) == Some(Marker::Start)).then_some(begins);
    }
    let word = text.find("CHECKPOINT")?;
    let begins = word - usize::from(text[..word].ends_with('['));
    let position = Position { line: 1, column: 1, byte: 0 };
    checkpoint(&text[begins..], true, position).is_some().then_some(begins)
}

/// What was read of all, in the order of the text.
pub(super) fn joined(all: Vec<Transcript>) -> Transcript {
    let mut joined =
        Transcript { results: Vec::new(), checkpoints: Vec::new(), remarks: Vec::new(), remarks_omitted: 0 };
    for read in all {
        joined.results.extend(read.results);
        joined.checkpoints.extend(read.checkpoints);
        joined.remarks.extend(read.remarks);
        joined.remarks_omitted += read.remarks_omitted;
    }
    if joined.results.iter().any(|result| result.begins.is_some()) {
        joined.results.retain(|result| result.begins.is_some());
    } else {
        joined.results.truncate(1);
    }
    joined.results.sort_by_key(|result| result.begins);
    joined.checkpoints.sort_by_key(|checkpoint| checkpoint.position);
    joined.remarks.sort_by_key(|remark| remark.position);
    joined
}
