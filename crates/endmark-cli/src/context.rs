//! The context that every command receives.

use endmark_config::{ConfigError, Effective, Environment, Override};
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
    pub(crate) fn configuration(&self, flags: Vec<Override>) -> Result<Effective, CommandError> {
        let mut overrides = self.overrides()?;
        overrides.extend(flags);
        Ok(endmark_config::load(&self.environment, self.global.config.as_deref(), &overrides)?)
    }

    /// Loads the configuration as far as possible, with all its errors.
    pub(crate) fn examined(&self) -> Result<(Effective, Vec<ConfigError>), CommandError> {
        let named = self.global.config.as_deref();
        Ok(endmark_config::examine(&self.environment, named, &self.overrides()?)?)
    }

    fn overrides(&self) -> Result<Vec<Override>, ConfigError> {
        self.global.sets.iter().map(|set| Override::parse(set)).collect()
    }
}

/// Returns the warning that the calls of other gateways are missing.
pub(crate) fn this_gateway_alone(message: &str) -> Warning {
    Warning::notice("THIS_GATEWAY_ALONE", message)
}

/// Returns likely mistakes in a configuration as warnings.
pub(crate) fn configuration_warnings(effective: &Effective) -> Vec<Warning> {
    effective.warnings.iter().map(|message| Warning::notice("CONFIGURATION", message)).collect()
}
