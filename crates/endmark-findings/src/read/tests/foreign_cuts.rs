//! Cuts the foreign files at every byte. Nothing is invented or altered, and complete findings are kept. With a
//! supplement, the merged findings equal the uncut ones. (AR-1, AR-4, AR-5, AR-6)

use std::path::Path;

use crate::{
    AgentResult, Cut, DeliveredResult, Finding, FindingState, MergedFinding, MergedResults, ReadFinding,
    Team, read,
};

/// Returns all files with exactly one result, which is complete.
fn files() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/read/tests/foreign");
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect();
    files.retain(|(_, text)| {
        let results = read(text).results;
        results.len() == 1 && results[0].cut == Cut::Whole && results[0].agent_id.is_some()
    });
    files.sort();
    files
}

fn deliver(result: &AgentResult) -> DeliveredResult {
    DeliveredResult { origin: "a.txt".to_owned(), result: result.clone() }
}

/// Returns the findings of a merge without their other titles, because a cut title is a different title.
fn merge(results: &[&AgentResult]) -> (Vec<Finding>, MergedResults) {
    let merged = MergedResults::new(&Team::default(), results.iter().map(|result| deliver(result)).collect());
    let findings: Vec<&MergedFinding> = merged.findings().iter().collect();
    (findings.iter().map(|merged| merged.finding.clone()).collect(), merged)
}

/// Whether each field of a cut finding is unchanged or missing. Evidence and title may be a prefix.
fn is_beginning(found: &ReadFinding, whole: &ReadFinding) -> bool {
    let (found, whole) = (&found.finding, &whole.finding);
    let evidence = |finding: &Finding| {
        finding.evidence.as_ref().map(|text| text.as_str().to_owned()).unwrap_or_default()
    };
    found.id == whole.id
        && whole.title.starts_with(found.title.trim_end_matches(['*', '_', '`', ' ']))
        && (found.severity.is_none() || found.severity == whole.severity)
        && found.cwe.iter().all(|cwe| whole.cwe.contains(cwe))
        && (found.source.is_none() || found.source == whole.source)
        && (found.sink.is_none() || found.sink == whole.sink)
        && (found.flow.is_none() || found.flow == whole.flow)
        // `see above` is not evidence, but a prefix of it could be.
        && (whole.evidence.is_none() || evidence(whole).starts_with(&evidence(found)))
}

fn check(name: &str, text: &[u8], cut: usize, whole: &AgentResult, uncut: &[Finding]) {
    let shown = || format!("{name}, cut at {cut}: {}", String::from_utf8_lossy(&text[..cut]));
    let results = read(&text[..cut]).results;
    assert_eq!(results.len(), 1, "{}", shown());
    let result = &results[0];
    if result.cut == Cut::Whole {
        assert_eq!(result.findings, whole.findings, "{}", shown());
        return;
    }
    assert!(cut < whole.ends.byte, "{}", shown());
    for (at, found) in result.findings.iter().enumerate() {
        let original = whole.findings.iter().find(|original| original.finding.id == found.finding.id);
        let original = original.unwrap_or_else(|| panic!("{:?} is invented: {}", found.finding, shown()));
        assert!(is_beginning(found, original), "{:?} is altered: {}", found.finding, shown());
        // Another finding follows, so it equals the uncut one. Only a table row may be completed later.
        let is_row = found.state == FindingState::NeedsReaudit && original.state != found.state;
        if at + 1 < result.findings.len() && !is_row {
            assert_eq!(found.finding, original.finding, "{}", shown());
            assert_eq!(found.state, original.state, "{}", shown());
        }
        if found.state == FindingState::Complete && found.finding.evidence == original.finding.evidence {
            // An unknown field may continue after the blank line that follows the evidence.
            let found = Finding { other: original.finding.other.clone(), ..found.finding.clone() };
            assert_eq!(found, original.finding, "{}", shown());
        }
    }
    // The findings that ended before the cut are kept. The first line of the next finding or the end marker ends one.
    if result.cut == Cut::Mild {
        // All findings in one JSON value have the position of its beginning.
        let first = whole.findings.first().map(|first| first.position);
        let others = whole.findings.iter().filter(|next| Some(next.position) != first);
        let started = others.filter(|next| has_begun(text, next.position.byte, cut)).count();
        assert!(result.findings.len() >= started, "{} of {started}: {}", result.findings.len(), shown());
    }
    let (findings, merged) = merge(&[result, whole]);
    if result.cut == Cut::Mild {
        assert_eq!(findings, uncut, "{}", shown());
    }
    assert!(merged.report().disclosure().is_truncated() || merged.unattributed().count() > 0, "{}", shown());
}

/// Whether the line that begins here ends before the cut.
fn has_begun(text: &[u8], begins: usize, cut: usize) -> bool {
    let line = text[begins..].iter().position(|byte| *byte == b'\n').unwrap_or(text.len() - begins);
    begins + line < cut
}

/// With `ENDMARK_TEST_CUTS`, cuts at every byte; otherwise at a sample of them.
#[test]
fn foreign_files_survive_cuts_at_every_byte() {
    let step = if std::env::var_os("ENDMARK_TEST_CUTS").is_some() { 1 } else { 11 };
    let (files, mut cuts) = (files(), 0);
    assert!(files.len() >= 40, "{}", files.len());
    for (number, (name, text)) in files.iter().enumerate() {
        let whole = read(text).results.remove(0);
        let (uncut, _) = merge(&[&whole]);
        for cut in (number % step..=text.len()).step_by(step) {
            check(name, text, cut, &whole, &uncut);
            cuts += 1;
        }
    }
    println!("{cuts} cuts of {} files", files.len());
}
