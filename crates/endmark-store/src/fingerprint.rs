//! Fingerprints of texts, kept where the texts themselves are not.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The SHA-256 of some bytes in lower-case hexadecimal: what [`Piece::sha256`](crate::Piece::sha256) holds,
/// and what `sha256sum` prints.
///
/// ```
/// assert!(endmark_store::sha256_hex(b"").starts_with("e3b0c44298fc1c14"));
/// ```
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing into a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
