//! Identifies the client of a request by its secret.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use endmark_store::sha256_hex;
use http::{HeaderMap, Uri, header};

use super::headers::KEY_HEADERS;
use crate::query::find_credentials;

/// Number of digits of a secret's hash. 64 bits suffice to distinguish clients.
const SECRET_HASH_DIGITS: usize = 16;

/// The decoder for Basic authentication. It ignores missing padding, because upstreams differ in whether they
/// require it. A secret is the same with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The client of a request. It owns sessions, budgets, kept outputs and ids of responses.
///
/// With one of the gateway's own keys, the client is the name of the key, which is stable when the key is
/// rotated. Otherwise it is a hash of the secret, regardless of the header and the spelling. If there are
/// several secrets, it is the hash of all of them, so that a client that knows only one is a different
/// client. Claims in tokens are ignored, because only their issuer can verify them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential(Arc<str>);

/// Error of a request whose client is ambiguous, although a budget applies. Without this check, a client
/// could spell its secret differently in each request and count as many clients.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AmbiguousCredential {
    /// The request contains two secrets.
    #[error(
        "the request has two different secrets, in {0} and in {1}, and a budget applies to its client: send only one of them"
    )]
    TwoSecrets(Cow<'static, str>, Cow<'static, str>),
    /// A value is not a single token, for example `Bearer Bearer KEY` or `Bearer "KEY"`.
    #[error(
        "the secret in {0} is not a token of letters, digits and `-._~+/`, with `=` at its end, and a budget applies to its \
         client: send the key alone, as in `Authorization: Bearer KEY`"
    )]
    NotAToken(Cow<'static, str>),
}

impl Credential {
    /// Returns the client identified by one of the gateway's own keys.
    pub(crate) fn from_own_key(identity: Arc<str>) -> Self {
        Self(identity)
    }

    /// Returns the client of a request, identified by one of the gateway's own keys or by its secrets.
    ///
    /// # Errors
    /// [`AmbiguousCredential`] if the request has no such key, a budget applies, and the request contains
    /// different secrets or an invalid one.
    pub(crate) fn from_request(
        own_key: Option<Self>,
        headers: &HeaderMap,
        uri: &Uri,
        budget_applies: bool,
    ) -> Result<Option<Self>, AmbiguousCredential> {
        own_key.map_or_else(|| Self::from_secrets(headers, uri, budget_applies), |own_key| Ok(Some(own_key)))
    }

    /// Returns the client identified by the secrets in these headers and in the query. Cookies count only if there is
    /// no other secret, because servers set them for all clients.
    ///
    /// # Errors
    /// [`AmbiguousCredential`] if `must_be_unique` is true, and there are different secrets or one that is
    /// not a token.
    fn from_secrets(
        headers: &HeaderMap,
        uri: &Uri,
        must_be_unique: bool,
    ) -> Result<Option<Self>, AmbiguousCredential> {
        let in_headers = KEY_HEADERS.into_iter().flat_map(|(name, _)| {
            let place = Cow::Borrowed(name);
            headers.get_all(name).iter().map(move |value| (place.clone(), without_scheme(value.as_bytes())))
        });
        let in_query = find_credentials(uri.query().unwrap_or_default()).map(|(name, value)| {
            let secret = value.trim().as_bytes().to_owned();
            (Cow::Owned(format!("the query's {name}")), (Cow::Owned(secret), false))
        });
        let given = in_headers.chain(in_query).filter(|(_, (secret, _))| !secret.is_empty());
        let mut secrets: Vec<(Cow<'static, str>, Cow<'_, [u8]>)> = Vec::new();
        for (place, (secret, is_basic)) in given {
            if must_be_unique && !is_token(&secret) {
                return Err(AmbiguousCredential::NotAToken(place));
            }
            secrets.push((place, if is_basic { basic_secret(secret) } else { secret }));
        }
        secrets.retain(|(_, secret)| !secret.is_empty());
        // Sort the secrets, so that their order does not affect the identity.
        secrets.sort_by(|(_, secret), (_, other)| secret.cmp(other));
        secrets.dedup_by(|(_, secret), (_, other)| secret == other);
        match secrets.as_slice() {
            [] => Ok(Self::from_cookies(headers)),
            [(place, _), (other, _), ..] if must_be_unique => {
                Err(AmbiguousCredential::TwoSecrets(place.clone(), other.clone()))
            }
            _ => {
                let all: Vec<&[u8]> = secrets.iter().map(|(_, secret)| secret.as_ref()).collect();
                Ok(Some(Self::from_secret(&all.join(&0))))
            }
        }
    }

    fn from_cookies(headers: &HeaderMap) -> Option<Self> {
        let cookies: Vec<&[u8]> =
            headers.get_all(header::COOKIE).iter().map(|value| value.as_bytes().trim_ascii()).collect();
        let all = cookies.join(&b"; "[..]);
        (!all.is_empty()).then(|| Self::from_secret(&all))
    }

    fn from_secret(secret: &[u8]) -> Self {
        let mut digits = sha256_hex(secret);
        digits.truncate(SECRET_HASH_DIGITS);
        Self(digits.into())
    }

    /// Returns the client's id in the store.
    pub(crate) fn id(&self) -> &str {
        &self.0
    }
}

