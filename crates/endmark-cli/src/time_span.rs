//! Parses time spans from the command line.

use endmark_console::reports::span;
use endmark_failure::CommandError;

/// Parses a time span such as `90m`, `12h`, `7d` or `4w` into seconds.
pub(crate) fn parse_seconds(typed: &str) -> Result<u64, CommandError> {
    span::seconds(typed).ok_or_else(|| {
        CommandError::input(
            "bad_since",
            format!("`{typed}` is not a time span"),
            "Write a number followed by m, h, d or w, as in `7d` or `30m`.",
        )
    })
}
