//! The sums for people.

use std::fmt::Write as _;

use crate::terminal::{Paint, Painter, in_lines};
use endmark_console::reports::usage::{Row, Total, UsageKey};

/// Rows that are shown; `--json` and `--csv` have all.
const MAX_ROWS: usize = 30;

/// Of a hash this many characters are shown.
const HASH_CHARS: usize = 12;

/// Places of dollars that are enough to look at.
const PLACES: usize = 6;

/// Adds one line; writing to a string cannot fail.
macro_rules! add {
    ($text:expr, $($format:tt)*) => {{ let _ = writeln!($text, $($format)*); }};
}

pub(super) fn text(by: UsageKey, rows: &[Row], total: &Total, as_of: &str, painter: Painter) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        add!(text, "No call was recorded in this time. Point a client at `endmark serve`.");
        return text;
    }
    let heads = [by.name().to_uppercase().as_str(), "CALLS", "PROMPT", "CACHED", "COMPLETION", "USD"]
        .map(str::to_owned);
    let mut cells = vec![heads];
    cells.extend(rows.iter().take(MAX_ROWS).map(|row| line(&shown(by, &row.key), &row.total)));
    cells.push(line("total", total));
    let widths: Vec<usize> =
        (0..6).map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let last = cells.len() - 1;
    for (number, row) in cells.iter().enumerate() {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let is_strong = number == 0 || number == last;
        add!(text, "{}", if is_strong { painter.paint(Paint::Strong, &line) } else { line });
    }
    if rows.len() > MAX_ROWS {
        add!(text, "and {} more rows: `--json` and `--csv` have all", rows.len() - MAX_ROWS);
    }
    if total.unpriced_calls > 0 {
        add!(text, "Give models without a price one under [prices.\"NAME\"].");
    }
    if total.estimated_calls > 0 {
        add!(
            text,
            "{} calls reported no tokens; theirs are estimated from their bytes",
            total.estimated_calls
        );
    }
    add!(
        text,
        "Standard prices of {as_of}: what was served in a batch, flex or priority tier was billed otherwise."
    );
    text
}

fn line(key: &str, total: &Total) -> [String; 6] {
    [
        key.to_owned(),
        total.calls.to_string(),
        total.prompt_tokens.to_string(),
        total.cached_tokens.to_string(),
        total.completion_tokens.to_string(),
        total.dollars_in_words(PLACES),
    ]
}

fn shown(by: UsageKey, key: &str) -> String {
    match by {
        UsageKey::Session | UsageKey::Key if key.len() > HASH_CHARS => key.chars().take(HASH_CHARS).collect(),
        _ if key.is_empty() => "(none)".to_owned(),
        _ => in_lines(key).replace('\n', " "),
    }
}
