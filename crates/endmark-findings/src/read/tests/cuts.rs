//! Tests of what is kept after cuts at specific positions. (AR-1, AR-5)

use super::read_summary;
use crate::{Cut, FindingState, read};

const TEXT: &str = "\
===AGENT_RESULT===
agent_id: a-1
dimensions: a, b
declared_findings: 2

[F001] First
severity: High
location: a.c:1
source: s
sink: k
evidence:
  x();
  [F009] is code

[F002] Second
severity: Low
location: a.c:9
source: s2
sink: k2
evidence:
  y();
===AGENT_RESULT_END===
";

/// Reads the text up to the end of these words. Returns the cut and the state of each finding.
fn read_up_to(words: &str) -> (Cut, Vec<FindingState>) {
    let end = TEXT.find(words).unwrap() + words.len();
    let result = read(&TEXT.as_bytes()[..end]).results.remove(0);
    (result.cut, result.findings.iter().map(|read| read.state).collect())
}

#[test]
fn an_end_marker_within_evidence_is_a_cut_not_an_end() {
    let text = TEXT.replace("  [F009] is code", "===AGENT_RESULT_END===\nfoo();");
    let result = read(text.as_bytes()).results.remove(0);
    assert_eq!((result.cut, result.ends.line), (Cut::Mild, 13));
    assert_eq!(result.findings.iter().map(|read| read.state).collect::<Vec<_>>(), [FindingState::Truncated]);
    assert_eq!(result.lost_count(), 1);
    // A repeated end marker counts once.
    let twice = format!("{TEXT}===AGENT_RESULT_END===\n");
    assert_eq!(read(twice.as_bytes()).results[0].cut, Cut::Whole);
    // Other text after a result does not affect it.
    let summary = format!("{TEXT}\n- [F001] is the worst.\n");
    assert_eq!(read(summary.as_bytes()).results[0].cut, Cut::Whole);
}

#[test]
fn template_brackets_around_the_agent_id_are_tolerated() {
    let text = TEXT.replace("agent_id: a-1", "agent_id: <a-1>");
    let result = read(text.as_bytes()).results.remove(0);
    assert_eq!((result.cut, result.findings.len()), (Cut::Whole, 2));
}

#[test]
fn a_cut_up_to_the_agent_line_is_severe() {
    for words in ["===AGENT", "===AGENT_RESULT===", "===\nagent_id: a-", "agent_id: a-1"] {
        assert_eq!(read_up_to(words), (Cut::Severe, vec![]), "{words}");
    }
    assert_eq!(read_up_to("agent_id: a-1\n"), (Cut::Mild, vec![]));
}

#[test]
fn an_unfinished_header_value_is_dropped() {
    let end = TEXT.find("dimensions: a, b").unwrap() + "dimensions: a, b".len();
    assert!(read(&TEXT.as_bytes()[..end]).results[0].dimensions.is_empty());
    let end = TEXT.find("declared_findings: 2").unwrap() + "declared_findings: 2".len();
    assert_eq!(read(&TEXT.as_bytes()[..end]).results[0].declared_findings, None);
}

#[test]
fn the_last_finding_is_complete_only_before_a_blank_line() {
    use FindingState::{Complete, NeedsReaudit, Truncated};
    for (words, states) in [
        ("[F001", vec![]),
        ("[F001]", vec![NeedsReaudit]),
        ("source: s\nsink: k", vec![NeedsReaudit]),
        ("source: s\nsink: k\n", vec![Truncated]),
        ("  x();", vec![Truncated]),
        ("  [F009] is", vec![Truncated]),
        ("  [F009] is code\n", vec![Truncated]),
        ("  [F009] is code\n\n", vec![Complete]),
        ("  [F009] is code\n\n[", vec![Complete]),
        ("  [F009] is code\n\n[F002", vec![Complete]),
        ("[F002]", vec![Complete, NeedsReaudit]),
        ("sink: k2\nevid", vec![Complete, Truncated]),
        ("  y();\n", vec![Complete, Truncated]),
        ("  y();\n===AGENT_RESULT_END==", vec![Complete, Truncated]),
    ] {
        assert_eq!(read_up_to(words), (Cut::Mild, states), "{words}");
    }
    assert_eq!(read_up_to("===AGENT_RESULT_END==="), (Cut::Whole, vec![Complete, Complete]));
}

