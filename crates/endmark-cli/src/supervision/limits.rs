//! Parses time spans and amounts of money, which must not be 0.

use std::num::NonZeroU64;

use endmark_failure::CommandError;

/// Parses a time span such as `90s`, `10m` or `4h` into seconds.
pub(super) fn parse_seconds(option: &'static str, typed: &str) -> Result<NonZeroU64, CommandError> {
    let unusable = || {
        CommandError::input(
            "usage",
            format!("{option} `{typed}` is not a time span above 0"),
            format!("Write a number from 1 followed by s, m or h, as in `{option} 30m`."),
        )
    };
    let unit = typed.chars().last().ok_or_else(unusable)?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => return Err(unusable()),
    };
    let count: u64 = typed.strip_suffix(unit).unwrap_or_default().parse().map_err(|_| unusable())?;
    count.checked_mul(factor).and_then(NonZeroU64::new).ok_or_else(unusable)
}

/// Converts dollars to billionths of a dollar.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast to an integer saturates")]
pub(super) fn parse_nanodollars(typed: f64) -> Result<NonZeroU64, CommandError> {
    Some(typed)
        .filter(|dollars| dollars.is_finite())
        .and_then(|dollars| NonZeroU64::new((dollars * 1e9) as u64))
        .ok_or_else(|| {
            CommandError::input(
                "usage",
                format!("--max-usd `{typed}` is not a valid amount"),
                "Write an amount above 0, or omit the option.",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_invalid_ceilings_are_refused() {
        let typed = |text| parse_seconds("--max-time", text).map(NonZeroU64::get).ok();
        assert_eq!((typed("90s"), typed("10m"), typed("4h")), (Some(90), Some(600), Some(14_400)));
        for text in ["0s", "0h", "", "s", "10", "-1m", "1d", "99999999999999999999h"] {
            assert_eq!(typed(text), None, "{text}");
        }
        assert_eq!(parse_nanodollars(2.5).unwrap().get(), 2_500_000_000);
        for amount in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(parse_nanodollars(amount).is_err(), "{amount}");
        }
    }
}
