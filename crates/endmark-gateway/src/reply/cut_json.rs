//! Detects JSON bodies that end too early.

use endmark_wire::json::without_byte_order_mark;

/// Whether the body is an incomplete JSON object, because the connection closed early or the body is longer than
/// declared.
pub(crate) fn ends_too_early(body: &[u8]) -> bool {
    let body = without_byte_order_mark(body);
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    is_object && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err_and(|error| error.is_eof())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_object_is_distinguished_from_whole_and_invalid_ones() {
        let whole = r#" {"a": [1, "\u00e9"], "b": {"c": null}}"#;
        for at in 2..whole.len() {
            assert!(ends_too_early(&whole.as_bytes()[..at]), "{}", &whole[..at]);
        }
        assert!(ends_too_early("\u{feff}{\"a\"".as_bytes()));
        for other in [whole, "", " ", "<html>", "{]", "{\"a\": 1}}", "data: {", "[1", "tru"] {
            assert!(!ends_too_early(other.as_bytes()), "{other}");
        }
    }
}
