//! Selects the headers that are forwarded in each direction.

use std::borrow::Cow;
use std::time::Duration;

use endmark_store::SECRET_PREFIX;
use endmark_wire::anthropic_messages::ANTHROPIC;
use endmark_wire::format::WireFormat;
use http::Uri;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::query::secret_values;
use crate::settings::Upstream;

/// Headers that may contain a client's credentials. They are sent only to the host for which they are intended.
///
/// They are parsed header names, because a lookup by text would parse the text each time.
pub(crate) static CREDENTIAL_HEADERS: [HeaderName; 6] = [
    header::AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static(API_MANAGEMENT_KEY_HEADER.0),
    header::COOKIE,
];

/// Headers that contain only a key, each with the prefix of its value.
pub(crate) const KEY_HEADERS: [KeyHeader; 5] = [
    ("x-api-key", ""),
    ("x-goog-api-key", ""),
    AZURE_KEY_HEADER,
    API_MANAGEMENT_KEY_HEADER,
    BEARER_KEY_HEADER,
];

/// Headers that may be sent to a host other than the intended one. Any other header may contain a secret.
const FORWARDABLE_HEADERS: [HeaderName; 6] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("x-request-id"),
];

/// The API version of a Messages request. Anthropic refuses a request without it.
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// The current version, which is sent if the client sends none because its own upstream does not require it.
const DEFAULT_ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");
/// The beta features that a Messages request uses.
const ANTHROPIC_BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// Headers about a body, which are wrong for any other body.
const BODY_HEADERS: [HeaderName; 9] = [
    header::CONTENT_LENGTH,
    header::ETAG,
    header::ACCEPT_RANGES,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("signature"),
    HeaderName::from_static("signature-input"),
];

/// Idempotency key. It must not be forwarded with a different request.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The prefix of Endmark's own headers. They are not forwarded in either direction, unless the upstream is
/// another Endmark.
const OWN_PREFIX: &str = "x-endmark-";

/// Headers with which some servers override the method or the path. The gateway has checked only the method
/// and path of the request itself.
const OVERRIDE_HEADERS: [&str; 5] =
    ["x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"];

/// A header with a key, and the prefix of its value.
pub(crate) type KeyHeader = (&'static str, &'static str);

/// The header of Azure, in any format.
const AZURE_KEY_HEADER: KeyHeader = ("api-key", "");
/// The header of Azure API Management, which many companies use in front of their models.
const API_MANAGEMENT_KEY_HEADER: KeyHeader = ("ocp-apim-subscription-key", "");

/// The header of most providers.
const BEARER_KEY_HEADER: KeyHeader = ("authorization", "Bearer ");

