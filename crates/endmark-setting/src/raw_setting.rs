//! The raw value of a setting, before its key determines its type.

/// A value from a file, a variable or a flag.
#[derive(Debug, Clone, PartialEq)]
pub enum RawSetting {
    /// Text from a variable or a flag. It is parsed as the type of the key.
    Untyped(String),
    /// A TOML string.
    Text(String),
    /// A TOML integer.
    Integer(i64),
    /// A TOML float.
    Float(f64),
    /// A TOML boolean.
    Boolean(bool),
    /// The TOML table `{ env = "NAME" }`.
    FromEnvironment(String),
    /// The TOML table `{ file = "PATH" }`.
    FromFile(String),
    /// A TOML array of strings.
    List(Vec<String>),
    /// Any other TOML value. Contains the name of its type.
    Other(&'static str),
}

/// A description of the expected value, as the end of the sentence "… must be …".
pub type ExpectedValue = String;

impl RawSetting {
    /// Returns the value as text.
    ///
    /// # Errors
    ///
    /// Returns the expected value if the value is not text.
    pub fn text(&self) -> Result<String, ExpectedValue> {
        match self {
            Self::Untyped(text) | Self::Text(text) => Ok(text.clone()),
            _ => Err("a string".to_owned()),
        }
    }

    /// Returns the value as text, or `None` if the text is empty.
    ///
    /// # Errors
    ///
    /// Returns the expected value if the value is not text.
    pub fn optional_text(&self) -> Result<Option<String>, ExpectedValue> {
        self.text().map(|text| Some(text).filter(|text| !text.is_empty()))
    }

    /// Returns the value as a list of names. In variables and flags, commas separate the names.
    ///
    /// # Errors
    ///
    /// Returns the expected value if the value is not a list of texts.
    pub fn names(&self) -> Result<Vec<String>, ExpectedValue> {
        match self {
            Self::List(names) => Ok(names.clone()),
            Self::Untyped(text) => Ok(text
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()),
            _ => Err("a list of strings, like [\"one\", \"two\"]".to_owned()),
        }
    }

    /// Returns the value as an integer of at least `least`. In variables and flags, `_` and `,` may separate
    /// digits.
    ///
    /// # Errors
    ///
    /// Returns the expected value if the value is not an integer, or is below `least`.
    pub fn count(&self, least: u64) -> Result<u64, ExpectedValue> {
        let count = match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Untyped(text) => text.replace(['_', ','], "").trim().parse().ok(),
            _ => None,
        };
        count.filter(|count| *count >= least).ok_or_else(|| format!("a whole number, {least} or more"))
    }

    /// Returns the value as a boolean.
    ///
    /// # Errors
    ///
    /// Returns the expected value if the value is not a boolean.
    pub fn flag(&self) -> Result<bool, ExpectedValue> {
        match self {
            Self::Boolean(flag) => Ok(*flag),
            Self::Untyped(text) => match text.trim() {
                "true" | "1" | "yes" | "on" => Ok(true),
                "false" | "0" | "no" | "off" => Ok(false),
                _ => Err("`true` or `false`".to_owned()),
            },
            _ => Err("`true` or `false`".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OneOf;

    const MODES: OneOf<u8> = OneOf(&[("auto", 1), ("on", 2)]);

    #[test]
    fn text_values_are_parsed_by_the_type_of_the_key() {
        assert_eq!(RawSetting::Untyped("850_000".into()).count(0), Ok(850_000));
        assert_eq!(RawSetting::Untyped("850,000".into()).count(0), Ok(850_000));
        assert_eq!(RawSetting::Untyped("yes".into()).flag(), Ok(true));
        assert_eq!(MODES.parse(&RawSetting::Untyped("on".into())), Ok(2));
    }

    #[test]
    fn a_toml_type_is_not_reinterpreted() {
        assert!(RawSetting::Text("2".into()).count(0).is_err());
        assert!(RawSetting::Text("true".into()).flag().is_err());
        assert!(RawSetting::Integer(2).text().is_err());
        assert_eq!(RawSetting::Integer(-1).count(0), Err("a whole number, 0 or more".into()));
        assert_eq!(MODES.parse(&RawSetting::Text("often".into())), Err("one of `auto`, `on`".into()));
    }
}
