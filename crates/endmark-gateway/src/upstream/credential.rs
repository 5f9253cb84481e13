//! Whose a request is, by the credential that it has.

use std::sync::Arc;

use endmark_store::sha256_hex;
use http::{Extensions, HeaderMap};

use super::headers::CREDENTIALS;

/// Characters of a credential's hash: 64 bits are enough to keep clients apart.
const DIGITS: usize = 16;

/// Who a client is by one of the gateway's own keys, beside the head of its request: the same after the key is rotated.
#[derive(Debug, Clone)]
pub(crate) struct Recognised(pub(crate) Arc<str>);

/// Who a client is: by a key of the gateway's own, else the hash of its credential, if it sent one. Whose a record is can be
/// told, what the credential was cannot.
pub(crate) fn credential(headers: &HeaderMap, extensions: &Extensions) -> Option<String> {
    if let Some(Recognised(identity)) = extensions.get() {
        return Some(identity.to_string());
    }
    let credential = CREDENTIALS.iter().find_map(|name| headers.get(name))?;
    let mut digits = sha256_hex(credential.as_bytes());
    digits.truncate(DIGITS);
    Some(digits)
}
