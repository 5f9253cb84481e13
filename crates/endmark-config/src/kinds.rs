//! Defines the types of values that occur only in the configuration.

use std::path::Path;

use endmark_context::budget::Zone;
use endmark_context::{Rate, rate_from_dollars};
use endmark_gateway::Secret;
use endmark_setting::{ExpectedValue, RawSetting, SettingKind};
use endmark_store::{LocationError, StoreLocation};
use serde_json::{Value, json};

use super::secret_source::SecretSource;

/// Parses a rate in dollars per million tokens.
pub(crate) fn parse_rate(given: &RawSetting) -> Result<Rate, ExpectedValue> {
    let dollars = match given {
        #[expect(clippy::cast_precision_loss, reason = "no price has 16 digits")]
        RawSetting::Integer(number) => Some(*number as f64),
        RawSetting::Float(number) => Some(*number),
        RawSetting::Untyped(text) => text.trim().parse().ok(),
        _ => None,
    };
    let dollars = dollars.ok_or_else(|| "a number of dollars per million tokens, like 0.30".to_owned())?;
    rate_from_dollars(dollars).map_err(|error| format!("a number of dollars per million tokens ({error})"))
}

/// An amount that is written in dollars and stored in nano-dollars.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dollars;

impl SettingKind<u64> for Dollars {
    fn read(&self, given: &RawSetting) -> Result<u64, ExpectedValue> {
        // A rate is stored in nano-dollars per million tokens, so `parse_rate` also converts dollars to nano-dollars.
        parse_rate(given).map_err(|_| "a number of dollars, 0 or more, like 2.50".to_owned())
    }

    #[expect(clippy::cast_precision_loss, reason = "no budget has 16 digits")]
    fn show(&self, value: &u64) -> Value {
        match *value {
            0 => json!(0),
            nano_usd => json!(nano_usd as f64 / 1e9),
        }
    }

    fn accepts(&self) -> String {
        "dollars".to_owned()
    }
}

/// The name of a time zone, whose midnight begins days and months.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZoneName;

impl SettingKind<Zone> for ZoneName {
    fn read(&self, given: &RawSetting) -> Result<Zone, ExpectedValue> {
        given.text()?.parse().map_err(|_| {
            "`UTC`, hours and minutes east of it, like `+02:00`, or a name, like `Europe/Berlin`".to_owned()
        })
    }

    fn show(&self, value: &Zone) -> Value {
        json!(value.to_string())
    }

    fn accepts(&self) -> String {
        "`UTC`, `+HH:MM`, or a name like `Europe/Berlin`".to_owned()
    }
}

/// The location of a store: a SQLite file or a PostgreSQL URL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreAddress;

impl SettingKind<StoreLocation> for StoreAddress {
    fn read(&self, given: &RawSetting) -> Result<StoreLocation, ExpectedValue> {
        StoreLocation::parse(&given.text()?).map_err(|error| match error {
            // The message never contains the URL, because it may contain a password.
            LocationError::Postgres(error) => format!("a usable URL of PostgreSQL: {error}"),
            _ => "a SQLite file, like \"sqlite:endmark.db\", or a URL of PostgreSQL, like \"postgres://USER@HOST/DATABASE\"".to_owned(),
        })
    }

    fn show(&self, value: &StoreLocation) -> Value {
        json!(value.to_string())
    }

    fn accepts(&self) -> String {
        "`sqlite:PATH`, or a URL of PostgreSQL".to_owned()
    }
}

/// A secret, or a reference to one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecretOrReference;

impl SettingKind<Option<SecretSource>> for SecretOrReference {
    fn read(&self, given: &RawSetting) -> Result<Option<SecretSource>, ExpectedValue> {
        match given {
            RawSetting::FromEnvironment(name) => Ok(Some(SecretSource::Environment(name.clone()))),
            RawSetting::FromFile(path) => Ok(Some(SecretSource::File(path.into()))),
            given => match given.optional_text() {
                Ok(text) => Ok(text.map(|text| SecretSource::Value(Secret::new(text)))),
                Err(_) => Err("a string, { env = \"NAME\" } or { file = \"PATH\" }".to_owned()),
            },
        }
    }

    fn show(&self, value: &Option<SecretSource>) -> Value {
        value.as_ref().map_or(Value::Null, SecretSource::display_value)
    }

    fn accepts(&self) -> String {
        "a text, `{ env = \"NAME\" }` or `{ file = \"PATH\" }`".to_owned()
    }

    fn resolve_path(&self, value: &mut Option<SecretSource>, folder: &Path) {
        if let Some(SecretSource::File(path)) = value {
            *path = folder.join(&path);
        }
    }
}
