//! Percent-encoding in paths and queries.

/// Decodes a percent-encoded text. Invalid escapes are kept. A text that would not be UTF-8 is returned unchanged.
///
/// ```
/// use endmark_wire::percent_decode;
/// assert_eq!(percent_decode("k%65y"), "key");
/// assert_eq!(percent_decode("50%"), "50%");
/// ```
pub fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        match (first, behind) {
            (b'%', [high, low, behind @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                bytes.push(hex_value(*high) << 4 | hex_value(*low));
                rest = behind;
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Returns the value of a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
