//! Exact decimal numbers. Floating-point numbers would round the cost of a call.

use std::fmt;

/// Maximum digits after the decimal point. No price has more.
const MAX_DECIMALS: u32 = 30;

/// A decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount {
    /// All digits, without the decimal point.
    digits: i128,
    /// The number of digits after the decimal point.
    decimals: u32,
}

impl Amount {
    /// Reads a JSON number. Returns `None` if it has too many digits.
    pub(crate) fn read(json: &str) -> Option<Self> {
        // Most numbers are integers.
        if let Ok(count) = json.parse::<u64>() {
            return Some(Self { digits: count.into(), decimals: 0 });
        }
        let (mantissa, exponent) = json.split_once(['e', 'E']).unwrap_or((json, "0"));
        let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: i128 = format!("{before}{behind}").parse().ok()?;
        let decimals = i64::try_from(behind.len()).ok()?.checked_sub(exponent.parse().ok()?)?;
        if decimals >= 0 {
            let decimals = u32::try_from(decimals).ok().filter(|decimals| *decimals <= MAX_DECIMALS)?;
            return Some(Self { digits, decimals });
        }
        let zeros = 10_i128.checked_pow(u32::try_from(decimals.unsigned_abs()).ok()?)?;
        Some(Self { digits: digits.checked_mul(zeros)?, decimals: 0 })
    }

    /// Returns the sum, or `None` if it has too many digits.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let decimals = self.decimals.max(other.decimals);
        let digits = |of: Self| of.digits.checked_mul(10_i128.checked_pow(decimals - of.decimals)?);
        Some(Self { digits: digits(self)?.checked_add(digits(other)?)?, decimals })
    }

    /// Returns the number, if it is a non-negative integer.
    pub(crate) fn count(self) -> Option<u64> {
        (self.decimals == 0).then(|| u64::try_from(self.digits).ok()).flatten()
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let width = self.decimals as usize + 1;
        let digits = format!("{:0>width$}", self.digits.unsigned_abs());
        let (before, behind) = digits.split_at(digits.len() - self.decimals as usize);
        let point = if behind.is_empty() { "" } else { "." };
        write!(formatter, "{sign}{before}{point}{behind}")
    }
}

#[cfg(test)]
mod tests {
    use super::Amount;

    #[test]
    fn amounts_keep_every_digit() {
        let written = |json: &str| Amount::read(json).map(|amount| amount.to_string());
        for (json, expected) in [
            ("12", "12"),
            ("0.10", "0.10"),
            ("1e-05", "0.00001"),
            ("1.5E-3", "0.0015"),
            ("2.5e2", "250"),
            ("-0.25", "-0.25"),
            ("0", "0"),
        ] {
            assert_eq!(written(json).as_deref(), Some(expected), "{json}");
        }
        let sum =
            |one: &str, two: &str| Amount::read(one)?.plus(Amount::read(two)?).map(|sum| sum.to_string());
        assert_eq!(sum("0.1", "0.2").as_deref(), Some("0.3"));
        assert_eq!(sum("1", "0.000000015").as_deref(), Some("1.000000015"));
        for too_long in
            ["1e99", "1e-99", "0.1e-9223372036854775807", "999999999999999999999999999999999999999999"]
        {
            assert_eq!(written(too_long), None, "{too_long}");
        }
        assert_eq!(sum("170000000000000000000000000000000000000", "0.1"), None);
    }
}
