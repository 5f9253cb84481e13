//! Names the environment variables that Endmark reads.
//!
//! The systematic name of a variable is `ENDMARK_`, the section and the key, joined by `_`, in capitals. The
//! variables of an upstream are `ENDMARK_UPSTREAMS_<NAME>_<KEY>`, and those of a schema `ENDMARK_SCHEMAS_<NAME>`.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The prefix of all environment variables of Endmark.
pub(crate) const VARIABLE_PREFIX: &str = "ENDMARK_";
/// The variable for the path of the configuration file, which replaces the default files.
pub(crate) const CONFIG_FILE_VARIABLE: &str = "ENDMARK_CONFIG";
/// The variable for the log filter of standard error: `level` or `target=level,…`.
pub const LOG: &str = "ENDMARK_LOG";
/// The variable for the key of the pages below `/endmark/`.
pub const ADMIN_KEY: &str = "ENDMARK_ADMIN_KEY";
/// The prefix of an upstream's variables, before the upstream's name and one of its keys.
pub const UPSTREAMS: &str = "ENDMARK_UPSTREAMS_";
/// The prefix of a schema's variable, before the schema's name.
pub(crate) const SCHEMA_VARIABLE_PREFIX: &str = "ENDMARK_SCHEMAS_";

/// Other names of variables, with the keys that they set. A later entry overrides an earlier one. The systematic name
/// overrides both.
pub(crate) const VARIABLE_ALIASES: [(&str, &str); 4] = [
    ("MAX_RESULT_CHARS", "cap.max_chars"),
    ("SAFE_TRIGGER_TOKENS", "compact.emergency.trigger_tokens"),
    ("SRE_AGENT_TOKEN_BUDGET", "budget.session_tokens"),
    ("ENDMARK_TOKEN_BUDGET", "budget.session_tokens"),
];

/// The environment variables at the start of the process. Tests pass other ones.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Creates an environment from variables. Ignores variables that are not UTF-8.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let readable =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self(variables.into_iter().filter_map(readable).collect())
    }

    /// Returns the value of a variable, or `None` if it is unset or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the non-empty variables whose names have this prefix, ordered by name.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .range(prefix.to_owned()..)
            .take_while(move |(name, _)| name.starts_with(prefix))
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
