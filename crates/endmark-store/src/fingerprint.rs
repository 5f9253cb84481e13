//! Computes fingerprints of texts that are not stored themselves.

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of bytes in lower-case hexadecimal, as in
/// [`ReplyPiece::sha256`](crate::ReplyPiece::sha256) and in the output of `sha256sum`.
///
/// ```
/// assert!(endmark_store::sha256_hex(b"").starts_with("e3b0c44298fc1c14"));
/// ```
pub fn sha256_hex(bytes: &[u8]) -> String {
    // Each request needs two fingerprints. A formatter call for each byte would cost more than the digest.
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + (half - 10) };
    let mut hex = Vec::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        hex.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    String::from_utf8(hex).unwrap_or_default()
}