#[test]
fn a_cut_marker_is_not_evidence() {
    let end = TEXT.len() - 4;
    let result = read(&TEXT.as_bytes()[..end]).results.remove(0);
    assert_eq!(result.findings[1].finding.evidence.as_ref().unwrap().as_str(), "y();");
}

#[test]
fn a_cut_character_is_not_replaced() {
    let text = "===AGENT_RESULT===\nagent_id: a\n[F001] First\nsource: s\nsink: k\nevidence:\n  grün";
    let cut = &text.as_bytes()[..text.len() - 2];
    assert!(read_summary(cut).contains("\"gr\""), "{}", read_summary(cut));
}

#[test]
fn the_largest_number_determines_the_total() {
    let expected = |text: &str| {
        read(text.as_bytes()).results[0]
            .expected_count()
            .map(|expected| (expected.findings, expected.basis.name()))
    };
    assert_eq!(expected("nothing"), None);
    assert_eq!(expected("===AGENT_RESULT===\nagent_id: a\n[F001] x\n[F004] y"), Some((4, "highest_id")));
    assert_eq!(expected("===AGENT_RESULT===\nagent_id: a\n[F101] x\n[F104] y"), Some((4, "highest_id")));
    assert_eq!(
        expected("===AGENT_RESULT===\nagent_id: a\ndeclared_findings: 9\n[F001] x"),
        Some((9, "declared_findings"))
    );
    assert_eq!(
        expected("[CHECKPOINT] turn:10 findings:12\n===AGENT_RESULT===\nagent_id: a\n[F001] x"),
        Some((12, "checkpoint"))
    );
}

/// Long lines, many lines and deep nesting are parsed in linear time.
#[test]
fn large_repetitive_texts_are_read_in_linear_time() {
    for text in [
        "=",
        "[",
        "[F1]\n",
        "```\n",
        "- ",
        "> ",
        "|",
        "* ",
        "evidence:\n```x\n[F2]\n",
        "\u{3000}",
        "a: b\n",
        "\r",
        "{\n",
        "[\n",
        "{\"a\": [\n",
        "{\"findings\": [",
        "| id | severity | source | sink |\n",
        "**a**\n",
        "**a:** b | **c:** ",
        "[F2] a\nseverity: b\n",
        "evidence: a\n[F1] b\n",
    ] {
        let text = format!("===AGENT_RESULT===\nagent_id: a\n[F001] a\n{}", text.repeat(6_000));
        assert_eq!(read(text.as_bytes()).results[0].cut, Cut::Mild);
    }
    // A pointer to each of these levels would need ten gigabytes.
    let text = format!("===AGENT_RESULT===\n{{\"agent_id\":{}", "[".repeat(100_000));
    assert_eq!(read(text.as_bytes()).results[0].cut, Cut::Severe);
}

/// After the end marker, a finding with a known id and title is a repetition. Any other finding counts as unread.
#[test]
fn a_repeated_finding_after_the_end_is_ignored() {
    let finding = "[F001] One\nseverity: Low\nlocation: a.c:1\nsource: s\nsink: k\n";
    let text =
        format!("===AGENT_RESULT===\nagent_id: a\n\n{finding}evidence:\n  x();\n===AGENT_RESULT_END===\n\n");
    for (again, unread) in [
        (finding.to_owned(), 0),
        (finding.replace("a.c:1", "a.c"), 0),
        (finding.replace("One", "Other").replace("a.c:1", "b.c:1"), 1),
        (finding.replace("F001", "F002"), 1),
    ] {
        assert_eq!(read(format!("{text}{again}").as_bytes()).results[0].unread, unread, "{again}");
    }
}
