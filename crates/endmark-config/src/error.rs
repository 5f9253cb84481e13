//! Defines the errors of a configuration.

use std::io;
use std::path::PathBuf;

use endmark_failure::CommandError;

use super::provenance::Origin;

/// Error of a configuration. The message contains the location of the error, and the hint how to correct it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum ConfigError {
    #[error("cannot read the configuration `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}:{line}:{column}: {message}", path.display())]
    Syntax { path: PathBuf, line: usize, column: usize, message: String },
    #[error("{origin}: unknown key `{key}`")]
    UnknownKey { key: String, origin: Origin, nearest: Option<String> },
    #[error("{origin}: `{key}` must be {expected}")]
    InvalidValue { key: String, origin: Origin, expected: String },
    #[error("{origin}: `{name}` cannot be the name of {what}")]
    InvalidName { name: String, what: &'static str, origin: Origin },
    #[error("{origin}: the upstream `{name}` has no `base_url`")]
    NoBaseUrl { name: String, origin: Origin },
    #[error("flag --set: `{0}` is not KEY=VALUE")]
    NotAnAssignment(String),
    #[error("{name}: {message}")]
    UnusableSetting { name: String, message: String, hint: Option<String> },
    #[error("{} problems:\n  {}", .0.len(), .0.iter().map(Self::to_string).collect::<Vec<_>>().join("\n  "))]
    Several(Vec<ConfigError>),
}

impl ConfigError {
    /// Combines all errors into one. Returns `Ok` if the list is empty.
    pub fn combine(mut errors: Vec<Self>) -> Result<(), Self> {
        match errors.len() {
            0 | 1 => errors.pop().map_or(Ok(()), Err),
            _ => Err(Self::Several(errors)),
        }
    }

    /// Whether this error may have caused the other one. If a value cannot be read, other checks in its section may
    /// fail because the value is missing. Nothing depends on a password.
    pub(crate) fn may_cause(&self, other: &Self) -> bool {
        let concerns_password = matches!(other, Self::InvalidValue { key, .. } if key == "store_password");
        !concerns_password && self.section() == other.section()
    }

    /// Returns the section that the error concerns. Empty for keys outside sections.
    fn section(&self) -> &str {
        match self {
            Self::UnknownKey { key, .. } | Self::InvalidValue { key, .. } => {
                key.split_once('.').map_or("", |(section, _)| section)
            }
            _ => "upstreams",
        }
    }

    /// Returns the machine-readable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "config_unreadable",
            Self::Syntax { .. } => "config_syntax",
            Self::UnknownKey { .. } => "unknown_key",
            Self::InvalidValue { .. }
            | Self::InvalidName { .. }
            | Self::NotAnAssignment(_)
            | Self::UnusableSetting { .. } => "invalid_value",
            Self::NoBaseUrl { .. } => "missing_setting",
            Self::Several(errors) => errors.first().map_or("invalid_value", Self::code),
        }
    }

    /// Returns how to correct the error, or `None` if the message states it already.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => Some("Name a file that exists with `--config`, or leave it out.".to_owned()),
            Self::Syntax { .. } | Self::InvalidValue { .. } => None,
            Self::UnusableSetting { hint, .. } => hint.clone(),
            Self::UnknownKey { nearest: Some(nearest), .. } => Some(match nearest.rsplit_once('.') {
                Some((section, key)) => format!("Did you mean `{key}` in `[{section}]`?"),
                None => format!("Did you mean `{nearest}`?"),
            }),
            Self::UnknownKey { nearest: None, .. } => {
                Some("`endmark config show` lists every key there is.".to_owned())
            }
            Self::InvalidName { .. } => Some("A name is made of letters, digits, `-` and `_`.".to_owned()),
            Self::NoBaseUrl { .. } => {
                Some("Say where it is, like `base_url = \"http://127.0.0.1:8080/v1\"`.".to_owned())
            }
            Self::Several(errors) => errors.iter().find_map(Self::hint),
            Self::NotAnAssignment(_) => Some("Write it like `--set resume.mode=on`.".to_owned()),
        }
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self::Input { code: error.code(), message: error.to_string(), hint: error.hint() }
    }
}