/// Returns the headers of a client's request for the upstream, without headers of the connection and Endmark's own.
/// The upstream's own key, if any, is put where the request's format expects it, where the client's key was, or where
/// the upstream's provider expects it.
pub(crate) fn for_upstream(client: &HeaderMap, upstream: &Upstream, format: Option<KeyHeader>) -> HeaderMap {
    let mut headers = end_to_end(client.clone());
    remove(&mut headers, |name| {
        matches!(name, "host" | "expect")
            || (name.starts_with(OWN_PREFIX) && !upstream.endmark)
            || is_override(name)
    });
    without_own_keys(&mut headers);
    for (name, value) in &mut headers {
        if CREDENTIAL_HEADERS.contains(name) {
            // A sensitive value is not printed by formatters, and not indexed by HTTP/2.
            value.set_sensitive(true);
        }
    }
    let (name, before) = upstream_key_header(&headers, upstream, format);
    if let Some(key) = &upstream.api_key
        && let Ok(mut value) = HeaderValue::from_str(&format!("{before}{}", key.reveal()))
    {
        for credential in &CREDENTIAL_HEADERS {
            headers.remove(credential);
        }
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    headers
}

/// Whether a server may take another method or path from this header. In CGI, `_` and `-` are equal.
fn is_override(name: &str) -> bool {
    let is_alike = |(one, other): (u8, u8)| one == other || (one, other) == (b'-', b'_');
    OVERRIDE_HEADERS
        .iter()
        .any(|known| known.len() == name.len() && known.bytes().zip(name.bytes()).all(is_alike))
}

/// Removes the gateway's own keys from headers in which no provider expects a key. Upstreams have no use for them.
fn without_own_keys(headers: &mut HeaderMap) {
    let begin = SECRET_PREFIX.as_bytes();
    let holds = |value: &HeaderValue| value.as_bytes().windows(begin.len()).any(|part| part == begin);
    let holding: Vec<HeaderName> = headers
        .iter()
        .filter(|(name, value)| !CREDENTIAL_HEADERS.contains(name) && holds(value))
        .map(|(name, _)| name.clone())
        .collect();
    for name in holding {
        headers.remove(name);
    }
}

/// Returns the headers of a client's request for a fallback: those that describe the body, and others that do not
/// identify the client. The client's credentials are for another host, and are not sent even if the fallback has no
/// key.
pub(crate) fn for_fallback(client: &HeaderMap, fallback: &Upstream, format: &dyn WireFormat) -> HeaderMap {
    let is_messages = format.provider() == &ANTHROPIC;
    let is_messages_header = |name| is_messages && [ANTHROPIC_VERSION, ANTHROPIC_BETA].contains(name);
    let is_endmark_header = |name: &HeaderName| fallback.endmark && name.as_str().starts_with(OWN_PREFIX);
    let known = client.iter().filter(|(name, _)| {
        FORWARDABLE_HEADERS.contains(name) || is_messages_header(name) || is_endmark_header(name)
    });
    let mut headers = HeaderMap::new();
    for (name, value) in known {
        headers.append(name.clone(), value.clone());
    }
    if is_messages && !headers.contains_key(&ANTHROPIC_VERSION) {
        headers.insert(ANTHROPIC_VERSION, DEFAULT_ANTHROPIC_VERSION);
    }
    for_upstream(&headers, fallback, Some(format.facts().credential))
}

/// Returns the header for the upstream's own key.
fn upstream_key_header(client: &HeaderMap, upstream: &Upstream, format: Option<KeyHeader>) -> KeyHeader {
    let has = |(name, _): &KeyHeader| client.contains_key(*name);
    match format {
        // Other servers for a provider's format may expect the key in the usual header.
        Some(own) if !has(&own) && has(&BEARER_KEY_HEADER) => BEARER_KEY_HEADER,
        Some(own) if !has(&own) && has(&AZURE_KEY_HEADER) => AZURE_KEY_HEADER,
        Some(own) => own,
        None => KEY_HEADERS.into_iter().find(has).unwrap_or_else(|| {
            upstream.provider.formats().next().map_or(BEARER_KEY_HEADER, |format| format.facts().credential)
        }),
    }
}

/// Returns all values in a request's URL and headers that may be secrets of the sender.
pub(crate) fn find_secrets<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> impl Iterator<Item = Cow<'a, str>> {
    let values = CREDENTIAL_HEADERS.iter().flat_map(|name| headers.get_all(name));
    let in_headers = values.flat_map(|value| match String::from_utf8_lossy(value.as_bytes()) {
        Cow::Borrowed(value) => secret_parts(value).map(Cow::Borrowed).collect::<Vec<_>>(),
        Cow::Owned(value) => secret_parts(&value).map(|part| Cow::Owned(part.to_owned())).collect(),
    });
    let in_query = secret_values(uri.query().unwrap_or_default()).map(Cow::Owned);
    in_headers.chain(in_query).filter(|secret| !secret.eq_ignore_ascii_case("bearer"))
}

/// Returns the parts of a credential. A scrubber would recognise a value with its scheme, or a cookie with its name,
/// only in exactly that form.
fn secret_parts(value: &str) -> impl Iterator<Item = &str> {
    let without_names =
        value.split([' ', ';']).map(|part| part.split_once('=').map_or(part, |(_, rest)| rest));
    without_names.chain(value.split_whitespace())
}

/// Returns the headers of an upstream's response for the client. Only another Endmark may add headers of Endmark.
pub(super) fn from_upstream(headers: HeaderMap, upstream: &Upstream) -> HeaderMap {
    let mut headers = end_to_end(headers);
    if !upstream.endmark {
        remove(&mut headers, |name| name.starts_with(OWN_PREFIX));
    }
    headers
}

