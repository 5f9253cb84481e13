//! Builds JSON Pointers (RFC 6901) step by step.

use std::fmt::Write as _;

use crate::json::decode;

/// Appends the step to an array element.
pub(super) fn push_index(pointer: &mut String, index: usize) {
    // Writing to a string cannot fail.
    let _ = write!(pointer, "/{index}");
}

/// Appends the step to a member. `source` is its key with the quotes.
pub(super) fn push_name(pointer: &mut String, source: &[u8]) {
    pointer.push('/');
    let inside = source.get(1..source.len().saturating_sub(1)).unwrap_or_default();
    for character in decode(&String::from_utf8_lossy(inside)).text.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(source: &str) -> String {
        let mut pointer = String::new();
        push_name(&mut pointer, source.as_bytes());
        pointer
    }

    #[test]
    fn a_key_is_decoded_and_escaped_for_the_pointer() {
        assert_eq!(step(r#""plain""#), "/plain");
        assert_eq!(step(r#""""#), "/");
        assert_eq!(step(r#""a/b~c~1""#), "/a~1b~0c~01");
        assert_eq!(step(r#""\"\\\/\b\f\n\r\t""#), "/\"\\~1\u{8}\u{c}\n\r\t");
        assert_eq!(step(r#""\u0041\u00e9\u007E中😀""#), "/Aé~0中😀");
        assert_eq!(step(r#""\ud83d\uDE00x\ud83d\n""#), "/😀x\u{FFFD}\n");
    }

    #[test]
    fn an_array_index_is_written_in_digits() {
        let mut pointer = "/a".to_owned();
        push_index(&mut pointer, 120);
        assert_eq!(pointer, "/a/120");
    }
}
