//! Replaces the escapes of lone surrogates in JSON.

use std::borrow::Cow;

/// The escape of the replacement character. It has the length of any other `\u` escape.
const REPLACEMENT: &[u8] = br"\ufffd";

/// Replaces each escape of a lone surrogate in JSON by `\ufffd`, so that parsers with Unicode strings accept it.
///
/// A lone surrogate is valid JSON (RFC 8259, section 8.2), but it is not a character. Models and tools that
/// cut text in UTF-16 write it. The result has the length of the input, so every offset stays valid. JSON
/// without lone surrogates is borrowed. Linear time.
///
/// ```
/// use endmark_text::replace_lone_surrogates;
/// assert_eq!(replace_lone_surrogates(r#""half \ud83d""#), r#""half \ufffd""#);
/// assert_eq!(replace_lone_surrogates(r#""whole \ud83d\ude00""#), r#""whole \ud83d\ude00""#);
/// ```
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    match replace_lone_surrogate_bytes(json.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(json),
        // Only ASCII was replaced with ASCII.
        Cow::Owned(replaced) => String::from_utf8(replaced).map_or(Cow::Borrowed(json), Cow::Owned),
    }
}

/// Replaces lone surrogates like [`replace_lone_surrogates`], in JSON that may not be UTF-8.
pub fn replace_lone_surrogate_bytes(json: &[u8]) -> Cow<'_, [u8]> {
    let mut replaced = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(backslash) = memchr::memchr(b'\\', json.get(at..).unwrap_or_default()) {
        at += backslash;
        let length = match (utf16_unit_at(json, at), utf16_unit_at(json, at + REPLACEMENT.len())) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 2 * REPLACEMENT.len(),
            (Some(0xD800..=0xDFFF), _) => {
                if let Some(escape) = replaced.to_mut().get_mut(at..at + REPLACEMENT.len()) {
                    escape.copy_from_slice(REPLACEMENT);
                }
                REPLACEMENT.len()
            }
            // The second byte of another escape must not be mistaken for the start of an escape.
            _ => 2,
        };
        at += length;
    }
    replaced
}

/// Returns the UTF-16 unit of the `\u` escape at `at`, or `None` if there is no such escape.
fn utf16_unit_at(json: &[u8], at: usize) -> Option<u32> {
    let digits = json.get(at..at + REPLACEMENT.len())?.strip_prefix(br"\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_unpaired_surrogates_are_replaced() {
        for (json, expected) in [
            (r#""\uD800""#, r#""\ufffd""#),
            (r#""\udc00\ud83d\ude00\ud83d""#, r#""\ufffd\ud83d\ude00\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            // The letter u after an escaped backslash, and an escape after an escaped backslash.
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\ud83"#, r#""\ud83"#),
            (r#""\"#, r#""\"#),
        ] {
            assert_eq!(replace_lone_surrogates(json), expected);
        }
        assert!(matches!(replace_lone_surrogates(r#""\ud83d\ude00""#), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn any_string_is_readable_after_replacement(units in prop::collection::vec(0xD7F0_u16..0xE010, 0..12)) {
            let escapes: Vec<String> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let escapes = escapes.concat();
            let json = format!("[\"{escapes}\"]");
            let replaced = replace_lone_surrogates(&json);
            let value: Value = serde_json::from_str(&replaced).unwrap();
            prop_assert_eq!(replaced.len(), json.len());
            prop_assert_eq!(value[0].as_str().unwrap(), String::from_utf16_lossy(&units));
        }
    }
}
