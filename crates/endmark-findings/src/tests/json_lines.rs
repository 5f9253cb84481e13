//! Tests of the JSON Lines format: requested, parsed, and cut at every byte. (AR-1)

use crate::{AgentResult, Cut, FindingState, Protocol, ProtocolFormat, read};

/// A finding with its fields in the order of the format.
fn finding(number: u32) -> String {
    format!(
        r#"{{"id": "F{number:03}", "title": "Hole {number} \"with\" {{signs}}", "severity": "High", "cwe": "CWE-89", "location": "src/a.rs:{number}-9", "source": "name", "sink": "query", "flow": "a -> b", "evidence": "q(name);\n===AGENT_RESULT_END===\n[F009] severity: Low"}}"#
    )
}

fn write_result() -> String {
    let header = r#"{"agent_id": "auth-2", "dimensions": ["keys", "tokens, all"], "declared_findings": 3}"#;
    let findings = [1, 2, 3].map(finding).join("\n");
    format!(
        "[CHECKPOINT] turn:10 findings:1 files_read:4 remaining_dims:keys\n===AGENT_RESULT===\n{header}\n{findings}\n===AGENT_RESULT_END===\n"
    )
}

fn read_only_result(text: &[u8]) -> AgentResult {
    let mut results = read(text).results;
    assert_eq!(results.len(), 1, "{}", String::from_utf8_lossy(text));
    results.remove(0)
}

#[test]
fn a_result_in_json_lines_is_read() {
    let text = write_result();
    let result = read_only_result(text.as_bytes());
    assert_eq!((result.cut, result.agent_id.as_deref()), (Cut::Whole, Some("auth-2")));
    assert_eq!((result.declared_findings, result.lost_count()), (Some(3), 0));
    assert_eq!(result.dimensions[0], "keys");
    assert_eq!(result.count(FindingState::Complete), 3);
    let evidence = result.findings[0].finding.evidence.as_ref().unwrap();
    assert_eq!(evidence.as_str(), "q(name);\n===AGENT_RESULT_END===\n[F009] severity: Low");
    assert_eq!(result.checkpoint.unwrap().findings, Some(1));
    assert!(read(text.as_bytes()).remarks.is_empty(), "{:?}", read(text.as_bytes()).remarks);
}

/// A whole line is a complete finding. A cut line is not, but is counted.
#[test]
fn a_cut_keeps_the_lines_before_it() {
    let text = write_result();
    let whole = read_only_result(text.as_bytes());
    let ends: Vec<usize> =
        [1, 2, 3].map(|number| text.find(&finding(number)).unwrap() + finding(number).len()).to_vec();
    let agent_ends = text.find("\"auth-2\"").unwrap() + "\"auth-2\"".len();
    let header_ends = text.find("\n{\"id\"").unwrap();
    for cut in 0..text.len() - 1 {
        let result = read_only_result(&text.as_bytes()[..cut]);
        let shown = &text[..cut];
        assert_ne!(result.cut, Cut::Whole, "{shown}");
        assert_eq!(result.cut == Cut::Mild, cut >= agent_ends, "{shown}");
        if result.cut == Cut::Severe {
            continue;
        }
        let there = ends.iter().filter(|end| **end <= cut).count();
        let complete: Vec<_> =
            result.findings.iter().filter(|read| read.state == FindingState::Complete).collect();
        assert_eq!(complete.len(), there, "{shown}");
        for (found, original) in complete.iter().zip(&whole.findings) {
            assert_eq!(found.finding, original.finding, "{shown}");
        }
        assert!(result.findings.len() <= there + 1, "{shown}");
        // The fields of a cut finding equal those of the whole one.
        if let Some((found, original)) = result.findings.get(there).zip(whole.findings.get(there)) {
            assert!(found.finding.sink.is_none() || found.finding.sink == original.finding.sink, "{shown}");
            assert!(
                found.finding.source.is_none() || found.finding.source == original.finding.source,
                "{shown}"
            );
        }
        if cut >= header_ends {
            assert_eq!(result.lost_count(), 3 - result.kept_findings().count(), "{shown}");
        }
    }
}

/// The requested format in a transcript is not a result until it is filled in.
#[test]
fn the_instructions_are_parsed_as_a_template() {
    for (agent_id, dimensions) in [(None, &[][..]), (Some("auth-2"), &["keys".to_owned()])] {
        let protocol =
            Protocol { form: ProtocolFormat::Jsonl, agent_id, dimensions, ..Protocol::default() }.text();
        let alone = read(protocol.as_bytes());
        assert!(alone.results.iter().all(|result| result.begins.is_none()), "{:?}", alone.results);
        let both = read_only_result(format!("{protocol}\n{}", write_result()).as_bytes());
        assert_eq!((both.cut, both.findings.len()), (Cut::Whole, 3));
        // Each line of the format is JSON.
        for line in protocol.lines().filter(|line| line.starts_with('{')) {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }
}

/// A line that cannot be parsed is counted, not silently dropped.
#[test]
fn an_unreadable_line_is_counted() {
    let broken = finding(2).replacen("\"title\":", "\"title\"", 1);
    let text = write_result().replace(&finding(2), &broken);
    let result = read_only_result(text.as_bytes());
    assert_eq!((result.count(FindingState::Complete), result.lost_count() >= 1), (2, true), "{result:?}");
    let undeclared = text.replace("\"declared_findings\": 3", "\"x\": 3");
    assert_ne!(undeclared, text);
    assert!(read_only_result(undeclared.as_bytes()).lost_count() >= 1, "{undeclared}");
}
