//! Writes the report as SARIF 2.1.0, for code scanning tools. (AR-6)

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};

use super::markdown::format_count;
use super::{FinalReport, ReportedFinding, ReportedPlace};
use crate::finding::Cwe;
use crate::location::{is_url, names_file};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The rule id of findings without a CWE number.
const NO_CWE: &str = "no-cwe";

pub(super) fn render_sarif(report: &FinalReport, version: &str) -> Value {
    let ids: Vec<String> = report.findings().iter().map(rule_id).collect();
    let rules: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let indices: BTreeMap<&str, usize> = rules.iter().copied().zip(0..).collect();
    let results = report.findings().iter().zip(&ids);
    let results: Vec<Value> =
        results.map(|(reported, id)| result(reported, id, indices.get(id.as_str()))).collect();
    let described: Vec<Value> = rules.into_iter().map(rule).collect();
    let disclosure = report.disclosure();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "Endmark", "version": version, "rules": described } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                // A cut that was not recovered is not a success.
                "executionSuccessful": !disclosure.has_gaps(),
                "toolExecutionNotifications": notifications(report),
            }],
            "results": results,
            "properties": { "disclosure": disclosure },
        }],
    })
}

fn rule_id(reported: &ReportedFinding) -> String {
    let first = reported.finding.cwe.as_deref().map(Cwe::read).unwrap_or_default().first().copied();
    first.map_or_else(|| NO_CWE.to_owned(), |cwe| cwe.to_string())
}

fn rule(id: &str) -> Value {
    match id.strip_prefix("CWE-") {
        Some(number) => json!({
            "id": id,
            "shortDescription": { "text": id },
            "helpUri": format!("https://cwe.mitre.org/data/definitions/{number}.html"),
            "properties": { "tags": ["security", format!("external/cwe/cwe-{number}")] },
        }),
        None => json!({ "id": id, "shortDescription": { "text": "A finding that names no weakness" } }),
    }
}

fn result(reported: &ReportedFinding, rule: &str, index: Option<&usize>) -> Value {
    let finding = &reported.finding;
    let mut message = if finding.title.is_empty() { finding.id.clone() } else { finding.title.clone() };
    for (name, value) in [("Source", &finding.source), ("Sink", &finding.sink)] {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = write!(message, "\n{name}: {value}");
        }
    }
    if finding.originally_truncated {
        message.push_str("\nThis finding was cut when it was first delivered.");
    }
    let mut result = json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": level(finding.severity.as_deref()),
        "message": { "text": escape_text(&message) },
        "locations": locations(reported),
        "properties": properties(reported),
    });
    if let Some(flow) = &finding.flow {
        result["codeFlows"] = code_flows(flow);
    }
    result
}

/// Returns all fields of the finding, including unknown ones.
fn properties(reported: &ReportedFinding) -> Value {
    let mut properties = json!(reported.finding);
    for (name, value) in [
        ("missing", json!(reported.missing)),
        ("reported_by", json!(reported.reported_by)),
        ("also_titled", json!(reported.also_titled)),
    ] {
        properties[name] = value;
    }
    properties
}

fn level(severity: Option<&str>) -> &'static str {
    match severity {
        Some("Critical" | "High") => "error",
        Some("Low" | "Info") => "note",
        _ => "warning",
    }
}

/// Escapes an agent's text for a SARIF message, so that it contains neither links nor argument placeholders.
fn escape_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 16);
    let mut backslashes = 0;
    for ch in text.chars() {
        match ch {
            '[' | ']' => {
                // Double the backslashes before a bracket. Otherwise they would escape each other and not the bracket.
                plain.extend(std::iter::repeat_n('\\', backslashes + 1));
                plain.push(ch);
            }
            '{' | '}' => plain.extend([ch, ch]),
            _ => plain.push(ch),
        }
        backslashes = if ch == '\\' { backslashes + 1 } else { 0 };
    }
    plain
}

/// Returns the files of a finding. Other parts of its location (a route, a function, free text) become logical locations.
fn locations(reported: &ReportedFinding) -> Vec<Value> {
    let finding = &reported.finding;
    match &finding.location {
        Some(words) if reported.places.is_empty() => vec![logical(words)],
        _ => reported.places.iter().map(|place| location(place, finding.evidence.as_deref())).collect(),
    }
}

