//! The environment variables that Endmark reads, by name.
//!
//! A name is systematic: `ENDMARK_`, the section and the key, joined by `_`, in capitals. An upstream's
//! are `ENDMARK_UPSTREAMS_<NAME>_<KEY>`, a schema's `ENDMARK_SCHEMAS_<NAME>`.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// What every name of ours begins with.
pub(crate) const PREFIX: &str = "ENDMARK_";
/// The configuration file, in place of the ones that are looked for.
pub(crate) const CONFIG: &str = "ENDMARK_CONFIG";
/// What is logged to standard error, as `level` or `target=level,…`.
pub const LOG: &str = "ENDMARK_LOG";
/// What the pages below `/endmark/` ask for.
pub const ADMIN_KEY: &str = "ENDMARK_ADMIN_KEY";
/// What the variables of an upstream begin with; its name and one of its keys follow.
pub const UPSTREAMS: &str = "ENDMARK_UPSTREAMS_";
/// What the variable of a schema begins with; its name follows.
pub(crate) const SCHEMAS: &str = "ENDMARK_SCHEMAS_";

/// Variables of other names that set a key, too: those by which others know it. A later one beats those before it, and the
/// systematic name beats them all.
pub(crate) const OTHER_NAMES: [(&str, &str); 4] = [
    ("MAX_RESULT_CHARS", "cap.max_chars"),
    ("SAFE_TRIGGER_TOKENS", "compact.emergency.trigger_tokens"),
    ("SRE_AGENT_TOKEN_BUDGET", "budget.session_tokens"),
    ("ENDMARK_TOKEN_BUDGET", "budget.session_tokens"),
];

/// The environment as it was when the process began, so that what is read from it can be tested.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Takes these variables; those that are not UTF-8 are none of ours.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let readable =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self(variables.into_iter().filter_map(readable).collect())
    }

    /// The value of this variable; one that is empty counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Every variable that is set and whose name begins like this, in order of the names.
    pub fn beginning_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .range(prefix.to_owned()..)
            .take_while(move |(name, _)| name.starts_with(prefix))
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
