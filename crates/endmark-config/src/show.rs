//! Lists the effective configuration for display.

use endmark_gateway::PREFILLS;
use serde_json::{Value, json};

use super::EffectiveConfig;
use super::keys::KEYS;
use super::provenance::Origin;
use super::secret_source::SecretSource;
use super::settings::{ProxyChoice, Upstream};

/// One key with its value, origin and description.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyListing {
    /// The full name of the key.
    pub key: String,
    /// The value. Null if unset. `***` for a secret.
    pub value: Value,
    /// Where the value was set.
    pub origin: Origin,
    /// The purpose of the key, in one line.
    pub summary: &'static str,
}

/// Returns all keys that can be set, section by section.
pub fn all_values(effective: &EffectiveConfig) -> Vec<KeyListing> {
    let show = |key: String, value: Value, summary: &'static str| {
        let origin = effective.provenance.origin(&key);
        KeyListing { key, value, origin, summary }
    };
    let mut all: Vec<KeyListing> = KEYS
        .iter()
        .map(|key| show(key.name().to_owned(), key.value(&effective.settings), key.summary()))
        .collect();
    for upstream in &effective.settings.upstreams {
        for (key, value, summary) in upstream_values(upstream) {
            all.push(show(format!("upstreams.{}.{key}", upstream.name), value, summary));
        }
    }
    for price in &effective.settings.prices {
        for (key, value, summary) in price.values() {
            all.push(show(format!("prices.{}.{key}", price.pattern), value, summary));
        }
    }
    for schema in &effective.settings.schemas {
        let key = format!("schemas.{}", schema.name);
        all.push(show(key, json!(schema.path.to_string_lossy()), "a JSON Schema that a request can name"));
    }
    all
}

fn upstream_values(upstream: &Upstream) -> [(&'static str, Value, &'static str); 13] {
    let proxy = match &upstream.proxy {
        ProxyChoice::Environment => json!("environment"),
        ProxyChoice::None => json!("none"),
        ProxyChoice::Named(proxy) => json!(proxy.to_string()),
        ProxyChoice::Referenced(source) => source.display_value(),
    };
    let conditions = &upstream.conditions;
    [
        ("format", json!(upstream.format.name), "the wire format it speaks"),
        (
            "base_url",
            json!(upstream.base_url.as_ref().map(ToString::to_string)),
            "where it is, with the version",
        ),
        (
            "api_key",
            upstream.api_key.as_ref().map_or(Value::Null, SecretSource::display_value),
            "its own key, instead of the client's",
        ),
        (
            "for_paths",
            string_list(&conditions.paths),
            "paths that are for it, of which it then gets no others",
        ),
        ("for_models", string_list(&conditions.models), "its models; `*` matches anything"),
        ("for_headers", string_list(&conditions.headers), "header fields of requests that are for it"),
        (
            "prefill",
            json!(PREFILLS.word(upstream.prefill)),
            "how it is asked to continue an unfinished message",
        ),
        ("fallback", json!(upstream.fallback), "the upstream that answers where this one cannot"),
        ("model", json!(upstream.model), "its model when it is the fallback of another upstream"),
        (
            "summary_model",
            json!(upstream.summary_model),
            "the model that sums a conversation up where its older part is condensed",
        ),
        (
            "endmark",
            json!(upstream.endmark),
            "whether it is another Endmark, whose disclosures are passed on",
        ),
        ("proxy", proxy, "the proxy on the way to it: environment, none, or a URL"),
        (
            "ca_file",
            json!(upstream.ca_file),
            "certificate authorities (PEM) that it alone may be certified by",
        ),
    ]
}

fn string_list(patterns: &[impl ToString]) -> Value {
    patterns.iter().map(ToString::to_string).collect()
}
