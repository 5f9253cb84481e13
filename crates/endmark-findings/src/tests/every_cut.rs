//! Cuts well-formed results at any byte. Nothing is invented or altered, and all complete findings are kept. Together
//! with a supplement, a cut result equals the uncut one. (AR-1, AR-4, AR-5, AR-6)

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::{
    AgentResult, Cut, Cwe, DeliveredResult, Evidence, Finding, FindingId, FindingState, Location,
    MergedResults, Severity, Team, WriteParameters, read,
};

/// Words that could confuse the parser.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-z]{1,8}",
        1 => Just("`x`".to_owned()),
        1 => Just("[F002]".to_owned()),
        1 => Just("===AGENT_RESULT_END===".to_owned()),
        1 => Just("severity: Low".to_owned()),
        1 => Just("<input>".to_owned()),
        1 => Just("grün 😀 漢字".to_owned()),
        1 => Just("**".to_owned()),
        1 => Just("a -> b".to_owned()),
        1 => Just("\"q\",".to_owned()),
    ];
    // Add a word, because punctuation alone, `na` and `none` are placeholders that count as missing.
    (proptest::collection::vec(piece, 0..3), "[a-z]{1,4}q").prop_map(|(mut pieces, word)| {
        pieces.push(word);
        pieces.join(" ")
    })
}

fn evidence() -> impl Strategy<Value = Evidence> {
    let line = prop_oneof![
        4 => text(),
        1 => Just(String::new()),
        1 => Just("    indented".to_owned()),
        1 => Just("\tlet a;".to_owned()),
        1 => Just("```".to_owned()),
        1 => Just("```rust".to_owned()),
        1 => Just("~~~~".to_owned()),
        1 => Just("===AGENT_RESULT===".to_owned()),
        1 => Just("===AGENT_RESULT_END===".to_owned()),
        1 => Just("[F003] in code".to_owned()),
        1 => Just("source: code".to_owned()),
        1 => Just("[CHECKPOINT] turn:10 findings:99 files_read:1 remaining_dims:x".to_owned()),
    ];
    proptest::collection::vec(line, 1..6)
        .prop_filter_map("it is blank", |lines| Evidence::new(&lines.join("\n")))
}

fn finding() -> impl Strategy<Value = Finding> {
    let severity = prop_oneof![
        Just(Severity::Critical),
        Just(Severity::High),
        Just(Severity::Medium),
        Just(Severity::Low),
        Just(Severity::Info)
    ];
    let file = prop_oneof![Just("src/a.rs"), Just("src/b.rs"), Just("my files/c.py")];
    let lines = proptest::option::of((1_u32..60, 0_u32..9));
    let location = (file, lines).prop_map(|(file, lines)| match lines {
        Some((start, more)) => Location::read(&format!("{file}:{start}-{}", start + more)).unwrap(),
        None => Location::read(file).unwrap(),
    });
    let cwe = proptest::collection::vec(prop_oneof![Just(Cwe(89)), Just(Cwe(79)), Just(Cwe(22))], 0..2);
    (severity, cwe, location, (text(), text(), text()), proptest::option::of(text()), evidence()).prop_map(
        |(severity, cwe, location, (title, source, sink), flow, evidence)| Finding {
            id: FindingId::default(),
            title,
            severity: Some(severity),
            cwe,
            location: Some(location),
            source: Some(source),
            sink: Some(sink),
            flow,
            evidence: Some(evidence),
            ..Finding::default()
        },
    )
}

fn findings() -> impl Strategy<Value = Vec<Finding>> {
    proptest::collection::vec(finding(), 0..5).prop_map(|mut findings| {
        for (finding, number) in findings.iter_mut().zip(1..) {
            finding.id = FindingId::from_number(number);
            // Identical findings would be counted as one.
            finding.title = format!("{} {number}", finding.title);
            finding.source = finding.source.as_ref().map(|source| format!("{source} {number}"));
        }
        findings
    })
}

