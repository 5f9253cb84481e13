//! A range as users write it: `A:B`, `A:`, `:B`.

use std::str::FromStr;

/// A range of numbers. The unit, and whether the end is included, depend on the use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The beginning, if given.
    pub from: Option<u64>,
    /// The end, if given.
    pub to: Option<u64>,
}

/// Error of an invalid range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The text has no colon, or something other than numbers.
    #[error("`{0}` is no range: write A:B, A: or :B")]
    Form(String),
    /// The range ends before it begins.
    #[error("the range `{0}` ends before it begins")]
    Backwards(String),
}

impl FromStr for Span {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let form = || RangeError::Form(text.to_owned());
        let number = |text: &str| match text {
            "" => Ok(None),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map(Some).map_err(|_| form())
            }
            _ => Err(form()),
        };
        let (from, to) = text.split_once(':').ok_or_else(form)?;
        let span = Self { from: number(from)?, to: number(to)? };
        match span {
            Self { from: None, to: None } => Err(form()),
            Self { from: Some(from), to: Some(to) } if to < from => {
                Err(RangeError::Backwards(text.to_owned()))
            }
            _ => Ok(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_or_refused() {
        for (text, from, to) in [
            ("3:7", Some(3), Some(7)),
            ("3:", Some(3), None),
            (":7", None, Some(7)),
            ("0:0", Some(0), Some(0)),
        ] {
            assert_eq!(text.parse(), Ok(Span { from, to }));
        }
        for text in ["", ":", "7", "a:b", "-1:2", "+1:2", "1:2:3", "7:3", "99999999999999999999:"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
