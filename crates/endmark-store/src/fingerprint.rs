//! Fingerprints of texts, kept where the texts themselves are not.

use sha2::{Digest, Sha256};

/// The SHA-256 of some bytes in lower-case hexadecimal: what [`Piece::sha256`](crate::Piece::sha256) holds,
/// and what `sha256sum` prints.
///
/// ```
/// assert!(endmark_store::sha256_hex(b"").starts_with("e3b0c44298fc1c14"));
/// ```
pub fn sha256_hex(bytes: &[u8]) -> String {
    // Two are made for each request: a formatter for each byte would cost more than the digest.
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + (half - 10) };
    let mut hex = Vec::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        hex.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    String::from_utf8(hex).unwrap_or_default()
}
