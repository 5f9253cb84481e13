//! Whose a request is, by the credential that it has.

use endmark_store::sha256_hex;
use http::HeaderMap;

use super::headers::CREDENTIALS;

/// Characters of a credential's hash: 64 bits are enough to keep clients apart.
const DIGITS: usize = 16;

/// The hash of the client's credential, if it sent one: whose a record is can be told, what the credential was cannot.
pub(crate) fn credential(headers: &HeaderMap) -> Option<String> {
    let credential = CREDENTIALS.iter().find_map(|name| headers.get(*name))?;
    let mut digits = sha256_hex(credential.as_bytes());
    digits.truncate(DIGITS);
    Some(digits)
}
