//! Invariants for any text: the guard never panics, and the positions that it reports are correct. (CG-2)

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use endmark_guard::{Artifact, Assessment, Check, Criteria, Guard};
use proptest::prelude::*;

/// Parts of unusual documents.
const PIECES: &[&str] = &[
    "# ",
    "## Risks",
    "\n",
    "\n\n",
    "```",
    "~~~~",
    "| a | b |\n|---|---|\n",
    "| 1 | ",
    "- ",
    "1. ",
    "> ",
    "    ",
    "**",
    "`",
    "[",
    "](",
    ")",
    "<!--",
    "-->",
    "<h2>",
    "</h2>",
    "TBD",
    "to be continued",
    "the rest",
    " of the ",
    "code",
    "// ...",
    "# ... existing code",
    "\u{feff}",
    "---\n",
    "+++\n",
    "a: 1\n",
    "é",
    "未完待续",
    "🙂",
    "\r\n",
    "\t",
    ".",
    ":",
    ",",
    "\"",
    "'",
    "fn main() {",
    "}",
    "(",
    "import os\n",
    "{\"a\": [",
    "\0",
    "[Insert ",
    " here]",
    "…",
    "next session",
    "I will continue ",
    "in the ",
    "\u{2028}",
    "&amp;",
    "\\",
];

fn document() -> impl Strategy<Value = String> {
    let piece = prop_oneof![8 => prop::sample::select(PIECES).prop_map(str::to_owned), 2 => "\\PC{0,8}"];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn criteria() -> Criteria {
    Criteria {
        min_lines: Some(5),
        required_sections: vec!["Risks".to_owned()],
        forbidden_phrases: vec!["the rest".to_owned(), "é".to_owned()],
        ..Criteria::default()
    }
}

/// Every position is in the text and in order, and the text at that position matches the quote.
fn check_positions(text: &str, report: &Assessment) {
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').collect();
    let mut last = (0, 0);
    for finding in report.findings() {
        let place = (finding.line, finding.column);
        assert!(place >= last && finding.line >= 1 && finding.column >= 1, "{place:?} after {last:?}");
        last = place;
        let line = lines.get(finding.line - 1).unwrap();
        let rest: String = line.chars().skip(finding.column - 1).collect();
        assert!(finding.column <= line.chars().count() + 1, "{place:?} in {line:?}");
        let quote = finding.text.trim_end_matches('…');
        assert!(
            rest.trim_start().starts_with(quote.trim_start()) || quote.is_empty(),
            "{quote:?} in {rest:?}"
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_judged_with_valid_positions(text in document(), name in prop::sample::select(&["a.md", "a.rs", "a.json", "a"][..])) {
        let guard = Guard::new(criteria());
        let report = guard.judge(&Artifact::read_file(&text, name));
        check_positions(&text, &report);
        prop_assert_eq!(guard.judge(&Artifact::read_file(&text, name)), report);
    }

    #[test]
    fn enough_lines_are_never_reported_as_too_few(text in document(), more in prop::collection::vec("[A-Z][a-z]{2,9} [a-z]{2,9}\\.", 1..9)) {
        let lines = |text: &str| {
            let report = Guard::new(criteria()).judge(&Artifact::read_file(text, "a.md"));
            report.findings().iter().filter(|finding| finding.check == Check::MinLines).count()
        };
        let is_judged = |text: &str| {
            let report = Guard::new(criteria()).judge(&Artifact::read_file(text, "a.md"));
            !report.findings().iter().any(|finding| finding.check == Check::Empty)
        };
        prop_assume!(is_judged(&text));
        let longer = format!("{text}\n\n{}\n", more.join("\n"));
        prop_assert!(lines(&longer) <= lines(&text));
        // If the added text does not move the end of the front matter, five lines are enough.
        if more.len() >= 5 {
            prop_assert_eq!(lines(&longer), 0);
        }
    }

    #[test]
    fn a_placeholder_word_makes_a_finished_document_unfinished(words in prop::collection::vec("[a-z]{3,8}", 8..20)) {
        let sentence = format!("Word {}x.", words.join("x "));
        let finished = format!("# Report\n\n{sentence}\n\n## Risks\n\n{sentence}\n");
        let guard = Guard::new(Criteria { required_sections: vec!["Risks".to_owned()], ..Criteria::default() });
        let judge = |text: &str| guard.judge(&Artifact::read_file(text, "a.md"));
        prop_assert!(judge(&finished).findings().is_empty());
        let stub = format!("{finished}\nTBD\n");
        prop_assert_eq!(judge(&stub).findings().len(), 1);
    }
}
