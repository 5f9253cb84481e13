//! Tests with differently spelled headings: no finding is lost, and none is invented. (AR-1)

use crate::{AgentResult, Cut, Evidence, Finding, FindingState, RemarkKind, read};

/// Headings of different models, with `N` for the number and `W` for a word.
const HEADINGS: [&str; 56] = [
    "[F00N] Title W",
    "**[FN] Title W**",
    "**[FN]** Title W",
    "### [F00N] Title W",
    "### FN: Title W",
    "### FN - Title W",
    "### FN — Title W",
    "**FN: Title W**",
    "FN: Title W",
    "- [F00N] Title W",
    "N. [FN] Title W",
    "N. **Title W**",
    "### N. Title W",
    "### Finding N: Title W",
    "**Finding N: Title W**",
    "Finding N: Title W",
    "### Title W",
    "## Befund N: Titel W",
    "### 发现 N：标题 W",
    "【F00N】标题 W",
    "### Vulnérabilité N : titre W",
    "#### **FN** — Title W",
    "[SQLI-N] Title W",
    "FN) Title W",
    "FN. Title W",
    "FN - Title W",
    "FN — Title W",
    "(FN) Title W",
    "[Finding N] Title W",
    "__[FN] Title W__",
    "[ FN ] Title W",
    "[f00N] title W",
    "--- FN ---",
    "id: F00N",
    "- **ID:** FN",
    "- **FN: Title W**",
    "## Issue #N - Title W",
    "N. Title W",
    "N) Title W",
    "**Title W**",
    "Vulnerability N: Title W",
    "`FN` Title W",
    "### [Critical] FN: Title W",
    "Title: Title W",
    "*FN: Title W*",
    "#N Title W",
    "F-00N: Title W",
    "**F-00N** Title W",
    "FINDING FN: Title W",
    "# FINDING N",
    "F00N Title W",
    "<b>[FN]</b> Title W",
    "### 🔴 FN: Title W",
    "[FN]: Title W",
    "N. FN: Title W",
    "Title W",
];

const FIELDS: [&str; 3] = [
    "severity: High\ncwe: CWE-89\nlocation: src/W.rs:N\nsource: param W\nsink: query W\n",
    "- **Severity:** High\n- **CWE:** CWE-89\n- **Location:** `src/W.rs:N`\n- **Source:** param W\n- **Sink:** query W\n",
    "**Severity**: High\n\n**CWE**: CWE-89\n\n**Location**: src/W.rs:N\n\n**Source**: param W\n\n**Sink**: query W\n",
];

const EVIDENCE: [&str; 5] = [
    "evidence:\n  code_W();\n",
    "Evidence:\ncode_W();\n",
    "**Evidence:**\n```rust\ncode_W();\n```\n",
    "evidence: `code_W()`\n",
    "- **Evidence:**\n\n  ```rust\n  code_W();\n  ```\n",
];

const WORDS: [&str; 3] = ["alpha", "beta", "gamma"];

fn result(headings: [&str; 3], fields: &str, evidence: &str, between: &str) -> String {
    let mut text = "===AGENT_RESULT===\nagent_id: a-1\ndimensions: x\n\n".to_owned();
    for ((heading, word), number) in headings.into_iter().zip(WORDS).zip(1..) {
        let finding = format!("{heading}\n{fields}{evidence}{between}");
        text.push_str(&finding.replace('N', &number.to_string()).replace('W', word));
    }
    // The end marker contains the letter `N` too, so add it after the replacements.
    text + "===AGENT_RESULT_END===\n"
}

/// Protects the words of a template that contain `N` or `W` themselves.
fn protect_words(text: &str) -> String {
    text.replace("FINDING", "FI\u{0}DI\u{0}G").replace("CWE", "C\u{1}E")
}

fn read_only_result(text: &str) -> AgentResult {
    let text = text.replace('\u{0}', "N").replace('\u{1}', "W");
    let mut results = read(text.as_bytes()).results;
    assert_eq!(results.len(), 1, "{text}");
    results.remove(0)
}

