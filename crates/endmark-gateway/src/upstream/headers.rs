//! Which headers pass, in either direction.

use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::settings::Upstream;

/// Headers that belong to one connection and not to the message (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Where a client's credentials for some provider may stand; they go only to the host they were meant for.
pub(crate) const CREDENTIALS: [&str; 5] =
    ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];

/// What another host than the one a request was meant for gets of its headers. What is not named here may be a
/// secret, however it is called.
const OF_ANY_HOST: [HeaderName; 6] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("x-request-id"),
];

/// The prefix of Endmark's own headers, which are for the gateway and not for the upstream.
const OWN: &str = "x-endmark-";

/// The headers of a client's request as the upstream gets them: without those of the connection and
/// Endmark's own, and with the upstream's key where it has one.
pub(crate) fn for_upstream(client: &HeaderMap, upstream: &Upstream) -> HeaderMap {
    let mut headers = end_to_end(client);
    headers.remove(header::HOST);
    headers.remove(header::EXPECT);
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(OWN)).cloned().collect();
    for name in own {
        headers.remove(name);
    }
    if let Some(key) = &upstream.api_key
        && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", key.reveal()))
    {
        for credential in CREDENTIALS {
            headers.remove(credential);
        }
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    headers
}

/// The headers of a client's request as a fallback gets them: only those that say nothing of who the client is.
/// Its credentials were meant for another host, and stay here whether or not the fallback has a key.
pub(crate) fn for_fallback(client: &HeaderMap, fallback: &Upstream) -> HeaderMap {
    let known = client.iter().filter(|(name, _)| OF_ANY_HOST.contains(name));
    let headers = known.map(|(name, value)| (name.clone(), value.clone())).collect();
    for_upstream(&headers, fallback)
}

/// The headers of an upstream's answer as the client gets them.
pub(crate) fn from_upstream(upstream: &HeaderMap) -> HeaderMap {
    end_to_end(upstream)
}

/// How long an upstream asks to be left alone, where it says so in seconds.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut passing = headers.clone();
    let named_by_connection: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    for name in named_by_connection {
        passing.remove(name.as_str());
    }
    for name in HOP_BY_HOP {
        passing.remove(name);
    }
    passing.remove("keep-alive");
    passing.remove("proxy-connection");
    passing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn upstream(key: Option<&str>) -> Upstream {
        let mut upstream = crate::Settings::default().upstreams.remove(0);
        upstream.api_key = key.map(|key| crate::Secret::new(key.to_owned()));
        upstream
    }

    #[test]
    fn headers_of_the_connection_and_our_own_stay_here() {
        let client = headers(&[
            ("host", "localhost:4141"),
            ("connection", "close, x-private"),
            ("x-private", "1"),
            ("transfer-encoding", "chunked"),
            ("x-endmark-resume", "on"),
            ("x-request-id", "7"),
            ("authorization", "Bearer of-the-client"),
        ]);
        let sent = for_upstream(&client, &upstream(None));
        assert_eq!(sent, headers(&[("x-request-id", "7"), ("authorization", "Bearer of-the-client")]));
    }

    #[test]
    fn a_fallback_never_sees_the_clients_credentials() {
        let client = headers(&[
            ("authorization", "Bearer of-the-client"),
            ("cookie", "of-the-client"),
            ("openai-project", "of-the-client"),
            ("ocp-apim-subscription-key", "of-the-client"),
            ("x-request-id", "7"),
        ]);
        assert_eq!(for_fallback(&client, &upstream(None)), headers(&[("x-request-id", "7")]));
        let sent = for_fallback(&client, &upstream(Some("its-own")));
        assert_eq!(sent, headers(&[("x-request-id", "7"), ("authorization", "Bearer its-own")]));
    }

    #[test]
    fn an_upstream_with_its_own_key_never_sees_the_clients() {
        let client = headers(&[("authorization", "Bearer of-the-client"), ("x-api-key", "of-the-client")]);
        let sent = for_upstream(&client, &upstream(Some("of-the-upstream")));
        assert_eq!(sent, headers(&[("authorization", "Bearer of-the-upstream")]));
    }
}
