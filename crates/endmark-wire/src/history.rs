//! Repairs tool calls in a conversation whose arguments are not JSON (PC-9).
//!
//! A client that received a cut call keeps it in its history, and some servers then answer every further
//! request of that conversation with an error. So such arguments are closed before the request is forwarded.
//! Complete values stay, an added member names the unfinished value, and nothing is invented.

use endmark_context::conversation::{Call, Content};
use endmark_text::{CompleteError, CompletedText, Format, complete};
use memchr::memmem::Finder;

use crate::conversation::EditableText;
use crate::edit::Edits;
use crate::json::{Value, quote};
use crate::wire_format::WireFormat;

/// The member that states that the arguments were cut off.
const CUT_MEMBER: &str = "endmark_cut";

/// The member that contains arguments that cannot be closed, unchanged.
const UNREADABLE_MEMBER: &str = "endmark_unreadable";

/// Maximum length of a repeated JSON Pointer in bytes. A pointer contains names that the model wrote.
const MAX_POINTER_BYTES: usize = 256;

/// Maximum length of a repeated earlier notice in bytes.
const MAX_REPEATED_NOTICE_BYTES: usize = 1024;

/// Returns the calls in these conversation items, and the slots of their arguments.
pub(crate) fn calls<'a>(
    format: &'static dyn WireFormat,
    items: impl Iterator<Item = Value<'a>>,
) -> impl Iterator<Item = (Call<'a>, EditableText<'a>)> {
    // Reading a turn decodes its texts, so skip items without a call.
    let words: Vec<Finder<'_>> = format.facts().call_keywords.iter().map(Finder::new).collect();
    let may_call =
        move |item: &Value<'_>| words.iter().any(|word| word.find(item.raw().as_bytes()).is_some());
    let turns = items.filter(may_call).filter_map(|item| format.turn(item).ok());
    turns.flat_map(|(_, parts)| parts).filter_map(|part| match part.content {
        Content::Call(call) => Some((call, part.editable_text)),
        _ => None,
    })
}

/// Returns the replacement for arguments that are not JSON, or `None` if they are any JSON.
///
/// - **Cut off**: the closed arguments, with a field `endmark_cut` that names the unfinished values.
/// - **Empty**: `{}`, because many servers write a call without arguments like this. If the function requires
///   arguments (`wants_arguments`), a notice that they were cut off before they began.
/// - **Anything else**: the text itself, in a member `endmark_unreadable`.
///
/// ```
/// use endmark_wire::history::repair;
/// assert_eq!(
///     repair(r#"{"path": "a.rs", "text": "fn ma"#, false).unwrap(),
///     r#"{"path": "a.rs", "text": "fn ma","endmark_cut":"these arguments were cut off: /text (string) is not finished"}"#
/// );
/// assert_eq!(repair(r#"{"path": "a.rs"}"#, false), None);
/// ```
pub fn repair(arguments: &str, wants_arguments: bool) -> Option<String> {
    if Value::parse_str(arguments).is_ok() {
        return None;
    }
    if arguments.trim().is_empty() && !wants_arguments {
        return Some("{}".to_owned());
    }
    match complete(arguments.as_bytes(), &Format::Json) {
        Ok(closed) if closed.text.trim_start().starts_with('{') => Some(mark_unfinished(&closed)),
        Err(CompleteError::NoValue) if arguments.trim().is_empty() => Some(format!(
            "{{{}:{}}}",
            quote(CUT_MEMBER),
            quote("these arguments were cut off before they began")
        )),
        _ => Some(format!("{{{}:{}}}", quote(UNREADABLE_MEMBER), quote(arguments))),
    }
}

/// Returns closed arguments with the member that names the unfinished value.
fn mark_unfinished(closed: &CompletedText) -> String {
    // Every other unfinished value contains the innermost one.
    let innermost = closed.unfinished().next_back().filter(|place| !place.pointer.is_empty());
    let marked = match innermost {
        Some(place) if place.pointer.len() <= MAX_POINTER_BYTES => format!(
            "these arguments were cut off: {} ({}) is {}",
            place.pointer,
            place.kind.name(),
            if place.is_omitted { "left out" } else { "not finished" }
        ),
        _ => "these arguments were cut off: more would have followed".to_owned(),
    };
    let Ok(root) = Value::parse_str(&closed.text) else { return closed.text.clone() };
    // The arguments may already contain the member, and a duplicate member must not arise.
    let marked = match root.non_empty_text(CUT_MEMBER) {
        Some(before) if before.len() <= MAX_REPEATED_NOTICE_BYTES => format!("{before}; {marked}"),
        _ => marked,
    };
    let mut edits = Edits::for_document(root);
    edits.set_field(root, CUT_MEMBER, &quote(&marked));
    String::from_utf8(edits.finish()).unwrap_or_else(|_| closed.text.clone())
}

/// Returns whether a schema requires any arguments.
pub(crate) fn wants_arguments(schema: &str) -> bool {
    Value::parse_str(schema).is_ok_and(|schema| schema.non_empty("required").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_of_an_object_is_closed_and_marked() {
        let whole = r#"{"a": "xé\n", "b": [1, {"c": null}], "d": -2.5e3, "endmark_cut": true}"#;
        let cuts = (0..whole.len()).filter(|cut| whole.is_char_boundary(*cut));
        for cut in cuts {
            let text = repair(&whole[..cut], true).unwrap();
            let root = Value::parse_str(&text).unwrap();
            assert!(root.non_empty_text("endmark_cut").unwrap().contains("cut off"), "{cut}: {text}");
            assert_eq!(repair(&text, true), None);
        }
        assert_eq!(repair(whole, true), None);
    }

    #[test]
    fn text_that_is_not_an_object_prefix_is_unchanged() {
        for text in ["{'a': 1}", "{\"a\": 1}}", "[1, 2", "\"x", "tru", "-", "I would call it"] {
            let made = repair(text, false).unwrap();
            assert_eq!(Value::parse_str(&made).unwrap().non_empty_text("endmark_unreadable").unwrap(), text);
        }
        for text in ["{}", "[1]", "\"x\"", "null", " 7 "] {
            assert_eq!(repair(text, true), None, "{text}");
        }
    }

    #[test]
    fn empty_arguments_are_valid_unless_some_are_required() {
        assert_eq!(repair(" ", false).unwrap(), "{}");
        assert!(repair("", true).unwrap().contains("before they began"));
        assert!(wants_arguments(r#"{"type":"object","required":["a"]}"#));
        for schema in ["{}", r#"{"required":[]}"#, "no schema"] {
            assert!(!wants_arguments(schema), "{schema}");
        }
    }

    /// A model may continue closed arguments and be cut again.
    #[test]
    fn arguments_cut_twice_have_one_marker() {
        let once = repair(r#"{"a": "x"#, false).unwrap();
        let twice = repair(&format!(r#"{},"b": "y"#, once.strip_suffix('}').unwrap()), false).unwrap();
        assert_eq!(
            twice,
            r#"{"a": "x","endmark_cut":"these arguments were cut off: /a (string) is not finished; these arguments were cut off: /b (string) is not finished","b": "y"}"#
        );
        let other = repair(r#"{"endmark_cut": [1], "b": "y"#, false).unwrap();
        assert_eq!(
            other,
            r#"{"endmark_cut": "these arguments were cut off: /b (string) is not finished", "b": "y"}"#
        );
    }

    #[test]
    fn the_notice_does_not_repeat_a_long_name() {
        let made = repair(&format!("{{\"{}\": \"x", "n".repeat(300)), false).unwrap();
        assert!(made.ends_with("more would have followed\"}"), "{made}");
    }
}