fn write_result(findings: &[Finding]) -> String {
    let dimensions = ["authentication".to_owned(), "session handling".to_owned()];
    let writing = WriteParameters {
        agent_id: Some("auth-2"),
        dimensions: &dimensions,
        declared_findings: Some(findings.len()),
        other: &[],
        is_whole: true,
    };
    writing.text(findings)
}

fn read_only_result(text: &[u8]) -> AgentResult {
    let mut results = read(text).results;
    assert_eq!(results.len(), 1, "{}", String::from_utf8_lossy(text));
    results.remove(0)
}

fn deliver(result: &AgentResult) -> DeliveredResult {
    DeliveredResult { origin: "auth-2.txt".to_owned(), result: result.clone() }
}

/// The formatting of a result: the markup around the first lines of findings and around field names.
#[derive(Debug, Clone, Copy)]
struct Formatting {
    head: (&'static str, &'static str),
    field: (&'static str, &'static str),
    is_in_capitals: bool,
}

const PLAIN: Formatting = Formatting { head: ("", ""), field: ("", ""), is_in_capitals: false };

/// Generates the formatting that models use: headings, bold text, bullets, and names in capitals.
fn formatting() -> impl Strategy<Value = Formatting> {
    let head =
        prop_oneof![Just(("### ", "")), Just(("**", "**")), Just(("- **", "**")), Just(("## ", " ##"))];
    let field = prop_oneof![Just(("- ", "")), Just(("**", "**")), Just(("* **", "**")), Just(("", ""))];
    let dress = (head, field, any::<bool>());
    dress.prop_map(|(head, field, is_in_capitals)| Formatting { head, field, is_in_capitals })
}

