//! A value before it is known which key it is for.

/// A value as given in a file, a variable or a flag.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// Text from a variable or a flag, which is parsed into the type that the key needs.
    Written(String),
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
    /// Any other TOML value, by the name of its type.
    Other(&'static str),
}

/// The expected value, as the end of the sentence "… must be …".
pub type Expected = String;

impl Given {
    /// Returns the value as text.
    ///
    /// # Errors
    ///
    /// If the value is not text.
    pub fn text(&self) -> Result<String, Expected> {
        match self {
            Self::Written(text) | Self::Text(text) => Ok(text.clone()),
            _ => Err("a string".to_owned()),
        }
    }

    /// Returns the value as text, or `None` if the text is empty.
    ///
    /// # Errors
    ///
    /// If the value is not text.
    pub fn optional_text(&self) -> Result<Option<String>, Expected> {
        self.text().map(|text| Some(text).filter(|text| !text.is_empty()))
    }

    /// Returns the value as a list of names. In variables and flags, commas separate the names.
    ///
    /// # Errors
    ///
    /// If the value is not a list of texts.
    pub fn names(&self) -> Result<Vec<String>, Expected> {
        match self {
            Self::List(names) => Ok(names.clone()),
            Self::Written(text) => Ok(text
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()),
            _ => Err("a list of strings, like [\"one\", \"two\"]".to_owned()),
        }
    }

    /// Returns the value as an integer of at least `least`. In variables and flags, `_` and `,` may separate digits.
    ///
    /// # Errors
    ///
    /// If the value is not an integer, or is smaller.
    pub fn count(&self, least: u64) -> Result<u64, Expected> {
        let count = match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Written(text) => text.replace(['_', ','], "").trim().parse().ok(),
            _ => None,
        };
        count.filter(|count| *count >= least).ok_or_else(|| format!("a whole number, {least} or more"))
    }

    /// Returns the value as a boolean.
    ///
    /// # Errors
    ///
    /// If the value is neither true nor false.
    pub fn flag(&self) -> Result<bool, Expected> {
        match self {
            Self::Boolean(flag) => Ok(*flag),
            Self::Written(text) => match text.trim() {
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
        assert_eq!(Given::Written("850_000".into()).count(0), Ok(850_000));
        assert_eq!(Given::Written("850,000".into()).count(0), Ok(850_000));
        assert_eq!(Given::Written("yes".into()).flag(), Ok(true));
        assert_eq!(MODES.parse(&Given::Written("on".into())), Ok(2));
    }

    #[test]
    fn a_toml_type_is_not_reinterpreted() {
        assert!(Given::Text("2".into()).count(0).is_err());
        assert!(Given::Text("true".into()).flag().is_err());
        assert!(Given::Integer(2).text().is_err());
        assert_eq!(Given::Integer(-1).count(0), Err("a whole number, 0 or more".into()));
        assert_eq!(MODES.parse(&Given::Text("often".into())), Err("one of `auto`, `on`".into()));
    }
}
