//! The keys of the configuration: the file, the environment, the flags and `config show` all go by them.

mod list;
#[cfg(test)]
mod reference;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use endmark_context::budget::Zone;
use endmark_gateway::{Incomplete, MetricsAccess, Mode, OnMissing, Secret};
use endmark_recovery::{OnAmbiguous, Restart, Strategies, Strategy};
use endmark_store::StoreLocation;
use serde_json::{Value, json};

use super::budget::{OnStoreError, UnknownPaths, UnknownPrice};
use super::choice::Choice;
use super::given::{Expected, Given};
use super::secret_source::SecretSource;
use super::settings::Settings;

pub(crate) use list::KEYS;

/// One key of the configuration.
pub(crate) struct Key {
    /// Section and key, joined by a dot.
    pub(crate) name: &'static str,
    /// The environment variable that sets it.
    pub(crate) environment: &'static str,
    /// What it is, in one line.
    pub(crate) summary: &'static str,
    place: Place,
}

/// Where a key's value stands in the settings, and so what it can be.
enum Place {
    Address(Access<SocketAddr>),
    Store(Access<StoreLocation>),
    OptionalText(Access<Option<String>>),
    OptionalPath(Access<Option<PathBuf>>),
    /// A secret, or where one is kept.
    KeptSecret(Access<Option<SecretSource>>),
    /// Names, each of which has to pass the check; `*` stands for all.
    Names(Access<Vec<String>>, fn(&str) -> Result<(), Expected>),
    Count {
        least: u64,
        access: Access<u64>,
    },
    Flag(Access<bool>),
    Mode(Access<Mode>),
    OnAmbiguous(Access<OnAmbiguous>),
    Restart(Access<Restart>),
    Incomplete(Access<Incomplete>),
    OnMissing(Access<OnMissing>),
    MetricsAccess(Access<Option<MetricsAccess>>),
    Strategies(Access<Strategies>),
    /// Nano-dollars, written in dollars.
    Dollars(Access<u64>),
    OnStoreError(Access<OnStoreError>),
    UnknownPrice(Access<UnknownPrice>),
    UnknownPaths(Access<UnknownPaths>),
    Zone(Access<Zone>),
    /// It is never shown.
    Secret(Access<Option<Secret>>),
}

struct Access<T> {
    get: fn(&Settings) -> &T,
    get_mut: fn(&mut Settings) -> &mut T,
}

impl Key {
    /// Sets this key; the error completes "… must be …".
    pub(crate) fn set(&self, settings: &mut Settings, given: &Given) -> Result<(), Expected> {
        match &self.place {
            Place::Address(access) => *(access.get_mut)(settings) = given.address()?,
            Place::Store(access) => *(access.get_mut)(settings) = given.store()?,
            Place::OptionalText(access) => *(access.get_mut)(settings) = given.optional_text()?,
            Place::OptionalPath(access) => {
                *(access.get_mut)(settings) = given.optional_text()?.map(PathBuf::from);
            }
            Place::KeptSecret(access) => *(access.get_mut)(settings) = given.secret()?,
            Place::Names(access, check) => {
                let names = given.names()?;
                names.iter().filter(|name| *name != "*").try_for_each(|name| check(name))?;
                *(access.get_mut)(settings) = names;
            }
            Place::Count { least, access } => *(access.get_mut)(settings) = given.count(*least)?,
            Place::Flag(access) => *(access.get_mut)(settings) = given.flag()?,
            Place::Mode(access) => *(access.get_mut)(settings) = given.choice()?,
            Place::OnAmbiguous(access) => *(access.get_mut)(settings) = given.choice()?,
            Place::Restart(access) => *(access.get_mut)(settings) = given.choice()?,
            Place::Incomplete(access) => *(access.get_mut)(settings) = given.choice()?,
            Place::OnMissing(access) => *(access.get_mut)(settings) = given.choice()?,
            Place::MetricsAccess(access) => *(access.get_mut)(settings) = Some(given.choice()?),
            Place::Strategies(access) => *(access.get_mut)(settings) = strategies(given)?,
            Place::Dollars(access) => *(access.get_mut)(settings) = given.dollars()?,
            Place::OnStoreError(access) => *(access.get_mut)(settings) = given.choice()?,
            Place::UnknownPrice(access) => *(access.get_mut)(settings) = given.choice()?,
            Place::UnknownPaths(access) => *(access.get_mut)(settings) = given.choice()?,
            Place::Secret(access) => *(access.get_mut)(settings) = given.optional_text()?.map(Secret::new),
            Place::Zone(access) => {
                let zone = given.text()?.parse();
                *(access.get_mut)(settings) = zone.map_err(|_| ZONES.to_owned())?;
            }
        }
        Ok(())
    }