/// Formats the lines of a text, except those of evidence.
fn apply_formatting(text: &str, dress: Formatting) -> String {
    let line = |line: &str| {
        if line.starts_with('[') {
            return format!("{}{line}{}\n", dress.head.0, dress.head.1);
        }
        match line.split_once(':').filter(|_| !line.starts_with([' ', '='])) {
            Some((name, value)) => {
                let name = if dress.is_in_capitals { name.to_uppercase() } else { name.to_owned() };
                format!("{}{name}:{}{value}\n", dress.field.0, dress.field.1)
            }
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// Counts the findings that end before this byte: at the next finding, a blank line, or the end marker.
fn count_ended_before(text: &str, findings: &[Finding], dress: Formatting, cut: usize) -> usize {
    let mut from = 0;
    let mut ends = Vec::new();
    for finding in findings.iter().skip(1) {
        from += text[from..].find(&format!("\n\n{}[{}]", dress.head.0, finding.id)).unwrap() + 2;
        ends.push(from);
    }
    if !findings.is_empty() {
        ends.push(text.len() - 1);
    }
    ends.iter().filter(|end| **end <= cut).count()
}

fn check_cut(text: &str, findings: &[Finding], dress: Formatting, cut: usize, uncut: &MergedResults) {
    let result = read_only_result(&text.as_bytes()[..cut]);
    let marker_ends = text.len() - 1;
    assert_eq!(result.cut == Cut::Whole, cut >= marker_ends, "cut at {cut} of {text}");
    // Nothing is invented or altered, and every complete finding is kept.
    let complete: Vec<&Finding> = result
        .findings
        .iter()
        .filter(|read| read.state == FindingState::Complete)
        .map(|read| &read.finding)
        .collect();
    if result.cut != Cut::Severe {
        let expected: Vec<&Finding> =
            findings.iter().take(count_ended_before(text, findings, dress, cut)).collect();
        assert_eq!(complete, expected, "cut at {cut} of {text}");
        assert!(result.findings.len() <= complete.len() + 1, "cut at {cut} of {text}");
    }
    for (read, original) in result.findings.iter().zip(findings) {
        let (found, original_evidence) = (&read.finding, original.evidence.as_ref().unwrap().as_str());
        assert_eq!(found.id, original.id);
        // Bold text or a heading may be cut within its closing markup.
        assert!(original.title.starts_with(found.title.trim_end_matches(['*', '#', ' '])));
        for (found, original) in
            [(&found.source, &original.source), (&found.sink, &original.sink), (&found.flow, &original.flow)]
        {
            assert!(found.is_none() || found == original, "cut at {cut} of {text}");
        }
        assert!(found.location.is_none() || found.location == original.location);
        assert!(found.severity.is_none() || found.severity == original.severity);
        if let Some(evidence) = &found.evidence {
            assert!(original_evidence.starts_with(evidence.as_str()), "{evidence:?} cut at {cut} of {text}");
        }
    }
    // The next round delivers the findings that were not complete.
    let kept: Vec<&FindingId> = complete.iter().map(|finding| &finding.id).collect();
    let lost: Vec<Finding> =
        findings.iter().filter(|finding| !kept.contains(&&finding.id)).cloned().collect();
    let supplement = read_only_result(write_result(&lost).as_bytes());
    let merged = if result.cut == Cut::Whole {
        MergedResults::new(&Team::default(), vec![deliver(&result)])
    } else {
        MergedResults::new(&Team::default(), vec![deliver(&result), deliver(&supplement)])
    };
    assert_eq!(merged.findings(), uncut.findings(), "cut at {cut} of {text}");
    let disclosure = merged.report();
    let disclosure = disclosure.disclosure();
    assert_eq!(disclosure.is_truncated(), result.cut != Cut::Whole, "cut at {cut} of {text}");
    if result.cut == Cut::Mild {
        assert_eq!(disclosure.unrecovered.count, 0, "cut at {cut} of {text}");
        // Two findings with one weakness at one place cannot be distinguished with certainty.
        let is_doubtful = disclosure.unrecovered.at_least;
        let is_covered = |gap: bool| gap == is_doubtful;
        assert!(
            disclosure.dimensions.iter().all(|dimension| dimension.truncated && is_covered(dimension.gap))
        );
        assert!(!is_doubtful || uncut.joined_duplicates() > 0, "cut at {cut} of {text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Headings, bold text, bullets and capitals do not affect the recovery, unless a text contains such markup itself.
    #[test]
    fn a_cut_of_decorated_text_loses_only_the_text_after_it(
        findings in findings(), dress in formatting(), seed in 0_usize..1_000,
    ) {
        let mut findings = findings;
        for finding in &mut findings {
            let plain = |text: &str| text.replace(['*', '`', '"', '[', ']'], "x");
            finding.title = plain(&finding.title);
            for text in [&mut finding.source, &mut finding.sink, &mut finding.flow].into_iter().flatten() {
                *text = plain(text);
            }
        }
        let text = apply_formatting(&write_result(&findings), dress);
        let uncut = MergedResults::new(&Team::default(), vec![deliver(&read_only_result(text.as_bytes()))]);
        let step = if std::env::var_os("ENDMARK_TEST_CUTS").is_some() { 1 } else { 97 };
        for cut in (seed % step..=text.len()).step_by(step) {
            check_cut(&text, &findings, dress, cut, &uncut);
        }
    }

    #[test]
    fn a_written_result_round_trips(findings in findings()) {
        let text = write_result(&findings);
        let result = read_only_result(text.as_bytes());
        prop_assert_eq!(result.cut, Cut::Whole);
        let read: Vec<Finding> = result.findings.iter().map(|read| read.finding.clone()).collect();
        prop_assert_eq!(&read, &findings, "{}", text);
        prop_assert!(result.findings.iter().all(|read| read.state == FindingState::Complete));
    }
}

/// The separators between two model turns in transcripts.
const BETWEEN_TURNS: [&str; 5] = [
    "\nHuman: continue\nAssistant: ",
    "\n\nHuman: Continue where you left off.\n\nAssistant:\n",
    "\n\n### User\n\ncontinue\n\n### Assistant\n\n",
    "<|im_end|>\n<|im_start|>user\ncontinue<|im_end|>\n<|im_start|>assistant\n",
    "\n**Assistant:** ",
];

/// The parts of a result in two turns are not joined, and a finding that may be cut does not count as complete.
fn check_turn(text: &str, findings: &[Finding], cut: usize, between: &str) {
    let text = [&text[..cut], between, &text[cut..]].concat();
    let results = read(text.as_bytes()).results;
    for read in results.iter().flat_map(|result| &result.findings) {
        let original = findings.iter().find(|original| original.id == read.finding.id);
        if read.state == FindingState::Complete {
            assert_eq!(Some(&read.finding), original, "{text}");
        }
        // The id may have been cut. After a cut in the word `evidence`, code may look like fields.
        let Some(original) = original.filter(|_| read.state != FindingState::NeedsReaudit) else { continue };
        let is_begun = |found: &Option<String>, original: &Option<String>| {
            found
                .as_ref()
                .is_none_or(|found| original.as_ref().is_some_and(|original| original.starts_with(found)))
        };
        assert!(is_begun(&read.finding.source, &original.source), "{text}");
        assert!(is_begun(&read.finding.sink, &original.sink), "{text}");
    }
    let [result] = &results[..] else { return };
    if result.cut == Cut::Whole && result.lost_count() == 0 && result.findings.len() == findings.len() {
        assert_eq!(result.count(FindingState::Complete), findings.len(), "{text}");
    }
}

#[test]
fn a_result_split_between_two_turns_is_not_whole() {
    let step = if std::env::var_os("ENDMARK_TEST_CUTS").is_some() { 1 } else { 41 };
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let made = Cell::new(0);
    let outcome = TestRunner::new(config).run(&(findings(), 0_usize..1_000), |(findings, seed)| {
        let text = write_result(&findings);
        for cut in (seed % step..=text.len()).step_by(step).filter(|cut| text.is_char_boundary(*cut)) {
            // The rest of a title or value may look like the first line of a finding.
            let rest = text[cut..].trim_start_matches(['*', ' ', '`']);
            if rest.starts_with("[F") && !text[..cut].ends_with('\n') {
                continue;
            }
            check_turn(&text, &findings, cut, BETWEEN_TURNS[(cut + seed) % BETWEEN_TURNS.len()]);
            made.set(made.get() + 1);
        }
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    println!("{} ends of turns", made.get());
}

/// If `ENDMARK_TEST_CUTS` is set, cuts each result at every byte; its value is the minimum number of cuts. Otherwise
/// tests a sample.
#[test]
fn a_cut_loses_only_the_text_after_it() {
    let wanted = std::env::var("ENDMARK_TEST_CUTS").ok().map(|cuts| cuts.parse::<usize>().unwrap());
    let step = if wanted.is_some() { 1 } else { 97 };
    let made = Cell::new(0);
    let check = |text: &str, findings: &[Finding], cut: usize, uncut: &MergedResults| {
        check_cut(text, findings, PLAIN, cut, uncut);
        made.set(made.get() + 1);
    };
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&(findings(), 0_usize..1_000), |(findings, seed)| {
        let text = write_result(&findings);
        let uncut = MergedResults::new(&Team::default(), vec![deliver(&read_only_result(text.as_bytes()))]);
        for cut in (seed % step..=text.len()).step_by(step) {
            check(&text, &findings, cut, &uncut);
        }
        // Exactly at the end of each finding, and next to it.
        for (at, _) in text.match_indices("\n\n") {
            for cut in at..=at + 3 {
                check(&text, &findings, cut, &uncut);
            }
        }
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    println!("{} cuts", made.get());
    assert!(made.get() >= wanted.unwrap_or(1), "{} cuts", made.get());
}
