//! Tests that the canonical form is parsed back unchanged, whatever the texts contain. (AR-1)

use proptest::prelude::*;

use crate::{
    Cut, Cwe, DeliveredResult, Evidence, Finding, FindingId, FindingState, Location, MergedResults, Severity,
    Team, WriteParameters, read,
};

/// Generates text that could confuse the parser at either end or inside.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        2 => "[a-z]{1,6}",
        2 => "\\PC{1,6}",
        1 => any::<char>().prop_map(String::from),
        1 => proptest::sample::select(&[
            "- ", "| ", "# ", "1. ", "12) ", "> ", "* ", "**", "`", "```", "~~~", ", ", "、", ": ", " - ", "=", "->", "\\u{", "\\", "\\u",
            "\u{1b}[31m", "\u{1b}]0;x\u{7}", "\r", "\n", "\r\n", "\n\n", "\t", " ", "\u{0}", "\u{9b}", "\u{2028}", "\u{feff}", "\u{3000}",
            "N/A", "none", "<what it is>", "<x>", "{x}", "…", "[F002]", "===AGENT_RESULT===", "===AGENT_RESULT_END===", "severity: Low",
            "[CHECKPOINT] turn:1", "Ｆ１：", "⚠️ ", "\"", "'", "a | cwe: CWE-1", "High",
        ][..]).prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

/// Generates text that is not a placeholder: any text followed by a word.
fn informative_text() -> impl Strategy<Value = String> {
    (text(), "[a-z]{3,5}q").prop_map(|(text, word)| format!("{text} {word}").trim().to_owned())
}

