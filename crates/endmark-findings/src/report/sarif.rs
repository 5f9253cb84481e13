//! The report as SARIF 2.1.0, for code scanning and its viewers. (AR-6)

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::markdown::number;
use super::{FinalReport, ReportedFinding, ReportedPlace};
use crate::finding::Cwe;
use crate::location::names_file;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The rule of findings that name no weakness.
const NO_CWE: &str = "no-cwe";

pub(super) fn sarif(report: &FinalReport, version: &str) -> Value {
    let mut rules: BTreeMap<String, usize> = BTreeMap::new();
    let mut described = Vec::new();
    let mut results = Vec::new();
    for reported in report.findings() {
        let id = rule_id(reported);
        let index = *rules.entry(id.clone()).or_insert_with(|| {
            described.push(rule(&id));
            described.len() - 1
        });
        results.push(result(reported, &id, index));
    }
    let disclosure = report.disclosure();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "Endmark", "version": version, "rules": described } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                // What was cut and not recovered is no success.
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

fn result(reported: &ReportedFinding, rule: &str, index: usize) -> Value {
    let finding = &reported.finding;
    let mut message = if finding.title.is_empty() { finding.id.clone() } else { finding.title.clone() };
    for (name, value) in [("Source", &finding.source), ("Sink", &finding.sink)] {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = write!(message, "\n{name}: {value}");
        }
    }
    if finding.originally_truncated {
        message.push_str("\nThis finding was cut when it was handed over.");
    }
    let mut result = json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": level(finding.severity.as_deref()),
        "message": { "text": plain(&message) },
        "locations": locations(reported),
        "properties": {
            "id": finding.id,
            "title": finding.title,
            "severity": finding.severity,
            "cwe": finding.cwe,
            "location": finding.location,
            "source": finding.source,
            "sink": finding.sink,
            "evidence": finding.evidence,
            "originally_truncated": finding.originally_truncated,
            "missing": reported.missing,
            "reported_by": reported.reported_by,
            "also_titled": reported.also_titled,
        },
    });
    if let (Some(flow), Some(object)) = (&finding.flow, result.as_object_mut()) {
        object.insert("codeFlows".to_owned(), code_flows(flow));
    }
    result
}

fn level(severity: Option<&str>) -> &'static str {
    match severity {
        Some("Critical" | "High") => "error",
        Some("Low" | "Info") => "note",
        _ => "warning",
    }
}

/// A text of agents as a message: it is neither a link nor the place of an argument there, whatever stands in it.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 16);
    let mut backslashes = 0;
    for sign in text.chars() {
        match sign {
            '[' | ']' => {
                // Those before it would be escapes of each other, and not of the bracket.
                plain.extend(std::iter::repeat_n('\\', backslashes + 1));
                plain.push(sign);
            }
            '{' | '}' => plain.extend([sign, sign]),
            _ => plain.push(sign),
        }
        backslashes = if sign == '\\' { backslashes + 1 } else { 0 };
    }
    plain
}

/// The files that a finding names, and as logical locations what else is said of where it is: a route, a function, words.
fn locations(reported: &ReportedFinding) -> Vec<Value> {
    let logical = |words: &str| json!({ "logicalLocations": [{ "fullyQualifiedName": words }] });
    let places = &reported.places;
    match &reported.finding.location {
        Some(words) if places.is_empty() => vec![logical(words)],
        _ => places
            .iter()
            .map(|place| {
                if names_file(&place.file, place.start_line.is_some()) {
                    location(place, reported.finding.evidence.as_deref())
                } else {
                    logical(
                        &place
                            .part
                            .as_ref()
                            .map_or_else(|| place.file.clone(), |part| format!("{} ({part})", place.file)),
                    )
                }
            })
            .collect(),
    }
}

