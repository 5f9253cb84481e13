//! Lists the keys of the configuration, for the file, the environment, the flags and `config show`.

#[cfg(test)]
mod reference;

use std::sync::LazyLock;

use endmark_gateway::{
    CapSettings, CorrectSettings, DiscloseSettings, EmergencySettings, KeySettings, Limits, ListenerSettings,
    MetricsSettings, ResumeSettings, RetrySettings, StorePolicy, ToolSettings, WindowSettings,
};

use super::budget::Budget;
use super::settings::{Files, Runs, Settings, Tls};

pub(crate) type Key = endmark_setting::Key<Settings>;

/// Converts the keys of a section to keys of the whole settings.
macro_rules! section {
    ($name:literal, $section:ty, $($field:ident).+) => {
        <$section>::keys()
            .into_iter()
            .map(|key| key.within($name, |it: &Settings| &it.$($field).+, |it| &mut it.$($field).+))
    };
}

/// All keys except those of upstreams, prices and schemas, in display order.
pub(crate) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    keys.extend(section!("", ListenerSettings, gateway.listener));
    keys.extend(section!("", Files, files));
    keys.extend(section!("tls", Tls, tls));
    keys.extend(section!("resume", ResumeSettings, gateway.resume));
    keys.extend(section!("correct", CorrectSettings, gateway.correct));
    keys.extend(section!("tools", ToolSettings, gateway.tools));
    keys.extend(section!("retry", RetrySettings, gateway.retry));
    keys.extend(section!("limits", Limits, gateway.limits));
    keys.extend(section!("cap", CapSettings, gateway.cap));
    keys.extend(section!("compact.window", WindowSettings, gateway.compact.window));
    keys.extend(section!("compact.emergency", EmergencySettings, gateway.compact.emergency));
    keys.extend(section!("keys", KeySettings, gateway.keys));
    keys.extend(section!("budget", Budget, budget));
    keys.extend(section!("runs", Runs, runs));
    keys.extend(section!("metrics", MetricsSettings, gateway.metrics));
    keys.extend(section!("disclose", DiscloseSettings, gateway.disclose));
    keys.extend(section!("store_policy", StorePolicy, gateway.store_policy));
    keys
});

/// Returns the key with this full name.
pub(crate) fn find_key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name() == name)
}

/// Returns the key that this environment variable sets.
pub(crate) fn find_by_variable(variable: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.variable() == variable)
}

#[cfg(test)]
mod tests {
    use endmark_setting::RawSetting;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_default_is_valid_for_its_key() {
        let defaults = Settings::default();
        for key in KEYS.iter() {
            let written = match key.value(&defaults) {
                // A list is written as text with commas.
                Value::Null | Value::Array(_) => continue,
                Value::String(text) => text,
                other => other.to_string(),
            };
            let mut settings = Settings::default();
            assert_eq!(key.set(&mut settings, &RawSetting::Untyped(written)), Ok(()), "{}", key.name());
            assert_eq!(key.value(&settings), key.value(&defaults), "{}", key.name());
        }
    }
}