/// Removes headers about a body that was changed: length, digests, validators and signatures.
pub(crate) fn remove_body_headers(headers: &mut HeaderMap) {
    for name in BODY_HEADERS {
        headers.remove(name);
    }
}

/// Removes the same headers as `remove_body_headers`, and the idempotency key, because a replaced body is not a
/// repetition.
pub(crate) fn remove_replaced_body_headers(headers: &mut HeaderMap) {
    remove_body_headers(headers);
    headers.remove(IDEMPOTENCY_KEY);
}

/// Whether these headers declare an event stream.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Returns the time that an upstream asks to wait. The headers contain milliseconds, seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let word = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    // OpenAI's and Anthropic's own clients prefer this header.
    let exact = word("retry-after-ms").and_then(number).map(|milliseconds| milliseconds / 1_000.0);
    if let Some(wait) = exact.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        return Some(wait);
    }
    let text = word("retry-after")?;
    if let Some(seconds) = number(text) {
        // A number beyond the range of clocks is longer than any wait.
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let moment = httpdate::parse_http_date(text).ok()?;
    let sent_at = headers.get(header::DATE).and_then(|date| date.to_str().ok());
    let now = sent_at
        .and_then(|date| httpdate::parse_http_date(date.trim()).ok())
        .unwrap_or_else(std::time::SystemTime::now);
    // A date in the past requires no wait.
    Some(moment.duration_since(now).unwrap_or_default())
}

/// Returns whether the upstream requests or forbids a retry. Returns `None` if it does neither.
pub(crate) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.to_str().ok()?.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Returns how many times a client has already sent this request, as counted by the libraries of OpenAI and Anthropic.
pub(crate) fn client_retries(headers: &HeaderMap) -> u32 {
    let count =
        headers.get("x-stainless-retry-count").and_then(|count| count.to_str().ok()?.trim().parse().ok());
    count.unwrap_or(0)
}

fn end_to_end(mut passing: HeaderMap) -> HeaderMap {
    let named_by_connection: Vec<String> = passing
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    for name in named_by_connection {
        passing.remove(name.as_str());
    }
    remove(&mut passing, is_hop_by_hop);
    passing
}

