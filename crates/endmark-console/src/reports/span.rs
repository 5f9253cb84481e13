//! Parses times and spans of time as people type them.

use std::time::{SystemTime, UNIX_EPOCH};

use endmark_context::Day;
use endmark_store::utc;

/// Error for a text that is neither a date nor a span.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is neither a day nor a span of time")]
pub struct MomentError(String);

/// Parses a span, such as `90m`, `12h`, `7d` or `4w`, into seconds. Returns `None` if it is invalid or zero.
///
/// ```
/// use endmark_console::reports::span::seconds;
///
/// assert_eq!(seconds("7d"), Some(604_800));
/// assert_eq!(seconds("soon"), None);
/// ```
pub fn seconds(typed: &str) -> Option<u64> {
    let unit = typed.chars().last()?;
    let count: u64 = typed.strip_suffix(unit)?.parse().ok()?;
    let seconds = match unit {
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    count.checked_mul(seconds).filter(|seconds| *seconds > 0)
}

/// Converts a day (`2026-11-24`) or a span before now (`7d`) to the store's format.
///
/// # Errors
/// [`MomentError`] if it is neither.
pub fn moment(typed: &str) -> Result<String, MomentError> {
    if Day::parse(typed).is_some() {
        return Ok(format!("{typed} 00:00:00"));
    }
    Ok(moment_before(seconds(typed).ok_or_else(|| MomentError(typed.to_owned()))?))
}

/// Returns the time `seconds` seconds ago, in the store's format.
pub fn moment_before(seconds: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc(u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(seconds.saturating_mul(1_000)))
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn valid_spans_are_parsed_and_invalid_ones_rejected() {
        for (typed, expected) in [("90m", 5_400), ("12h", 43_200), ("7d", 604_800), ("4w", 2_419_200)] {
            assert_eq!(seconds(typed), Some(expected));
        }
        for typed in ["", "7", "d", "0d", "-1d", "7 d", "7y", "99999999999999999w", "7é"] {
            assert_eq!(seconds(typed), None, "{typed}");
        }
    }
}
