//! A value as it was given, before it is known what it is for.

use std::net::{IpAddr, SocketAddr};

use endmark_context::{Rate, rate_from_dollars};
use endmark_gateway::Secret;
use endmark_store::StoreLocation;

use super::USUAL_PORT;
use super::choice::Choice;
use super::secret_source::SecretSource;

/// A value as a file, a variable or a flag gives it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Given {
    /// Written where everything is text (a variable, a flag): read as whatever the key needs.
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
    /// Anything else that TOML can say, by the name of its type.
    Other(&'static str),
}

/// What a key needs and did not get: completes "… must be …".
pub(crate) type Expected = String;

impl Given {
    /// The value as a text.
    pub(crate) fn text(&self) -> Result<String, Expected> {
        match self {
            Self::Written(text) | Self::Text(text) => Ok(text.clone()),
            _ => Err("a string".to_owned()),
        }
    }

    /// The value as a text that is not empty; an empty one is nothing.
    pub(crate) fn optional_text(&self) -> Result<Option<String>, Expected> {
        self.text().map(|text| Some(text).filter(|text| !text.is_empty()))
    }

    /// The value as a secret, or the place where one is kept; an empty one is none.
    pub(crate) fn secret(&self) -> Result<Option<SecretSource>, Expected> {
        match self {
            Self::FromEnvironment(name) => Ok(Some(SecretSource::Environment(name.clone()))),
            Self::FromFile(path) => Ok(Some(SecretSource::File(path.into()))),
            given => match given.optional_text() {
                Ok(text) => Ok(text.map(|text| SecretSource::Value(Secret::new(text)))),
                Err(_) => Err("a string, { env = \"NAME\" } or { file = \"PATH\" }".to_owned()),
            },
        }
    }

    /// The value as a list of names; commas stand between those that are written.
    pub(crate) fn names(&self) -> Result<Vec<String>, Expected> {
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

    /// The value as a whole number from `least` on; `_` and `,` may stand between digits of a written one.
    pub(crate) fn count(&self, least: u64) -> Result<u64, Expected> {
        let count = match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Written(text) => text.replace(['_', ','], "").trim().parse().ok(),
            _ => None,
        };
        count.filter(|count| *count >= least).ok_or_else(|| format!("a whole number, {least} or more"))
    }

    /// The value as a rate, from dollars per million tokens.
    pub(crate) fn rate(&self) -> Result<Rate, Expected> {
        let dollars = match self {
            #[expect(clippy::cast_precision_loss, reason = "no price has 16 digits")]
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Written(text) => text.trim().parse().ok(),
            _ => None,
        };
        let dollars =
            dollars.ok_or_else(|| "a number of dollars per million tokens, like 0.30".to_owned())?;
        rate_from_dollars(dollars)
            .map_err(|error| format!("a number of dollars per million tokens ({error})"))
    }

    /// The value in nano-dollars, from dollars.
    pub(crate) fn dollars(&self) -> Result<u64, Expected> {
        // A rate is nano-dollars for a million of something: here for one thing.
        self.rate().map_err(|_| "a number of dollars, 0 or more, like 2.50".to_owned())
    }

    /// The value as yes or no.
    pub(crate) fn flag(&self) -> Result<bool, Expected> {
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

    /// The value as one word out of a few.
    pub(crate) fn choice<C: Choice>(&self) -> Result<C, Expected> {
        let word = self.text().unwrap_or_default();
        C::from_word(word.trim()).ok_or_else(|| {
            let words: Vec<String> = C::words().into_iter().map(|(word, _)| format!("`{word}`")).collect();
            match words.as_slice() {
                [one] => one.clone(),
                words => format!("one of {}", words.join(", ")),
            }
        })
    }

    /// The value as the place of a store.
    pub(crate) fn store(&self) -> Result<StoreLocation, Expected> {
        let expected = || "the path of a SQLite file, like \"sqlite:endmark.db\"".to_owned();
        StoreLocation::parse(&self.text()?).map_err(|_| expected())
    }

    /// The value as an address with a port; without one it is the usual port.
    pub(crate) fn address(&self) -> Result<SocketAddr, Expected> {
        let text = self.text().unwrap_or_default();
        let text = text.trim();
        let numeric = match text.strip_prefix("localhost") {
            Some(port) if port.is_empty() || port.starts_with(':') => format!("127.0.0.1{port}"),
            _ => text.to_owned(),
        };
        let without_port = |ip: IpAddr| SocketAddr::new(ip, USUAL_PORT);
        numeric
            .parse()
            .or_else(|_| numeric.parse().map(without_port))
            .map_err(|_| "an IP address and a port, like \"127.0.0.1:4141\"".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use endmark_gateway::Mode;

    #[test]
    fn written_values_are_read_as_what_the_key_needs() {
        assert_eq!(Given::Written("850_000".into()).count(0), Ok(850_000));
        assert_eq!(Given::Written("850,000".into()).count(0), Ok(850_000));
        assert_eq!(Given::Written("yes".into()).flag(), Ok(true));
        assert_eq!(Given::Written("warn".into()).choice(), Ok(Mode::Warn));
        let address = |text: &str| Given::Written(text.into()).address();
        assert_eq!(address("localhost:80"), Ok("127.0.0.1:80".parse().unwrap()));
        assert_eq!(address("0.0.0.0"), Ok("0.0.0.0:4141".parse().unwrap()));
        assert_eq!(address("::1"), Ok("[::1]:4141".parse().unwrap()));
        assert!(address("localhost.example").is_err() && address("4141").is_err());
    }

    #[test]
    fn a_type_that_toml_states_is_not_guessed_away() {
        assert!(Given::Text("2".into()).count(0).is_err());
        assert!(Given::Text("true".into()).flag().is_err());
        assert!(Given::Integer(2).text().is_err());
        assert_eq!(Given::Integer(-1).count(0), Err("a whole number, 0 or more".into()));
        assert_eq!(
            Given::Text("often".into()).choice::<Mode>(),
            Err("one of `auto`, `on`, `off`, `warn`".into())
        );
    }
}
