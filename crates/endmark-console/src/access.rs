//! Controls who may read the stored data: local clients, or clients with the admin key.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};
use sha2::{Digest as _, Sha256};

use crate::answer::ConsoleError;

/// The cookie that replaces the admin key in a browser.
const COOKIE_NAME: &str = "endmark_admin";

/// The lifetime of the cookie, in seconds.
const COOKIE_LIFETIME_SECONDS: u64 = 12 * 3_600;

/// The access rule, and the secret that signs forms and cookies. Without an admin key, other machines have no
/// access.
pub(crate) struct Access {
    rule: AccessRule,
    secret: [u8; 32],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AccessRule {
    /// All clients have access, because only the owner can reach the listener.
    Open,
    /// Clients that have the key with this hash.
    Key([u8; 32]),
    /// No client has access: other clients can reach the listener, and no admin key is set.
    Closed,
}

impl Access {
    /// Requires the admin key if one is configured. Otherwise allows access only if no one but the owner can
    /// reach the listener. `nonce` is unpredictable, and signs forms if no key is configured.
    pub(crate) fn new(admin_key: Option<&str>, is_local: bool, nonce: &str) -> Self {
        let rule = match admin_key {
            Some(key) => AccessRule::Key(hash(key)),
            None if is_local => AccessRule::Open,
            None => AccessRule::Closed,
        };
        // The secret depends only on the admin key, so cookies survive a restart.
        Self { rule, secret: hash(&format!("endmark console\n{}", admin_key.unwrap_or(nonce))) }
    }

    /// Returns whether a key is required.
    pub(crate) fn has_key(&self) -> bool {
        matches!(self.rule, AccessRule::Key(_))
    }

    /// Admits a request, or returns the reason for refusing it.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<(), ConsoleError> {
        match &self.rule {
            AccessRule::Open => Ok(()),
            AccessRule::Closed => Err(ConsoleError::NoAdminKey),
            AccessRule::Key(_) => {
                let has_key = bearer(headers).is_some_and(|key| self.is_key(key));
                let is_in = has_key || cookies(headers).any(|cookie| self.is_signed(cookie, unix_now()));
                if is_in { Ok(()) } else { Err(ConsoleError::Unauthorized) }
            }
        }
    }

    /// Returns a cookie if the key is the admin key, otherwise `None`.
    pub(crate) fn log_in(&self, key: &str) -> Option<String> {
        self.is_key(key).then(|| {
            let value = self.sign(unix_now() + COOKIE_LIFETIME_SECONDS);
            format!(
                "{COOKIE_NAME}={value}; Path=/endmark; Max-Age={COOKIE_LIFETIME_SECONDS}; HttpOnly; SameSite=Strict"
            )
        })
    }

    /// Returns the header value that removes the cookie.
    pub(crate) fn log_out() -> String {
        format!("{COOKIE_NAME}=; Path=/endmark; Max-Age=0; HttpOnly; SameSite=Strict")
    }

    /// Returns the token that a form must contain. Pages of other sites cannot know it.
    pub(crate) fn form_token(&self) -> String {
        self.signature("form")
    }

    /// Checks the token of a form, which proves that one of the console's pages sent it.
    pub(crate) fn check_form(&self, token: Option<&str>) -> Result<(), ConsoleError> {
        if token.is_some_and(|token| hash(token) == hash(&self.form_token())) {
            Ok(())
        } else {
            Err(ConsoleError::ForgedForm)
        }
    }

    fn is_key(&self, key: &str) -> bool {
        // Comparing hashes takes the same time for every key.
        self.rule == AccessRule::Key(hash(key))
    }

    fn sign(&self, until: u64) -> String {
        format!("{until}.{}", self.signature(&format!("cookie {until}")))
    }

    fn is_signed(&self, cookie: &str, now: u64) -> bool {
        let until = cookie.split_once('.').and_then(|(until, _)| until.parse::<u64>().ok());
        until.is_some_and(|until| until > now && hash(cookie) == hash(&self.sign(until)))
    }

    /// Signs a text. The two nested hashes prevent forging a signature for an extended text.
    fn signature(&self, what: &str) -> String {
        let inner = Sha256::new().chain_update(self.secret).chain_update(what).finalize();
        let outer = Sha256::new().chain_update(self.secret).chain_update(inner).finalize();
        outer.iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// Returns the key in `Authorization: Bearer KEY`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Returns all values of the console's cookie in a request.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let sent = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = sent.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value)
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const KEY: &str = "the admin key";

    fn admits(access: &Access, name: http::HeaderName, value: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(value) = value {
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        access.admit(&headers).is_ok()
    }

    #[test]
    fn remote_reads_need_the_admin_key() {
        assert!(admits(&Access::new(None, true, "n"), AUTHORIZATION, None));
        let closed = Access::new(None, false, "n");
        for key in [None, Some("Bearer "), Some("Bearer x"), Some("Bearer n")] {
            assert!(!admits(&closed, AUTHORIZATION, key), "{key:?}");
        }
        for is_local in [true, false] {
            let access = Access::new(Some(KEY), is_local, "n");
            for right in ["Bearer the admin key", "bearer  the admin key"] {
                assert!(admits(&access, AUTHORIZATION, Some(right)));
            }
            for wrong in
                [None, Some(""), Some("Bearer "), Some("Bearer the admin ke"), Some("Basic the admin key")]
            {
                assert!(!admits(&access, AUTHORIZATION, wrong), "{wrong:?}");
            }
        }
    }

    #[test]
    fn a_cookie_is_valid_until_it_expires_and_only_with_our_signature() {
        let access = Access::new(Some(KEY), false, "n");
        assert_eq!(access.log_in("another key"), None);
        let cookie = access.log_in(KEY).unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let value = cookie.split(';').next().unwrap();
        assert!(admits(&access, COOKIE, Some(&format!("a=b; {value}"))));
        let other = Access::new(Some("another admin key"), false, "n");
        assert!(!admits(&other, COOKIE, Some(value)));
        let (until, signature) = value.split_once('=').unwrap().1.split_once('.').unwrap();
        let later = until.parse::<u64>().unwrap() + 1;
        assert!(!admits(&access, COOKIE, Some(&format!("{COOKIE_NAME}={later}.{signature}"))));
        assert!(!access.is_signed(&format!("{until}.{signature}"), until.parse().unwrap()), "it has ended");
        assert!(Access::new(None, false, "n").log_in("").is_none());
    }

    #[test]
    fn a_form_of_another_site_is_rejected() {
        let access = Access::new(None, true, "nonce");
        assert!(access.check_form(Some(&access.form_token())).is_ok());
        let guessed = Access::new(None, true, "another").form_token();
        for token in [None, Some(""), Some(guessed.as_str())] {
            assert!(access.check_form(token).is_err());
        }
    }
}
