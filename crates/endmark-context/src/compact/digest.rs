//! Shortens a tool result among the newest turns (CX-1): to its values by name, or to its first and last
//! lines.

use std::collections::HashSet;

use super::anchors;
use super::ledger::{Ledger, LedgerLimits, NarrativeAnchors};
use super::policy::TokenCounter;
use super::relevance::Relevance;
use super::summary::value_lines;

const SHORTENED_PREFIX: &str = "[Endmark: shortened from ";
const SHORTENED_SUFFIX: &str = " tokens]";

/// Shortens the text of a result to about `room` tokens. Returns `None` if it already fits, if it was
/// shortened before, or if it would not become smaller.
pub(super) fn shorten_result(
    text: &str,
    tokens: u64,
    room: u64,
    relevance: &Relevance,
    visible: &HashSet<String>,
    count: TokenCounter,
) -> Option<String> {
    if tokens <= room || text.starts_with(SHORTENED_PREFIX) {
        return None;
    }
    let head = format!("{SHORTENED_PREFIX}{tokens}{SHORTENED_SUFFIX}");
    let room = room.saturating_sub(count(&head));
    let mut found = Vec::new();
    anchors::add_result_anchors(text, false, &mut found);
    let mut ledger = Ledger::default();
    ledger.absorb(&found, relevance.turns, count);
    ledger.remove_visible(visible);
    let narrated = NarrativeAnchors::default();
    let within = |all| LedgerLimits { total: all, values: all, narrative: &narrated };
    let is_tree = text.trim_start().starts_with(['{', '[']);
    let body = if is_tree {
        value_lines(ledger.most_valuable(within(room), relevance, count).into_iter())
    } else {
        // Half of the room is for the first and last lines. The other half is for exact values between them.
        let ends = first_and_last(text, room / 2, count);
        let values = value_lines(ledger.most_valuable(within(room - room / 2), relevance, count).into_iter());
        format!("{ends}\n{values}")
    };
    let short = format!("{head}\n{}", body.trim_end());
    (count(&short) < tokens).then_some(short)
}

/// Returns as many first and last lines as fit, with a marker for the omitted lines.
fn first_and_last(text: &str, room: u64, count: TokenCounter) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (mut first, mut last, mut left) = (0, 0, room);
    while first + last < lines.len() {
        let is_first = first <= last;
        let position = if is_first { first } else { lines.len() - 1 - last };
        let cost = count(lines[position]) + 1;
        if cost > left {
            break;
        }
        left -= cost;
        if is_first {
            first += 1;
        } else {
            last += 1;
        }
    }
    let between = lines.len() - first - last;
    if between == 0 {
        return lines.join("\n");
    }
    let mark = format!("[… {between} lines left out …]");
    let ends = lines[..first]
        .iter()
        .copied()
        .chain([mark.as_str()])
        .chain(lines[lines.len() - last..].iter().copied());
    ends.collect::<Vec<_>>().join("\n")
}
