use endmark_text::Format;
use endmark_text::detect::detect;
use proptest::prelude::*;

use super::{build_correction_prompt, close_for_validation, extract_json, malformation};
use crate::SchemaProblem;

fn problem(path: &str, message: &str) -> SchemaProblem {
    SchemaProblem { path: path.to_owned(), message: message.to_owned() }
}

/// PC-6: the problems in a prompt have a stable order.
#[test]
fn problems_are_listed_by_path_then_message() {
    let sorted =
        [problem("", "\"x\" is required"), problem("/a", "one"), problem("/a", "two"), problem("/b", "0")];
    let mut shuffled = sorted.to_vec();
    shuffled.reverse();
    shuffled.push(problem("/a", "one"));
    let prompt = build_correction_prompt(&shuffled);
    assert_eq!(prompt, build_correction_prompt(&sorted));
    let lines: Vec<&str> = prompt.lines().collect();
    assert_eq!(lines[1..5], ["- \"x\" is required", "- /a: one", "- /a: two", "- /b: 0"]);
    assert!(lines[5].ends_with("Output ONLY the JSON."));
}

#[test]
fn omitted_problems_and_shortened_messages_are_marked() {
    let many: Vec<SchemaProblem> = (10..60).map(|n| problem(&format!("/{n}"), "wrong")).collect();
    let prompt = build_correction_prompt(&many);
    assert!(prompt.contains("- /29: wrong\n- and 30 more of the same kind\n"), "{prompt}");
    assert!(!build_correction_prompt(&many[..20]).contains("more of the same kind"));
    assert!(build_correction_prompt(&many[..21]).contains("\n- and 1 more of the same kind\n"));
    let long =
        build_correction_prompt(&[problem("/a", &format!("{}\n{}", "é".repeat(400), "b".repeat(400)))]);
    let line = long.lines().nth(1).unwrap();
    assert_eq!(line.chars().count(), "- ".len() + 500 + 1);
    assert!(line.ends_with("b…"));
}

#[test]
fn a_document_is_found_in_a_reply() {
    for reply in [
        "{\"a\": [1]}",
        "  {\"a\": [1]}\n",
        "```json\n{\"a\": [1]}\n```",
        "Sure:\n```\n{\"a\": [1]}\n```\nAnything else?",
        "First the schema:\n```yaml\na: list\n```\nThen:\n  ```json\n  {\"a\": [1]}\n  ```",
        "Here it is: {\"a\": [1]} Done.",
    ] {
        assert_eq!(extract_json(reply), Some("{\"a\": [1]}"), "{reply}");
    }
    assert_eq!(extract_json("{\"fence\": \"```\\n\"}"), Some("{\"fence\": \"```\\n\"}"));
}

#[test]
fn an_array_or_a_scalar_is_also_a_document() {
    assert_eq!(extract_json("Here it is: [1, {}, 2] Done."), Some("[1, {}, 2]"));
    for value in ["42", "\"text\"", "true"] {
        assert_eq!(extract_json(value), Some(value));
        assert_eq!(extract_json(&format!("```json\n{value}\n```")), Some(value));
    }
}

/// Brackets in the prose around a fence do not belong to the document.
#[test]
fn a_document_in_a_fence_is_found_among_brackets() {
    for reply in [
        "Sure [as you asked]:\n```json\n{\"a\": [1]}\n```\nIs that {fine}?",
        "See {a}.\n```yaml\na: [list\n```\n```json\n{\"a\": [1]}\n```\n[done",
    ] {
        assert_eq!(extract_json(reply), Some("{\"a\": [1]}"), "{reply}");
    }
    // Two fenced documents are ambiguous. A bracketed number in the prose between them is not the document
    // either.
    assert_eq!(extract_json("```\n1\n```\nor [2] or\n```\n3\n```"), None);
}

#[test]
fn the_reason_why_a_text_is_not_a_document_is_reported() {
    assert_eq!(malformation("{}"), None);
    assert_eq!(malformation("{"), Some(problem("", "the JSON ends before it is complete")));
    let message = malformation("[1}").unwrap().message;
    assert!(message.starts_with("the text is not valid JSON at byte 2: "), "{message}");
}

#[test]
fn an_ambiguous_document_is_not_extracted() {
    for reply in [
        "",
        "I cannot do that.",
        "{\"a\": [1",
        "```json\n{\"a\": [1\n```",
        "```json\n{\"a\": 1}\n```\nor\n```json\n{\"a\": 2}\n```",
        "} and {",
        "{\"a\": 1} or {\"a\": 2}",
    ] {
        assert_eq!(extract_json(reply), None, "{reply}");
    }
}

#[test]
fn a_cut_document_is_closed_for_the_validator() {
    for (cut, closed) in [
        ("{\"a\": [1, 2], \"b\": {\"c\": \"x", "{\"a\": [1, 2], \"b\": {\"c\": \"x\"}}"),
        ("{\"a\": [1, ", "{\"a\": [1]}"),
        ("{\"a\": ", "{\"a\":null}"),
        ("{\"a\"", "{\"a\":null}"),
        ("{\"a", "{\"a\":null}"),
        ("[", "[]"),
        ("{\"a\": true} and so on", "{\"a\": true}"),
    ] {
        assert_eq!(close_for_validation(cut).map(|text| text.trim_end().to_owned()).as_deref(), Some(closed));
    }
    // The content of a cut string is kept unchanged.
    assert_eq!(close_for_validation("{\"a\": \"x, ").as_deref(), Some("{\"a\": \"x, \"}"));
    assert_eq!(close_for_validation("\u{feff}Sorry, no."), None);
    assert_eq!(close_for_validation(""), None);
    assert_eq!(close_for_validation("Sorry, no."), None);
}

proptest! {
    /// Closing any valid beginning of a document gives a document.
    #[test]
    fn every_beginning_of_a_document_can_be_closed(
        (document, beginning) in crate::resume::tests_support::cut_document(),
    ) {
        let closed = close_for_validation(&beginning);
        if beginning.trim().is_empty() {
            prop_assert_eq!(closed, None);
        } else {
            let closed = closed.unwrap();
            prop_assert!(detect(closed.as_bytes(), &Format::Json).verdict.is_whole(), "{document} {closed}");
        }
    }

    #[test]
    fn extraction_never_returns_less_than_the_document(reply in "(```json\n|\\{|\\}|\\[|\\]|\"a\"|:|1|,|\n|```\n|x){0,24}") {
        if let Some(document) = extract_json(&reply) {
            prop_assert!(detect(document.as_bytes(), &Format::Json).verdict.is_whole());
        }
    }
}
