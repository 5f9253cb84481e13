//! The context of every command.

use endmark_config::{Effective, Environment, Override};
use endmark_envelope::Warning;
use endmark_failure::CommandError;

use crate::arguments::Global;
use crate::view::terminal::Terminal;

/// What every command needs.
pub(crate) struct Context {
    pub(crate) terminal: Terminal,
    pub(crate) environment: Environment,
    pub(crate) global: Global,
}

impl Context {
    /// Loads the configuration. The command's own flags override everything else.
    pub(crate) fn configuration(&self, flags: Vec<Override>) -> Result<Effective, CommandError> {
        let mut overrides =
            self.global.sets.iter().map(|set| Override::parse(set)).collect::<Result<Vec<_>, _>>()?;
        overrides.extend(flags);
        Ok(endmark_config::load(&self.environment, self.global.config.as_deref(), &overrides)?)
    }
}

/// Returns likely mistakes in a configuration as warnings.
pub(crate) fn configuration_warnings(effective: &Effective) -> Vec<Warning> {
    effective.warnings.iter().map(|message| Warning::notice("CONFIGURATION", message)).collect()
}
