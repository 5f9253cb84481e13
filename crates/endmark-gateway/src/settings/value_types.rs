//! Value types that only the gateway's settings use.

use std::net::{IpAddr, SocketAddr};

use endmark_recovery::{OnAmbiguous, Restart, Strategies, Strategy};
use endmark_setting::{ExpectedValue, OneOf, RawSetting, SettingKind};
use serde_json::{Value, json};

use super::{DEFAULT_PORT, Secret};

/// The handling of an ambiguous seam, by its name in the configuration.
pub(super) const ON_AMBIGUOUS_VALUES: OneOf<OnAmbiguous> =
    OneOf(&[("stop", OnAmbiguous::Stop), ("best", OnAmbiguous::Best)]);

/// Which regenerated parts may replace a cut part, by name in the configuration.
pub(super) const RESTART_VALUES: OneOf<Restart> =
    OneOf(&[("any", Restart::Any), ("same", Restart::Same), ("off", Restart::Off)]);

/// An address with an optional port.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListenAddress;

impl SettingKind<SocketAddr> for ListenAddress {
    fn read(&self, given: &RawSetting) -> Result<SocketAddr, ExpectedValue> {
        let text = given.text().unwrap_or_default();
        let text = text.trim();
        let numeric = match text.strip_prefix("localhost") {
            Some(port) if port.is_empty() || port.starts_with(':') => format!("127.0.0.1{port}"),
            _ => text.to_owned(),
        };
        let without_port = |ip: IpAddr| SocketAddr::new(ip, DEFAULT_PORT);
        numeric
            .parse()
            .or_else(|_| numeric.parse().map(without_port))
            .map_err(|_| "an IP address and a port, like \"127.0.0.1:4141\"".to_owned())
    }

    fn show(&self, value: &SocketAddr) -> Value {
        json!(value.to_string())
    }

    fn accepts(&self) -> String {
        "an address and port".to_owned()
    }
}

/// The strategies for getting the rest of a cut reply, in order.
#[derive(Debug, Clone, Copy)]
pub(super) struct StrategyList;

impl SettingKind<Strategies> for StrategyList {
    fn read(&self, given: &RawSetting) -> Result<Strategies, ExpectedValue> {
        let names = given.names()?;
        Strategies::parse(names.iter().map(String::as_str)).map_err(|error| {
            let known = Strategy::ALL.map(|way| format!("`{}`", way.name())).join(", ");
            format!("a list of one or more of {known}, each of them once ({error})")
        })
    }

    fn show(&self, value: &Strategies) -> Value {
        json!(value.ways().iter().map(|way| way.name()).collect::<Vec<_>>())
    }

    fn accepts(&self) -> String {
        "a list of ways".to_owned()
    }
}

/// A secret that is in the configuration itself and is never displayed.
#[derive(Debug, Clone, Copy)]
pub struct SecretText;

impl SettingKind<Option<Secret>> for SecretText {
    fn read(&self, given: &RawSetting) -> Result<Option<Secret>, ExpectedValue> {
        Ok(given.optional_text()?.map(Secret::new))
    }

    fn show(&self, value: &Option<Secret>) -> Value {
        json!(value.as_ref().map(|_| "***"))
    }

    fn accepts(&self) -> String {
        "a text, never shown".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_lack_its_port() {
        let address = |text: &str| ListenAddress.read(&RawSetting::Untyped(text.into()));
        assert_eq!(address("localhost:80"), Ok("127.0.0.1:80".parse().unwrap()));
        assert_eq!(address("0.0.0.0"), Ok("0.0.0.0:4141".parse().unwrap()));
        assert_eq!(address("::1"), Ok("[::1]:4141".parse().unwrap()));
        assert!(address("localhost.example").is_err() && address("4141").is_err());
    }
}
