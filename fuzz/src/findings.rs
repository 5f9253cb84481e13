//! Findings of a team. Any transcript can be read, merged and reported, and any prefix of it can be read.

use endmark_findings::{
    Cut, DeliveredResult, Finding, FindingState, MergedResults, Position, Team, Transcript, WriteParameters,
    compress, missing_checkpoints, read,
};

use crate::input::Numbers;

/// Reads the bytes, a prefix of them, and a text that is written from their findings.
pub fn check(bytes: &[u8]) {
    let whole = read(bytes);
    check_positions(&whole, bytes.len());
    let cut = Numbers::of(bytes).below(bytes.len() + 1);
    let beginning = read(&bytes[..cut]);
    check_positions(&beginning, cut);

    let handed = |transcript: &Transcript| -> Vec<DeliveredResult> {
        transcript
            .results
            .iter()
            .map(|result| DeliveredResult { origin: "a.txt".to_owned(), result: result.clone() })
            .collect()
    };
    let report = MergedResults::new(&Team::default(), handed(&whole)).report();
    let disclosure = report.disclosure();
    let is_cut = whole.results.iter().any(|result| result.cut != Cut::Whole);
    assert!(!is_cut || disclosure.is_truncated(), "a cut is not disclosed");
    assert!(report.markdown().contains("## Disclosure"));
    assert_eq!(report.sarif("0")["runs"][0]["results"].as_array().unwrap().len(), report.findings().len());
    missing_checkpoints(&whole.checkpoints, None);

    for result in &whole.results {
        let findings: Vec<Finding> = result.findings.iter().map(|read| read.finding.clone()).collect();
        assert!(compress(&findings).len() <= findings.len());
        check_again(result.agent_id.as_deref(), &findings);
    }
}

/// Checks that all positions are inside the text.
fn check_positions(transcript: &Transcript, len: usize) {
    assert!(!transcript.results.is_empty());
    let is_inside = |position: &Position| position.byte <= len && position.line >= 1 && position.column >= 1;
    for result in &transcript.results {
        assert!(is_inside(&result.ends) && result.begins.iter().all(is_inside));
        assert!(result.cut != Cut::Severe || result.findings.is_empty());
        for read in &result.findings {
            assert!(is_inside(&read.position));
            assert!(read.state != FindingState::Complete || read.missing.is_empty());
        }
    }
    assert!(transcript.remarks.iter().all(|remark| is_inside(&remark.position)));
}

/// Checks that written findings are read back unchanged.
fn check_again(agent_id: Option<&str>, findings: &[Finding]) {
    let writing =
        WriteParameters { agent_id, dimensions: &[], declared_findings: None, other: &[], is_whole: true };
    let text = writing.text(findings);
    let again = read(text.as_bytes());
    let Some(result) = again.results.first().filter(|result| result.begins.is_some()) else {
        return;
    };
    assert_eq!(result.cut, Cut::Whole, "{text}");
    // A finding that contains only placeholders is now read as a template, so the numbers of findings may
    // differ.
    if result.findings.len() != findings.len() {
        return;
    }
    for (read, finding) in result.findings.iter().zip(findings) {
        assert_eq!(read.finding.evidence, finding.evidence, "{text}");
        assert_eq!((&read.finding.severity, &read.finding.cwe), (&finding.severity, &finding.cwe), "{text}");
    }
}
