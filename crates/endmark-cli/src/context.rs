//! The context that every command receives.

use endmark_config::{ConfigError, EffectiveConfig, Environment, Override};
use endmark_envelope::Warning;
use endmark_failure::CommandError;

use crate::arguments::Global;
use crate::view::terminal::Terminal;

/// Global options, environment and output of a command.
pub(crate) struct Context {
    pub(crate) terminal: Terminal,
    pub(crate) environment: Environment,
    pub(crate) global: Global,
}

impl Context {
    /// Loads the configuration. The command's own options override everything else.
    pub(crate) fn load_configuration(&self, flags: Vec<Override>) -> Result<EffectiveConfig, CommandError> {
        let mut overrides = self.overrides()?;
        overrides.extend(flags);
        Ok(endmark_config::load(&self.environment, self.global.config.as_deref(), &overrides)?)
    }

    /// Loads the valid part of the configuration, and returns all errors in the rest.
    pub(crate) fn load_with_errors(&self) -> Result<(EffectiveConfig, Vec<ConfigError>), CommandError> {
        let named = self.global.config.as_deref();
        Ok(endmark_config::examine(&self.environment, named, &self.overrides()?)?)
    }

    fn overrides(&self) -> Result<Vec<Override>, ConfigError> {
        self.global.sets.iter().map(|set| Override::parse(set)).collect()
    }
}

/// Returns a warning that the result does not include the calls of other gateways.
pub(crate) fn single_gateway_warning(message: &str) -> Warning {
    Warning::notice("THIS_GATEWAY_ALONE", message)
}

/// Returns likely mistakes in a configuration as warnings.
pub(crate) fn configuration_warnings(effective: &EffectiveConfig) -> Vec<Warning> {
    effective.warnings.iter().map(|message| Warning::notice("CONFIGURATION", message)).collect()
}
