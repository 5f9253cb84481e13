//! Determines the provider of a request, and decides whether the request's key may be sent to an upstream of another
//! provider.

use std::borrow::Cow;

use endmark_wire::anthropic_messages::Messages;
use endmark_wire::format::{self, WireFormat};
use endmark_wire::gemini::Gemini;
use endmark_wire::openai_chat::Chat;
use endmark_wire::provider::Provider;
use http::{HeaderMap, HeaderValue};

use crate::query::find_key;
use crate::settings::Upstream;
use crate::upstream::KEY_HEADERS;

/// The provider that the client expects, represented by one of its formats.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IntendedProvider {
    /// The path, a header or the key is unique to this provider.
    Certain(&'static dyn WireFormat),
    /// The key is at a place that this provider uses, but other providers may use it too.
    Probable(&'static dyn WireFormat),
    /// The request does not indicate a provider.
    Any,
}

impl IntendedProvider {
    /// Determines the provider from the path at the upstream, the query and the headers.
    pub(crate) fn new(path: &str, query: Option<&str>, headers: &HeaderMap) -> Self {
        let marked = || Provider::all().into_iter().find(|of| has_provider_header(of, headers));
        let keyed = || client_keys(query, headers).iter().find_map(|key| provider_by_key(key));
        let of_provider = || marked().or_else(keyed)?.formats().next();
        if let Some(format) = format::find_by_path(path).or_else(of_provider) {
            Self::Certain(format)
        } else if headers.contains_key("x-api-key") {
            Self::Probable(&Messages)
        } else if find_key(query).is_some() {
            Self::Probable(&Gemini)
        } else {
            Self::Any
        }
    }

    /// Returns the format for routing and for errors. If the request does not indicate a provider, returns
    /// the first format.
    pub(crate) fn format(self) -> &'static dyn WireFormat {
        match self {
            Self::Certain(format) | Self::Probable(format) => format,
            Self::Any => &Chat,
        }
    }

    /// Whether the client's key may be sent to an upstream that is not configured for the format. An upstream with
    /// its own key never gets the client's key. A server on this machine may support more formats than configured, so
    /// it may get keys that belong to no known provider.
    pub(crate) fn may_be_sent_to(
        self,
        upstream: &Upstream,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> bool {
        let Self::Certain(_) = self else { return true };
        let keys = client_keys(query, headers);
        if upstream.api_key.is_some() || keys.is_empty() {
            return true;
        }
        let is_another = |of: &'static Provider| upstream.provider != of;
        upstream.base_url.is_this_machine()
            && !keys.iter().filter_map(|key| provider_by_key(key)).any(is_another)
    }
}

/// Whether the request has a header that only this provider's libraries send.
fn has_provider_header(provider: &Provider, headers: &HeaderMap) -> bool {
    provider.headers.iter().any(|name| headers.contains_key(*name))
}

/// Returns the keys that a client sends.
fn client_keys<'a>(query: Option<&str>, headers: &'a HeaderMap) -> Vec<Cow<'a, [u8]>> {
    let held = KEY_HEADERS.into_iter().flat_map(|(name, _)| headers.get_all(name)).map(HeaderValue::as_bytes);
    let bare = held.map(|value| value.rsplit(|byte| *byte == b' ').next().unwrap_or(value));
    let in_query = find_key(query).map(String::into_bytes);
    bare.map(Cow::Borrowed).chain(in_query.map(Cow::Owned)).filter(|key| !key.is_empty()).collect()
}

/// Returns the provider whose keys begin like this key. Returns `None` if the key has no known prefix.
fn provider_by_key(key: &[u8]) -> Option<&'static Provider> {
    let is_its =
        |of: &&Provider| of.key_prefixes.iter().any(|beginning| key.starts_with(beginning.as_bytes()));
    Provider::all().into_iter().find(is_its)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intended_provider(path: &str, query: Option<&str>, sent: &[(&'static str, &str)]) -> &'static str {
        let headers = headers(sent);
        IntendedProvider::new(path, query, &headers).format().name()
    }

    fn headers(sent: &[(&'static str, &str)]) -> HeaderMap {
        sent.iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn the_path_decides_before_headers_and_headers_before_keys() {
        for (path, query, sent, name) in [
            ("/v1/models", None, &[][..], "openai_chat"),
            ("/v1/models", None, &[("authorization", "Bearer x")], "openai_chat"),
            ("/v1/models", None, &[("authorization", "Bearer sk-ant-x")], "anthropic_messages"),
            ("/v1/models", None, &[("x-api-key", "x")], "anthropic_messages"),
            (
                "/v1/files",
                None,
                &[("anthropic-version", "1"), ("authorization", "Bearer x")],
                "anthropic_messages",
            ),
            ("/v1/models", None, &[("x-goog-api-key", "x")], "gemini"),
            ("/v1/models", Some("pageSize=2&key=x"), &[], "gemini"),
            ("/v1/models", Some("monkey=x"), &[], "openai_chat"),
            ("/upload/v1beta/files", None, &[], "gemini"),
            ("/v1/messages/batches", None, &[("authorization", "Bearer x")], "anthropic_messages"),
            ("/v1/chat/completions", None, &[("x-api-key", "x")], "openai_chat"),
            ("/v1/responses/7", None, &[("authorization", "Bearer sk-ant-x")], "openai_responses"),
        ] {
            assert_eq!(intended_provider(path, query, sent), name, "{path} {query:?} {sent:?}");
        }
    }

    #[test]
    fn a_key_is_sent_only_to_its_provider() {
        let far = Upstream::new("far", "https://api.example.com/v1".parse().unwrap());
        let near = Upstream::new("near", "http://127.0.0.1:8080/v1".parse().unwrap());
        let keyed = Upstream { api_key: Some(crate::settings::Secret::new("own".to_owned())), ..far.clone() };
        for (path, query, sent, may) in [
            ("/v1/messages", None, &[("x-api-key", "placeholder")][..], [false, true]),
            ("/v1/messages", None, &[("x-api-key", "sk-ant-1")], [false, false]),
            ("/v1/messages", None, &[("authorization", "Bearer x")], [false, true]),
            ("/v1/messages", None, &[], [true, true]),
            ("/v1beta/models", Some("key=AIzaX"), &[], [false, false]),
            ("/v1beta/models", Some("key=x"), &[], [false, true]),
            // Other APIs may expect a key in the same header.
            ("/v1/models", None, &[("x-api-key", "x")], [true, true]),
            ("/v1/models", None, &[("x-api-key", "sk-ant-1")], [false, false]),
        ] {
            let headers = headers(sent);
            let intended = IntendedProvider::new(path, query, &headers);
            let goes = [&far, &near].map(|upstream| intended.may_be_sent_to(upstream, query, &headers));
            assert_eq!(goes, may, "{path} {query:?} {sent:?}");
            assert!(intended.may_be_sent_to(&keyed, query, &headers), "{path} {query:?} {sent:?}");
        }
    }
}