/// Returns the value of a header without its scheme, and whether the scheme is Basic.
fn without_scheme(value: &[u8]) -> (Cow<'_, [u8]>, bool) {
    let value = value.trim_ascii();
    let scheme_length = value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len());
    let (scheme, rest) = value.split_at(scheme_length);
    let is_scheme = |name: &str| scheme.eq_ignore_ascii_case(name.as_bytes());
    let rest = rest.trim_ascii_start();
    let is_lone_scheme = rest.is_empty() && (is_scheme("bearer") || is_scheme("basic"));
    let secret = if rest.is_empty() && !is_lone_scheme { value } else { rest };
    (Cow::Borrowed(secret), is_scheme("basic"))
}

/// Whether this is a single token as defined by RFC 9110 (`token68`).
fn is_token(secret: &[u8]) -> bool {
    let padding = secret.iter().rev().take_while(|byte| **byte == b'=').count();
    let characters = &secret[..secret.len() - padding];
    let is_token_character = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte);
    !characters.is_empty() && characters.iter().all(is_token_character)
}

/// Returns the user and the password of Basic authentication. If one of them is empty, returns only the other.
fn basic_secret(secret: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let Ok(decoded) = BASE64.decode(&secret) else { return secret };
    let single_part = decoded.strip_prefix(b":").or_else(|| decoded.strip_suffix(b":"));
    Cow::Owned(single_part.unwrap_or(&decoded).to_owned())
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose;
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn credential_of(
        headers: &[(&'static str, &str)],
        path: &str,
    ) -> Result<Option<String>, AmbiguousCredential> {
        credential_if_needed(headers, path, true)
    }

    fn credential_if_needed(
        headers: &[(&'static str, &str)],
        path: &str,
        needs_one: bool,
    ) -> Result<Option<String>, AmbiguousCredential> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect();
        let found = Credential::from_secrets(&headers, &path.parse().unwrap(), needs_one)?;
        Ok(found.map(|credential| credential.id().to_owned()))
    }

    #[test]
    fn one_secret_is_one_client_in_every_header() {
        let known = credential_of(&[("authorization", "Bearer K-1")], "/").unwrap();
        assert_eq!(known.as_deref().map(str::len), Some(SECRET_HASH_DIGITS));
        let basic = |text: &str| format!("Basic {}", general_purpose::STANDARD.encode(text));
        for headers in [
            ("authorization", "bearer K-1"),
            ("authorization", "BEARER  \tK-1 "),
            ("authorization", "K-1"),
            ("authorization", &basic(":K-1")),
            ("authorization", basic("K-1:").trim_end_matches('=')),
            ("x-api-key", "K-1"),
            ("x-api-key", "Bearer K-1"),
            ("api-key", " K-1"),
            ("x-goog-api-key", "K-1"),
            ("ocp-apim-subscription-key", "K-1"),
        ] {
            assert_eq!(credential_of(&[headers], "/").unwrap(), known, "{headers:?}");
            assert_eq!(
                credential_of(&[headers, ("cookie", "a=b")], "/?key=K%2D1&b=c").unwrap(),
                known,
                "{headers:?}"
            );
        }
        for query in [
            "key=K-1",
            "%24key=%4b-1",
            "a=b&access_token=K-1",
            "api_key=K-1",
            "API-Key=K-1",
            "key=&key=K-1",
            "subscription-key=K-1",
        ] {
            assert_eq!(credential_of(&[], &format!("/v1?{query}")).unwrap(), known, "{query}");
        }
        assert_ne!(credential_of(&[("authorization", &basic("user:K-1"))], "/").unwrap(), known);
        assert_ne!(credential_of(&[("authorization", "Bearer k-1")], "/").unwrap(), known);
    }

    #[test]
    fn a_secret_that_is_not_a_token_is_refused_under_a_budget() {
        for secret in [
            "Bearer Bearer K-1",
            "Bearer K-1,",
            "Bearer \"K-1\"",
            "Bearer K-1 x",
            "Basic K-1,",
            "Bearer =",
            "K-1;",
        ] {
            for name in ["authorization", "x-api-key", "api-key"] {
                let refused = credential_of(&[(name, secret)], "/").unwrap_err().to_string();
                assert!(refused.contains(name) && !refused.contains("K-1"), "{refused}");
                assert!(credential_if_needed(&[(name, secret)], "/", false).unwrap().is_some(), "{secret}");
            }
        }
        assert!(credential_of(&[], "/?key=K-1%2C").is_err());
        assert!(credential_of(&[("authorization", "Bearer aZ9-._~+/==")], "/").unwrap().is_some());
    }

    #[test]
    fn zero_or_two_secrets_identify_no_client() {
        for nothing in ["", "Bearer", "bearer ", "Basic"] {
            assert_eq!(
                credential_of(&[("authorization", nothing)], "/?key=&monkey=1").unwrap(),
                None,
                "{nothing:?}"
            );
        }
        assert!(credential_of(&[("cookie", "a=b")], "/").unwrap().is_some());
        for (headers, path) in [
            (&[("authorization", "Bearer a"), ("x-api-key", "b")][..], "/"),
            (&[("authorization", "Bearer a"), ("authorization", "Bearer b")], "/"),
            (&[("x-goog-api-key", "a")], "/?key=b"),
            (&[], "/?key=a&key=b"),
            (&[], "/?key=a&access_token=b"),
        ] {
            assert!(credential_of(headers, path).is_err(), "{headers:?} {path}");
            let both = credential_if_needed(headers, path, false).unwrap();
            for one in ["a", "b"] {
                assert_ne!(both, credential_of(&[("x-api-key", one)], "/").unwrap(), "{headers:?} {path}");
            }
            assert_eq!(
                both,
                credential_if_needed(&[("api-key", "b"), ("x-api-key", "a")], "/", false).unwrap()
            );
        }
    }
}
