//! Ranges in the form that users write: `A:B`, `A:` or `:B`.

use std::str::FromStr;

/// A range of numbers. Its unit, and whether it includes the end, depend on where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberRange {
    /// The start. `None` if it is not given.
    pub from: Option<u64>,
    /// The end. `None` if it is not given.
    pub to: Option<u64>,
}

/// Error of an invalid range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The text has no colon, or its parts are not numbers.
    #[error("`{0}` is not a range: write A:B, A: or :B")]
    Form(String),
    /// The range ends before it begins.
    #[error("the range `{0}` ends before it begins")]
    EndBeforeStart(String),
}

impl FromStr for NumberRange {
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
                Err(RangeError::EndBeforeStart(text.to_owned()))
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
            assert_eq!(text.parse(), Ok(NumberRange { from, to }));
        }
        for text in ["", ":", "7", "a:b", "-1:2", "+1:2", "1:2:3", "7:3", "99999999999999999999:"] {
            assert!(text.parse::<NumberRange>().is_err(), "{text}");
        }
    }
}
