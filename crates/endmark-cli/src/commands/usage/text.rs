//! The usage sums as text.

use std::fmt::Write as _;

use crate::view::paint::Paint;
use crate::view::table::{Cell, Column, Layout};
use endmark_context::dollars_for_people;

use endmark_console::reports::usage::{Total, UsageKey, UsageSum};

/// Maximum number of rows in the text; `--json` and `--csv` list all.
const MAX_ROWS: usize = 30;

/// How many characters of a hash are shown.
const HASH_CHARS: usize = 12;

/// Adds one line; writing to a string cannot fail.
macro_rules! add {
    ($text:expr, $($format:tt)*) => {{ let _ = writeln!($text, $($format)*); }};
}

pub(super) fn render_text(
    by: UsageKey,
    rows: &[UsageSum],
    total: &Total,
    as_of: &str,
    layout: Layout,
) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        add!(text, "No call was recorded in this time. Connect a client to `endmark serve`.");
        return text;
    }
    let heading = by.name().to_uppercase();
    let columns = [
        Column::text(&heading),
        Column::number("CALLS"),
        Column::number("PROMPT"),
        Column::number("CACHED"),
        Column::number("COMPLETION"),
        Column::number("USD"),
    ];
    let lines =
        rows.iter().take(MAX_ROWS).map(|row| cells(&format_key(by, &row.key), &row.total).map(Cell::from));
    let sum = cells("total", total).map(|cell| Cell::painted(cell, Paint::Strong));
    add!(text, "{}", layout.lines(columns, lines.chain([sum])).join("\n"));
    if rows.len() > MAX_ROWS {
        add!(text, "and {} more rows: `--json` and `--csv` have all", rows.len() - MAX_ROWS);
    }
    if total.unpriced_calls > 0 {
        add!(text, "Set the price of other models under [prices.\"NAME\"].");
    }
    if total.estimated_calls > 0 {
        add!(
            text,
            "{} calls reported no tokens; their tokens are estimated from their bytes",
            total.estimated_calls
        );
    }
    add!(
        text,
        "Standard prices of {as_of}: calls in a batch, flex or priority tier were billed differently."
    );
    text
}

fn cells(key: &str, total: &Total) -> [String; 6] {
    [
        key.to_owned(),
        total.calls.to_string(),
        total.prompt_tokens.to_string(),
        total.cached_tokens.to_string(),
        total.completion_tokens.to_string(),
        format_dollars(total),
    ]
}

/// Formats dollars and the number of calls without a price.
fn format_dollars(total: &Total) -> String {
    let usd = dollars_for_people(total.nano_usd);
    match total.unpriced_calls {
        0 => usd,
        _ if total.nano_usd == 0 => "no price".to_owned(),
        1 => format!("{usd} + 1 call without a price"),
        calls => format!("{usd} + {calls} calls without a price"),
    }
}

fn format_key(by: UsageKey, key: &str) -> String {
    match by {
        UsageKey::Session | UsageKey::Key if key.len() > HASH_CHARS => key.chars().take(HASH_CHARS).collect(),
        _ if key.is_empty() => "(none)".to_owned(),
        _ => key.to_owned(),
    }
}