fn logical(words: &str) -> Value {
    json!({ "logicalLocations": [{ "fullyQualifiedName": words }] })
}

fn location(place: &ReportedPlace, evidence: Option<&str>) -> Value {
    if !names_file(&place.file, place.start_line.is_some()) {
        return logical(&place.file);
    }
    let mut location = json!({ "physicalLocation": { "artifactLocation": { "uri": uri(&place.file) } } });
    if let (Some(start), Some(end)) = (place.start_line, place.end_line) {
        let region = &mut location["physicalLocation"]["region"];
        *region = json!({ "startLine": start, "endLine": end });
        if let Some(evidence) = evidence {
            region["snippet"] = json!({ "text": evidence });
        }
    }
    location
}

/// Formats a path as a relative reference or a URL. Characters with a special meaning in a URL are escaped.
fn uri(file: &str) -> String {
    let is_url = is_url(file);
    // A drive letter must not be mistaken for a URL scheme.
    let is_drive = !is_url && file.as_bytes().get(1) == Some(&b':');
    let mut uri = String::from(if is_drive { "file:///" } else { "" });
    for (at, byte) in file.bytes().enumerate() {
        let is_escape = || {
            let digits = file.as_bytes().get(at + 1..at + 3);
            byte == b'%' && digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte);
        let is_url_syntax = is_url && (b":?#".contains(&byte) || is_escape()) || is_drive && at == 1;
        if is_plain || is_url_syntax {
            uri.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// Returns the flows that merging joined with `; `, each with its steps. If a part has no `->`, the `;` belongs to code
/// and the text is one flow.
fn code_flows(flow: &str) -> Value {
    let flow = flow.replace('→', "->");
    let flows: Vec<&str> = flow.split("; ").collect();
    let flows = if flows.iter().all(|flow| flow.contains("->")) { flows } else { vec![flow.as_str()] };
    let threads = flows.into_iter().map(steps).filter(|steps| !steps.is_empty());
    threads.map(|steps| json!({ "threadFlows": [{ "locations": steps }] })).collect()
}

fn steps(flow: &str) -> Vec<Value> {
    let steps = flow.split("->").map(str::trim).filter(|step| !step.is_empty());
    steps.map(|step| json!({ "location": { "message": { "text": escape_text(step) } } })).collect()
}

/// Returns one notification per cut agent, and one for the whole report.
fn notifications(report: &FinalReport) -> Vec<Value> {
    let disclosure = report.disclosure();
    let mut notifications: Vec<Value> = disclosure.truncated_agents
        .iter()
        .map(|agent| {
            let name = agent.agent_id.clone().unwrap_or_else(|| format!("not named ({})", agent.origins.join(", ")));
            let gaps = if agent.gaps.is_empty() { "no known gap".to_owned() } else { agent.gaps.join(", ") };
            let text = format!(
                "The result of agent {name} {}; recovery: {}; may be missing: {gaps}; findings not recovered: {}",
                agent.describe(),
                agent.recovery.label(),
                format_count(&agent.unrecovered)
            );
            notification("agent_truncated", &text)
        })
        .collect();
    if disclosure.has_gaps() {
        let text = format!(
            "Findings may be missing: {} not recovered, {} to be audited again",
            format_count(&disclosure.unrecovered),
            disclosure.needs_reaudit
        );
        notifications.push(notification("coverage_gaps", &text));
    }
    notifications
}

fn notification(id: &str, text: &str) -> Value {
    json!({ "descriptor": { "id": id }, "level": "warning", "message": { "text": escape_text(text) } })
}

#[cfg(test)]
mod tests {
    use super::escape_text;

    #[test]
    fn agent_text_is_never_a_link_or_an_argument() {
        for (text, written) in [
            ("SQL in `find_user`", "SQL in `find_user`"),
            ("[here](https://example.org)", r"\[here\](https://example.org)"),
            (r"\[here](1)", r"\\\[here\](1)"),
            (r"C:\src", r"C:\src"),
            ("where name = '{name}' {0}", "where name = '{{name}}' {{0}}"),
        ] {
            assert_eq!(escape_text(text), written);
        }
    }
}