fn finding() -> impl Strategy<Value = Finding> {
    let field = || proptest::option::of(informative_text());
    let cwe = proptest::collection::btree_set(1_u32..2_000, 0..3);
    (informative_text(), (field(), field()), cwe, (field(), field(), field()), field(), any::<bool>())
        .prop_map(
            |(title, (severity, location), cwe, (source, sink, flow), evidence, originally_truncated)| {
                Finding {
                    id: FindingId::default(),
                    title,
                    severity: severity.and_then(|text| Severity::read(&text)),
                    cwe: cwe.into_iter().map(Cwe).collect(),
                    location: location.and_then(|text| Location::read(&text)),
                    source,
                    sink,
                    flow,
                    evidence: evidence.and_then(|text| Evidence::new(&text)),
                    originally_truncated,
                    ..Finding::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_result_round_trips(
        agent_id in informative_text().prop_map(|name| name.replace([':', '`', '*', '"'], "x")),
        dimensions in proptest::collection::vec(informative_text(), 0..4),
        findings in proptest::collection::vec(finding(), 0..4),
    ) {
        let mut findings = findings;
        for (finding, number) in findings.iter_mut().zip(1..) {
            finding.id = FindingId::from_number(number);
        }
        let writing = WriteParameters {
            agent_id: Some(&agent_id),
            dimensions: &dimensions,
            declared_findings: Some(findings.len()), other: &[],
            is_whole: true,
        };
        let text = writing.text(&findings);
        prop_assert!(!text.contains(|ch: char| ch.is_control() && ch != '\n' && ch != '\t'), "{:?}", text);
        let results = read(text.as_bytes()).results;
        prop_assert_eq!(results.len(), 1, "{}", text);
        let result = &results[0];
        prop_assert_eq!(result.agent_id.as_deref(), Some(agent_id.as_str()), "{}", text);
        prop_assert_eq!(&result.dimensions, &dimensions, "{}", text);
        prop_assert_eq!(result.cut, Cut::Whole, "{}", text);
        let read: Vec<Finding> = result.findings.iter().map(|read| read.finding.clone()).collect();
        prop_assert_eq!(&read, &findings, "{}", text);
        // The report does not control the terminal either.
        let merged = MergedResults::new(&Team::default(), vec![DeliveredResult { origin: "a\u{1b}.txt".into(), result: result.clone() }]);
        let report = merged.report().markdown();
        prop_assert!(!report.contains(|ch: char| ch.is_control() && ch != '\n' && ch != '\t'), "{:?}", report);
    }
}

/// Text that the line format can express is written as lines. Other text is written as JSON Lines.
#[test]
fn only_text_that_lines_cannot_express_becomes_json() {
    let written = |title: &str, dimension: &str| {
        let finding = Finding {
            id: FindingId::from_number(1),
            title: title.to_owned(),
            severity: Some(Severity::High),
            location: Location::read("a.rs:1"),
            source: Some("input".into()),
            sink: Some("query".into()),
            evidence: Evidence::new("\"\\u{1b}[0m\""),
            ..Finding::default()
        };
        let dimensions = [dimension.to_owned(), "b".to_owned()];
        let writing = WriteParameters {
            agent_id: Some("a-1"),
            dimensions: &dimensions,
            declared_findings: None,
            other: &[],
            is_whole: true,
        };
        let text = writing.text([&finding]);
        let again = read(text.as_bytes()).results.remove(0);
        assert_eq!(again.findings[0].finding, finding, "{text}");
        assert_eq!(again.findings[0].state, FindingState::Complete, "{text}");
        assert_eq!(again.dimensions, dimensions, "{text}");
        text
    };
    for (title, dimension, line) in [
        ("SQL from `name`", "a", "  \"\\u{1b}[0m\"\n"),
        ("# x", "a", "[F001] # x\n"),
        ("1. x", "a", "[F001] 1. x\n"),
        ("- x", "a", "\"title\":\"- x\""),
        ("\u{1b}[31mx\u{9b}", "a", "\"title\":\"\\u001b[31mx\\u009b\""),
        ("x", "a, and more", "\"dimensions\":[\"a, and more\",\"b\"]"),
    ] {
        let text = written(title, dimension);
        assert!(text.contains(line), "{text}");
    }
}

/// Generates a finding with one or two of three weaknesses, on a few lines of one of two files.
fn neighbour() -> impl Strategy<Value = Finding> {
    let cwe = proptest::sample::subsequence(vec![79_u32, 89, 22], 1..=2);
    let place = (proptest::sample::select(&["a.rs", "b.rs"][..]), 1_u32..30, 0_u32..9);
    (0_u32..400, cwe, place).prop_map(|(number, cwe, (file, start, more))| Finding {
        id: FindingId::default(),
        title: format!("Problem {number}"),
        severity: Severity::read("High"),
        cwe: cwe.into_iter().map(Cwe).collect(),
        location: Location::read(&format!("{file}:{start}-{}", start + more)),
        source: Some(format!("s{number}")),
        sink: Some(format!("k{number}")),
        flow: None,
        evidence: Evidence::new(&format!("e{number}();")),
        ..Finding::default()
    })
}

fn merge_one_agent(findings: &[Finding]) -> MergedResults {
    let mut numbered = findings.to_vec();
    for (finding, number) in numbered.iter_mut().zip(1..) {
        finding.id = FindingId::from_number(number);
    }
    let dimensions = ["d".to_owned()];
    let writing = WriteParameters {
        agent_id: Some("a-1"),
        dimensions: &dimensions,
        declared_findings: None,
        other: &[],
        is_whole: true,
    };
    let results = read(writing.text(&numbered).as_bytes()).results;
    let delivered = |result| DeliveredResult { origin: "a-1.txt".to_owned(), result };
    MergedResults::new(&Team::default(), results.into_iter().map(delivered).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merging_a_merge_changes_nothing(findings in proptest::collection::vec(neighbour(), 1..14)) {
        let of = |merged: &MergedResults| -> Vec<Finding> {
            merged.findings().iter().map(|merged| merged.finding.clone()).collect()
        };
        let once = of(&merge_one_agent(&findings));
        let twice = of(&merge_one_agent(&once));
        prop_assert_eq!(once, twice);
    }
}
