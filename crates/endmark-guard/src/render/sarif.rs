//! Renders SARIF 2.1.0 for code scanning and its viewers.

use serde_json::{Value, json};

use super::AssessedArtifact;
use crate::finding::{Check, Finding};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns a SARIF log with one run, and one result per finding. Each check is a rule.
pub fn sarif(artifacts: &[AssessedArtifact<'_>], version: &str) -> Value {
    let rules: Vec<Value> = Check::ALL
        .iter()
        .map(|check| json!({"id": check.name(), "shortDescription": {"text": check.description()}, "defaultConfiguration": {"level": "error"}}))
        .collect();
    let results: Vec<Value> = artifacts
        .iter()
        .flat_map(|one| one.report.findings().iter().map(|finding| result(one.path, finding)))
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "Endmark guard", "version": version, "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(path: &str, finding: &Finding) -> Value {
    let rule = Check::ALL.iter().position(|check| *check == finding.check);
    let mut region = json!({"startLine": finding.line, "startColumn": finding.column});
    if !finding.text.is_empty() {
        region["snippet"] = json!({"text": finding.text});
    }
    json!({
        "ruleId": finding.check.name(),
        "ruleIndex": rule,
        "level": "error",
        // Escape brackets, because they would begin a link.
        "message": {"text": format!("{}. {}", finding.why, finding.fix).replace('[', "\\[").replace(']', "\\]")},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": escape_uri(path)}, "region": region}}],
    })
}

/// Escapes a path as a relative URI reference.
fn escape_uri(path: &str) -> String {
    let path = path.replace('\\', "/");
    path.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}