/// Whether a header belongs to a single connection and not to the message (RFC 9110, section 7.6.1).
fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "http2-settings"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authentication-info"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Removes matching headers. Few are present, so checking each one costs less than looking up all names.
fn remove(headers: &mut HeaderMap, must_remove: impl Fn(&str) -> bool) {
    let going: Vec<HeaderName> = headers.keys().filter(|name| must_remove(name.as_str())).cloned().collect();
    for name in going {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use endmark_wire::anthropic_messages::Messages;
    use endmark_wire::gemini::GEMINI;
    use endmark_wire::openai_chat::Chat;

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
    fn connection_headers_and_endmark_headers_are_not_forwarded() {
        let client = headers(&[
            ("host", "localhost:4141"),
            ("connection", "close, x-private"),
            ("x-private", "1"),
            ("transfer-encoding", "chunked"),
            ("x-endmark-resume", "on"),
            ("x-request-id", "7"),
            ("authorization", "Bearer of-the-client"),
        ]);
        let sent = for_upstream(&client, &upstream(None), None);
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
        assert_eq!(for_fallback(&client, &upstream(None), &Chat), headers(&[("x-request-id", "7")]));
        let sent = for_fallback(&client, &upstream(Some("its-own")), &Chat);
        assert_eq!(sent, headers(&[("x-request-id", "7"), ("authorization", "Bearer its-own")]));
    }

    #[test]
    fn a_fallback_gets_the_headers_that_its_messages_body_needs() {
        let (version, key) = ("anthropic-version", ("x-api-key", "its-own"));
        let betas = [("anthropic-beta", "a"), ("anthropic-beta", "b")];
        let of = |client: &HeaderMap| for_fallback(client, &upstream(Some("its-own")), &Messages);
        let mut client = headers(&[(version, "2024-01-01"), ("x-api-key", "of-the-client")]);
        let mut expected = headers(&[(version, "2024-01-01"), key]);
        for (name, value) in betas {
            client.append(name, HeaderValue::from_static(value));
            expected.append(name, HeaderValue::from_static(value));
        }
        assert_eq!(of(&client), expected);
        assert_eq!(of(&headers(&[])), headers(&[(version, "2023-06-01"), key]));
        let of_others = for_fallback(&client, &upstream(None), &Chat);
        assert_eq!(of_others, HeaderMap::new());
    }

    #[test]
    fn an_upstream_key_uses_the_default_header_of_its_provider() {
        for (provider, expected) in [
            (&ANTHROPIC, ("x-api-key", "its-own")),
            (&GEMINI, ("x-goog-api-key", "its-own")),
            (upstream(None).provider, ("authorization", "Bearer its-own")),
        ] {
            let upstream = Upstream { provider, ..upstream(Some("its-own")) };
            assert_eq!(for_upstream(&HeaderMap::new(), &upstream, None), headers(&[expected]));
        }
    }

    #[test]
    fn retry_after_accepts_seconds_and_an_http_date() {
        let after = |pairs: &[(&'static str, &'static str)]| retry_after(&headers(pairs));
        assert_eq!(after(&[("retry-after", " 7 ")]), Some(Duration::from_secs(7)));
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        for (moment, seconds) in [
            ("Sun, 06 Nov 1994 08:49:40 GMT", 3),
            ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
            ("Sun Nov  6 08:49:38 1994", 1),
            ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
        ] {
            assert_eq!(
                after(&[("retry-after", moment), date]),
                Some(Duration::from_secs(seconds)),
                "{moment}"
            );
        }
        assert_eq!(after(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")]), Some(Duration::ZERO));
        assert_eq!(after(&[("retry-after", "soon"), date]), None);
        let millis = |text| after(&[("retry-after-ms", text), ("retry-after", "9")]);
        assert_eq!(millis("1500"), Some(Duration::from_millis(1_500)));
        assert_eq!(millis("0.5"), Some(Duration::from_micros(500)));
        for text in ["soon", "-1", "NaN", "inf", "1e300"] {
            assert_eq!(millis(text), Some(Duration::from_secs(9)), "{text}");
        }
        assert_eq!(after(&[("retry-after", "1.5")]), Some(Duration::from_millis(1_500)));
        assert_eq!(after(&[("retry-after", "1e300")]), Some(Duration::MAX));
        assert_eq!(after(&[("retry-after", "-3")]), None);
    }

    #[test]
    fn a_client_header_with_a_secret_is_recognised() {
        let client = headers(&[
            ("authorization", "Bearer of-the-client"),
            ("cookie", "a=first-cookie; b=second=cookie"),
            ("x-request-id", "7"),
        ]);
        let uri = Uri::from_static("http://host/v1?key=in-the-query&x");
        let secrets: Vec<_> = find_secrets(&client, &uri).collect();
        for secret in ["of-the-client", "first-cookie", "second=cookie", "in-the-query"] {
            assert!(secrets.iter().any(|known| known == secret), "{secret}: {secrets:?}");
        }
        assert!(!secrets.iter().any(|known| known == "Bearer" || known == "7"), "{secrets:?}");
    }

    #[test]
    fn an_upstream_with_its_own_key_never_sees_the_clients_key() {
        let bearer = ("authorization", "Bearer of-the-upstream");
        let anthropic = Some(("x-api-key", ""));
        for (client, format, sent) in [
            (vec![("authorization", "Bearer c"), ("x-api-key", "c")], Some(BEARER_KEY_HEADER), bearer),
            (vec![("x-api-key", "c")], Some(BEARER_KEY_HEADER), bearer),
            (vec![("authorization", "Bearer c")], anthropic, bearer),
            (
                vec![("authorization", "Bearer c"), ("x-api-key", "c")],
                anthropic,
                ("x-api-key", "of-the-upstream"),
            ),
            (vec![("cookie", "c")], anthropic, ("x-api-key", "of-the-upstream")),
            (vec![("api-key", "c")], Some(BEARER_KEY_HEADER), ("api-key", "of-the-upstream")),
            (vec![("x-goog-api-key", "c")], None, ("x-goog-api-key", "of-the-upstream")),
            (vec![], None, bearer),
        ] {
            let given = for_upstream(&headers(&client), &upstream(Some("of-the-upstream")), format);
            assert_eq!(given, headers(&[sent]), "{client:?}");
        }
    }
}