fn location(place: &ReportedPlace, evidence: Option<&str>) -> Value {
    let mut physical = json!({ "artifactLocation": { "uri": uri(&place.file) } });
    if let (Some(start), Some(end), Some(object)) =
        (place.start_line, place.end_line, physical.as_object_mut())
    {
        let mut region = json!({ "startLine": start, "endLine": end });
        if let (Some(evidence), Some(region)) = (evidence, region.as_object_mut()) {
            region.insert("snippet".to_owned(), json!({ "text": evidence }));
        }
        object.insert("region".to_owned(), region);
    }
    match &place.part {
        None => json!({ "physicalLocation": physical }),
        Some(part) => {
            json!({ "physicalLocation": physical, "logicalLocations": [{ "fullyQualifiedName": part }] })
        }
    }
}

/// A path as a relative reference: what has a meaning in one is escaped. A URL stays one.
fn uri(file: &str) -> String {
    if is_url(file) {
        return url(file);
    }
    let mut uri = String::new();
    for (at, byte) in file.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte);
        // A drive's letter must not be taken for a scheme.
        if at == 1 && byte == b':' && file.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            uri.insert_str(0, "file:///");
            uri.push(':');
        } else if is_plain {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

fn is_url(file: &str) -> bool {
    let scheme = file.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// A URL as it is, but for signs that none can have.
fn url(file: &str) -> String {
    let mut url = String::new();
    for (at, byte) in file.bytes().enumerate() {
        let is_escape = || {
            let digits = file.as_bytes().get(at + 1..at + 3);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@:?".contains(&byte);
        if is_plain || byte == b'%' && is_escape() || byte == b'#' && !url.contains('#') {
            url.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// The flows that were joined to one, each with its steps, as far as they are set apart. A `;` stands between flows where
/// there are steps on both sides of it, and in code otherwise.
fn code_flows(flow: &str) -> Value {
    let flow = flow.replace('→', "->");
    let flows: Vec<&str> = flow.split("; ").collect();
    let flows = if flows.iter().all(|flow| flow.contains("->")) { flows } else { vec![flow.as_str()] };
    let threads = flows.into_iter().map(steps).filter(|steps| !steps.is_empty());
    threads.map(|steps| json!({ "threadFlows": [{ "locations": steps }] })).collect()
}

fn steps(flow: &str) -> Vec<Value> {
    let steps = flow.split("->").map(str::trim).filter(|step| !step.is_empty());
    steps.map(|step| json!({ "location": { "message": { "text": plain(step) } } })).collect()
}

/// One notification for each agent that was cut, and one for the whole.
fn notifications(report: &FinalReport) -> Vec<Value> {
    let disclosure = report.disclosure();
    let mut notifications: Vec<Value> = disclosure
        .truncated_agents()
        .iter()
        .map(|agent| {
            let name = agent.agent_id.clone().unwrap_or_else(|| format!("not named ({})", agent.origins.join(", ")));
            let gaps = if agent.gaps.is_empty() { "no known gap".to_owned() } else { agent.gaps.join(", ") };
            let text = format!(
                "The result of agent {name} {}; recovery: {}; may be missing: {gaps}; findings not recovered: {}",
                agent.what_happened(),
                agent.recovery.words(),
                number(&agent.unrecovered)
            );
            notification("agent_truncated", &text)
        })
        .collect();
    if disclosure.has_gaps() {
        let text = format!(
            "Findings may be missing: {} not recovered, {} to be looked at again",
            number(disclosure.unrecovered()),
            disclosure.needs_reaudit()
        );
        notifications.push(notification("coverage_gaps", &text));
    }
    notifications
}

fn notification(id: &str, text: &str) -> Value {
    json!({ "descriptor": { "id": id }, "level": "warning", "message": { "text": plain(text) } })
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn no_text_of_an_agent_is_a_link_or_an_argument() {
        for (text, written) in [
            ("SQL in `find_user`", "SQL in `find_user`"),
            ("[here](https://example.org)", r"\[here\](https://example.org)"),
            (r"\[here](1)", r"\\\[here\](1)"),
            (r"C:\src", r"C:\src"),
            ("where name = '{name}' {0}", "where name = '{{name}}' {{0}}"),
        ] {
            assert_eq!(plain(text), written);
        }
    }
}