/// Returns the problem with the three findings, if any: one contains words of another, or one is neither parsed nor
/// counted.
fn fault(result: &AgentResult) -> Option<String> {
    let complete = result.findings.iter().filter(|read| read.state == FindingState::Complete);
    for read in complete.clone() {
        let finding = &read.finding;
        // Text directly after code without a fence may belong to the code.
        let first =
            finding.evidence.as_ref().and_then(|evidence| evidence.lines().next()).and_then(Evidence::new);
        let all = format!("{:?}", Finding { evidence: first, ..finding.clone() });
        if WORDS.iter().filter(|word| all.contains(*word)).count() != 1 {
            return Some(all);
        }
    }
    let is_accounted_for = complete.count() == 3 || result.lost_count() > 0;
    (!is_accounted_for).then(|| format!("{} findings, {} unread", result.findings.len(), result.unread))
}

/// With `ENDMARK_TEST_CUTS`, tests all pairs of headings in all forms of fields and evidence; otherwise a sample.
#[test]
fn different_headings_hide_no_finding() {
    let step = if std::env::var_os("ENDMARK_TEST_CUTS").is_some() { 1 } else { 149 };
    let (mut at, mut tried, mut faults) = (0, 0, Vec::new());
    for first in HEADINGS {
        for second in HEADINGS {
            for fields in FIELDS {
                for evidence in EVIDENCE {
                    for between in ["", "\n", "\n\n---\n\n"] {
                        at += 1;
                        if at % step != 0 {
                            continue;
                        }
                        tried += 1;
                        let [one, two] = [first, second].map(protect_words);
                        let text = result([&one, &two, &one], &protect_words(fields), evidence, between);
                        let read = read_only_result(&text);
                        assert_eq!(read.cut, Cut::Whole, "{text}");
                        if let Some(fault) = fault(&read) {
                            faults.push((first, second, fields, evidence, between, fault));
                        }
                    }
                }
            }
        }
    }
    println!("{tried} results, {} faults", faults.len());
    assert!(faults.is_empty(), "{} of {tried}: {:#?}", faults.len(), &faults[..faults.len().min(5)]);
}

/// A response of `endmark findings` has information about cuts in other members than a result.
#[test]
fn own_responses_are_distinguished_from_results() {
    let finding = r#"{"id": "F001", "title": "t", "severity": "High", "location": "a.c:1", "source": "s", "sink": "k", "evidence": "e"}"#;
    let reported = format!(r#"{{"finding": {finding}, "places": [], "reported_by": ["a"]}}"#);
    for answer in [
        r#"{"findings": [], "disclosure": {"unrecovered": {"count": 3}}}"#.to_owned(),
        format!(r#"[{{"findings": [{reported}]}}]"#),
        format!(r#"{{"report": {{"findings": [{reported}, {{"finding": {{"id": "F0"#),
        format!(r#"{{"receipt": {{"limit_tokens": 3799}}, "findings": [{finding}]}}"#),
        format!(
            r#"{{"agent_id": "a", "cut": "mild", "lost": 3, "findings": [{{"finding": {finding}, "missing": []}}]}}"#
        ),
        format!("===AGENT_RESULT===\nagent_id: a\n{{\"findings\": [{reported}]}}\n===AGENT_RESULT_END===\n"),
    ] {
        let read = read(answer.as_bytes());
        assert!(read.results.iter().all(|result| result.lost_count() > 0), "{answer}: {read:?}");
        assert_eq!(read.remarks[0].kind, RemarkKind::OwnResponse, "{answer}: {read:?}");
    }
    let result = format!(
        r#"{{"agent_id": "a", "disclosure": "none", "receipt": 7, "cut": false, "findings": [{finding}]}}"#
    );
    let read = read(result.as_bytes());
    assert_eq!(
        (read.results[0].cut, read.results[0].lost_count(), read.results[0].findings.len()),
        (Cut::Whole, 0, 1)
    );
}