    /// The value of this key; null where there is none.
    pub(crate) fn value(&self, settings: &Settings) -> Value {
        match &self.place {
            Place::Address(access) => json!((access.get)(settings).to_string()),
            Place::Store(access) => json!((access.get)(settings).to_string()),
            Place::OptionalText(access) => json!((access.get)(settings)),
            Place::OptionalPath(access) => json!((access.get)(settings)),
            Place::KeptSecret(access) => {
                (access.get)(settings).as_ref().map_or(Value::Null, SecretSource::shown)
            }
            Place::Names(access, _) => json!((access.get)(settings)),
            Place::Count { access, .. } => json!((access.get)(settings)),
            Place::Flag(access) => json!((access.get)(settings)),
            Place::Mode(access) => json!((access.get)(settings).word()),
            Place::OnAmbiguous(access) => json!((access.get)(settings).word()),
            Place::Restart(access) => json!((access.get)(settings).word()),
            Place::Incomplete(access) => json!((access.get)(settings).word()),
            Place::OnMissing(access) => json!((access.get)(settings).word()),
            Place::MetricsAccess(access) => json!((access.get)(settings).map(Choice::word)),
            Place::Strategies(access) => {
                json!((access.get)(settings).ways().iter().map(|way| way.name()).collect::<Vec<_>>())
            }
            #[expect(clippy::cast_precision_loss, reason = "no budget has 16 digits")]
            Place::Dollars(access) => match *(access.get)(settings) {
                0 => json!(0),
                nano_usd => json!(nano_usd as f64 / 1e9),
            },
            Place::OnStoreError(access) => json!((access.get)(settings).word()),
            Place::UnknownPrice(access) => json!((access.get)(settings).word()),
            Place::UnknownPaths(access) => json!((access.get)(settings).word()),
            Place::Zone(access) => json!((access.get)(settings).to_string()),
            Place::Secret(access) => json!((access.get)(settings).as_ref().map(|_| "***")),
        }
    }

    /// Takes a relative path for one in this folder.
    pub(crate) fn place_below(&self, settings: &mut Settings, folder: &Path) {
        match &self.place {
            Place::OptionalPath(access) => {
                if let Some(path) = (access.get_mut)(settings) {
                    *path = folder.join(&path);
                }
            }
            Place::KeptSecret(access) => {
                if let Some(SecretSource::File(path)) = (access.get_mut)(settings) {
                    *path = folder.join(&path);
                }
            }
            _ => {}
        }
    }

    /// The key of this full name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The key that this environment variable sets.
    pub(crate) fn of_variable(variable: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.environment == variable)
    }
}

/// What a zone has to be.
const ZONES: &str = "`UTC`, hours and minutes east of it, like `+02:00`, or a name, like `Europe/Berlin`";

/// The ways to get the rest of a cut reply, in their order.
fn strategies(given: &Given) -> Result<Strategies, Expected> {
    let names = given.names()?;
    Strategies::parse(names.iter().map(String::as_str)).map_err(|error| {
        let known = Strategy::ALL.map(|way| format!("`{}`", way.name())).join(", ");
        format!("a list of one or more of {known}, each of them once ({error})")
    })
}

#[cfg(test)]
mod tests {
    use super::super::environment;
    use super::*;

    #[test]
    fn the_name_of_a_variable_follows_from_the_name_of_its_key() {
        for key in KEYS {
            let expected = format!("{}{}", environment::PREFIX, key.name.replace('.', "_").to_uppercase());
            assert_eq!(key.environment, expected);
        }
    }

    #[test]
    fn every_default_is_a_value_that_its_key_accepts() {
        let defaults = Settings::default();
        for key in KEYS {
            let written = match key.value(&defaults) {
                // A list is written as text with commas.
                Value::Null | Value::Array(_) => continue,
                Value::String(text) => text,
                other => other.to_string(),
            };
            let mut settings = Settings::default();
            assert_eq!(key.set(&mut settings, &Given::Written(written)), Ok(()), "{}", key.name);
            assert_eq!(key.value(&settings), key.value(&defaults), "{}", key.name);
        }
    }
}
