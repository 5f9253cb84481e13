//! The ids under which requests, sessions and tasks are remembered.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use endmark_store::sha256_hex;
use http::{HeaderMap, HeaderValue};

use crate::upstream::CREDENTIALS;

/// Characters of a session's hash: 64 bits are enough to keep sessions apart.
const SESSION_DIGITS: usize = 16;

/// A new request id: sorts by time, and is never given twice.
pub(crate) fn new_request_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut noise = RandomState::new().build_hasher();
    noise.write_u64(COUNTER.fetch_add(1, Ordering::Relaxed));
    format!("em_{:011x}{:016x}", since_epoch.as_millis(), noise.finish())
}

/// The hash of the client's credential, if it sent one: whose a record is can be told, what the credential was cannot.
pub(crate) fn credential(headers: &HeaderMap) -> Option<String> {
    let credential = CREDENTIALS.iter().find_map(|name| headers.get(*name))?;
    let mut digits = sha256_hex(credential.as_bytes());
    digits.truncate(SESSION_DIGITS);
    Some(digits)
}

/// The session a request belongs to: the credential together with the client's own session id, else with
/// the beginning of the conversation. Only the hash is kept.
pub(crate) fn session(headers: &HeaderMap, named: Option<&str>, conversation: &str) -> String {
    let credential =
        CREDENTIALS.iter().find_map(|name| headers.get(*name)).map_or(&b""[..], HeaderValue::as_bytes);
    // The zero keeps a credential's end from passing for a session's beginning.
    let identity = [credential, &[0], named.unwrap_or(conversation).as_bytes()].concat();
    let mut digits = sha256_hex(&identity);
    digits.truncate(SESSION_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;

    #[test]
    fn request_ids_differ() {
        let ids: std::collections::BTreeSet<_> = (0..1_000).map(|_| new_request_id()).collect();
        assert_eq!(ids.len(), 1_000);
    }

    #[test]
    fn a_session_is_one_credential_and_one_conversation() {
        let with_key = |key: &'static str| {
            HeaderMap::from_iter([(header::AUTHORIZATION, http::HeaderValue::from_static(key))])
        };
        let one = session(&with_key("a"), None, "Hello");
        assert_eq!(one, session(&with_key("a"), None, "Hello"));
        assert_ne!(one, session(&with_key("b"), None, "Hello"));
        assert_ne!(one, session(&with_key("a"), None, "Good day"));
        assert_eq!(session(&with_key("a"), Some("s"), "x"), session(&with_key("a"), Some("s"), "y"));
    }
}
