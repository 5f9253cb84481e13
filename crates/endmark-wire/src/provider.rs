//! Who gave the formats to the world: how requests to them are known.

use std::fmt;

/// A provider, whose formats others speak, too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// What a configuration calls it, as `openai`.
    pub name: &'static str,
    /// Where it serves everybody: scheme and host.
    pub origin: &'static str,
    /// The path there that its API begins at.
    pub base_path: &'static str,
    /// Whether its own libraries add the version to a base URL, so that one may be given without.
    pub adds_version: bool,
    /// The variable of the environment in which its own libraries look for a base URL.
    pub base_url_variable: &'static str,
    /// What traces call it (`gen_ai.provider.name` of OpenTelemetry's conventions).
    pub traced_as: &'static str,
    /// Headers that its libraries alone send.
    pub headers: &'static [&'static str],
    /// How its keys alone begin.
    pub keys_begin: &'static [&'static str],
}

impl Provider {
    /// Where its API begins, for everybody.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.origin, self.base_path)
    }

    /// What its own libraries take for their base URL where a server at this origin speaks for it.
    ///
    /// ```
    /// use endmark_wire::provider::Provider;
    /// let urls: Vec<String> = Provider::all().iter().map(|provider| provider.base_url_at("http://h:1")).collect();
    /// assert_eq!(urls, ["http://h:1/v1", "http://h:1", "http://h:1"]);
    /// ```
    pub fn base_url_at(&self, origin: &str) -> String {
        format!("{origin}{}", if self.adds_version { "" } else { self.base_path })
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}
