//! Tests of findings that begin with severity and weakness: `[F001] Critical | CWE-89 | Title`. (AR-1)

use crate::{
    DeliveredResult, Finding, FindingState, MergedResults, ReadFinding, Severity, Team, WriteParameters,
    compress, read,
};

const RESULT: &str = "===AGENT_RESULT===
agent_id: agent-r1-02
round: 1
coverage: D2=✅,D3=⚠️
tool_calls: Grep=15,Glob=4
hotspots: auth/views.py:100-130 — weak token validation
gaps: D3

[F001] High | CWE-287 | Authentication bypass
  file: auth/views.py:105-112
  dim: D2
  confidence: high
  source: request.headers[\"Authorization\"] :100
  sink: jwt.decode(token, options={\"verify_signature\": False}) :110
  flow: :100 → :105(extract) → :110(decode)
  evidence: payload = jwt.decode(token)
  impact: Any user can forge tokens
  validation: pass | 1:pass(flow_complete) 2:pass(verify_disabled)

[F002] Medium | CWE-862 | Missing check
  file: admin/views.py:45-50
  dim: D3
  flow: :45 → :48
  evidence: User.objects.all()

===AGENT_RESULT_END===
";

fn write_result(findings: &[Finding], text: &str) -> String {
    let result = read(text.as_bytes()).results.remove(0);
    let writing = WriteParameters {
        agent_id: result.agent_id.as_deref(),
        dimensions: &result.dimensions,
        declared_findings: None,
        other: &result.other,
        is_whole: true,
    };
    writing.text(findings)
}

#[test]
fn a_result_round_trips_unchanged() {
    let transcript = read(RESULT.as_bytes());
    assert_eq!(transcript.remarks, []);
    let result = &transcript.results[0];
    assert_eq!(result.dimensions, ["D2", "D3"]);
    let findings: Vec<Finding> = result.findings.iter().map(|read| read.finding.clone()).collect();
    assert!(result.findings.iter().all(|read| read.state == FindingState::Complete), "{result:?}");
    assert_eq!(findings[0].severity, Some(Severity::High));
    assert_eq!(
        (findings[0].cwe_text().as_str(), findings[0].title.as_str()),
        ("CWE-287", "Authentication bypass")
    );
    assert_eq!(findings[1].source_and_sink(), (Some(":45"), Some(":48")));
    for text in [RESULT.to_owned(), RESULT.replace("coverage", "dimensions: D2, D3\ncoverage")] {
        assert_eq!(write_result(&findings, &text).replace('\n', ""), text.replace('\n', ""));
    }
}

#[test]
fn fit_keeps_unknown_fields_and_the_sink_line() {
    let text = RESULT.replace(
        "  evidence: payload = jwt.decode(token)\n",
        "  evidence:\n    header = request.headers[\"Authorization\"]\n    payload = jwt.decode(token)\n",
    );
    let findings: Vec<Finding> =
        read(text.as_bytes()).results[0].findings.iter().map(|read| read.finding.clone()).collect();
    let text = write_result(&compress(&findings), RESULT);
    for kept in
        ["[F001] High | CWE-287 | ", "dim: D2", "confidence: high", "validation: pass | 1:pass", "round: 1"]
    {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(text.contains("  evidence: payload = jwt.decode(token)\n"), "{text}");
}

#[test]
fn a_complete_finding_of_another_agent_keeps_the_cut_mark() {
    let delivered = |text: &str, at: usize| DeliveredResult {
        origin: format!("a-{at}.txt"),
        result: read(text.as_bytes()).results.remove(0),
    };
    let mut marked = delivered(&RESULT.replace("agent-r1-02", "agent-r1-03"), 1);
    marked.result.findings[0].finding.originally_truncated = true;
    let merged = MergedResults::new(&Team::default(), vec![delivered(RESULT, 2), marked]);
    let marks = merged.findings().iter().filter(|merged| merged.finding.originally_truncated).count();
    assert_eq!(marks, 1, "{:?}", merged.findings());
}

/// D2 was examined before the cut, and only D3 was examined again.
#[test]
fn only_rerun_dimensions_are_reported_as_recovered() {
    let cut = RESULT.split("[F002]").next().unwrap().replace("coverage", "dimensions: D2, D3\ncoverage")
        + "[CHECKPOINT] turn:20 findings:1 files_read:9 remaining_dims:D3\n";
    let again = RESULT
        .replace("coverage", "dimensions: D3\ncoverage")
        .replace("D3=⚠️", "D3=✅")
        .replace("gaps: D3\n", "");
    let delivered = |text: &str, origin: &str| DeliveredResult {
        origin: origin.to_owned(),
        result: read(text.as_bytes()).results.remove(0),
    };
    let both = vec![delivered(&cut, "agent-r1-02.txt"), delivered(&again, "agent-r1-02.2.txt")];
    let report = MergedResults::new(&Team::default(), both).report().markdown();
    assert!(report.contains("| D3 | agent-r1-02 | ⚠️ truncated, then recovered |"), "{report}");
    assert!(
        report.contains("| D2 | agent-r1-02 | ⚠️ in a result that was truncated, not run again |"),
        "{report}"
    );
}

#[test]
fn the_parts_of_a_first_line_are_recognised_by_content() {
    for (head, severity, cwe, title) in [
        ("High | Missing rate limit", Some(Severity::High), "", "Missing rate limit"),
        ("CWE-307 | high | Missing rate limit", Some(Severity::High), "CWE-307", "Missing rate limit"),
        ("严重 | CWE-89 | 注入", None, "CWE-89", "严重 | 注入"),
        ("严重 | 注入", None, "", "严重 | 注入"),
        ("Low | High entropy | in a log", Some(Severity::Low), "", "High entropy | in a log"),
    ] {
        let text = RESULT.replace("High | CWE-287 | Authentication bypass", head);
        let result = &read(text.as_bytes()).results[0];
        let ReadFinding { finding, state, .. } = &result.findings[0];
        assert_eq!((&finding.severity, finding.cwe_text().as_str()), (&severity, cwe), "{head}");
        assert_eq!((finding.title.as_str(), *state), (title, FindingState::Complete), "{head}");
        let again = read(write_result(std::slice::from_ref(finding), &text).as_bytes()).results.remove(0);
        assert_eq!(&again.findings[0].finding, finding, "{head}");
    }
}

#[test]
fn a_gap_declared_by_the_agent_is_disclosed_and_planned() {
    for (coverage, gaps, expected) in [
        ("D2=✅,D3=⚠️", "(none)", "D3"),
        ("D2=done, D3 ✗", "none", "D3"),
        ("D2: done (1 file skipped), D3: not reached", "none", "D3"),
        ("D2=100%,D3=40%", "none", "D3"),
        ("D2, D3 (partial)", "none", "D3"),
        ("D2,D3", "the D3 checks were not reached, ran out of turns", "D3"),
        ("D2,D3", "D9: files of the admin were not read", "D9"),
        ("D2,D3", "ran out of turns", "D2,D3"),
        ("D2=done,D3", "ran out of turns", "D3"),
        ("D2=done,D3=done", "ran out of turns", "D2,D3"),
        ("D2=✅,D3=✓", "none", ""),
        ("D2: no", "D12 skipped", "D2,D12"),
    ] {
        let text = RESULT.replace("D2=✅,D3=⚠️", coverage).replace("gaps: D3", &format!("gaps: {gaps}"));
        let result = read(text.as_bytes()).results.remove(0);
        assert_eq!(result.declared_gaps().join(","), expected, "{coverage}; {gaps}");
        let merged = MergedResults::new(
            &Team::default(),
            vec![DeliveredResult { origin: "a.txt".to_owned(), result }],
        );
        let planned = merged.plan().runs.first().map(|run| run.dimensions.join(","));
        assert_eq!(planned.unwrap_or_default(), expected, "{coverage}; {gaps}");
        let report = merged.report();
        // In a complete result, only the dimensions that it left open are marked.
        let open =
            report.disclosure().dimensions.iter().filter(|dimension| dimension.gap || dimension.truncated);
        let open: Vec<&str> = open.map(|dimension| dimension.dimension.as_str()).collect();
        assert_eq!(open.join(","), expected, "{coverage}; {gaps}");
    }
}

#[test]
fn unknown_block_fields_are_written_back_unchanged() {
    let block = "  evidence:\n    a = q\n    run(a)\n  validation:\n    line one\n      sink: deeper\n    \n    line two\n\
                 \x20 impact:\n    - all rows\n    ```\n    file: x\n    ```\n";
    let one_line = "  evidence: run(a)\n  validation:\n    line one\n  effort: low\n    or less\n";
    for block in [block, one_line] {
        let (head, rest) = RESULT.split_once("  evidence: payload = jwt.decode(token)\n").unwrap();
        let (_, rest) = rest.split_once("2:pass(verify_disabled)\n").unwrap();
        let head = head.replace("round: 1\n", "round: 1\nscope:\n  src\n  lib\n");
        let text = format!("{head}{block}{rest}");
        let transcript = read(text.as_bytes());
        assert_eq!(transcript.remarks, [], "{text}");
        let findings: Vec<Finding> =
            transcript.results[0].findings.iter().map(|read| read.finding.clone()).collect();
        assert_eq!(write_result(&findings, &text).replace("\n\n", "\n"), text.replace("\n\n", "\n"));
        // Unindented fields are parsed the same.
        let flush = read(text.replace("\n  ", "\n").replace("\nsrc\nlib", "\n  src\n  lib").as_bytes());
        assert_eq!(flush.results[0].findings[0].finding, findings[0]);
    }
}

/// If two findings share place and weakness, the text keeps the second title, in both line formats.
#[test]
fn the_title_of_a_joined_finding_round_trips() {
    let flat = "===AGENT_RESULT===\nagent_id: x\ndimensions: a\n\n[F001] One\nseverity: High\ncwe: CWE-89\n\
                location: a.c:1\nsource: s\nsink: k\nconfidence: low\nevidence:\n  one();\n===AGENT_RESULT_END===\n";
    for (text, title) in [(flat, "One"), (RESULT, "Authentication bypass")] {
        let delivered = |text: &str, at: usize| DeliveredResult {
            origin: format!("a-{at}.txt"),
            result: read(text.replace("agent_id: ", &format!("agent_id: {at}-")).as_bytes())
                .results
                .remove(0),
        };
        let other = text.replace(title, "Another").replace("confidence: low", "confidence: high");
        let merged = MergedResults::new(&Team::default(), vec![delivered(text, 1), delivered(&other, 2)]);
        let written = merged.text();
        assert!(!written.contains('{') || title != "One", "{written}");
        let again = MergedResults::new(&Team::default(), vec![delivered(&written, 0)]);
        let report = again.report();
        let [first, second] =
            [&merged, &again].map(|merged| merged.report().findings()[0].also_titled.clone());
        assert_eq!((first.len(), &first), (1, &second), "{written}");
        if title == "One" {
            let confidence = &report.findings()[0].finding.other["confidence"];
            assert!(confidence.split("; ").count() == 2, "{confidence}");
        }
    }
}
