//! The names of fields, in the spellings of models.

use std::borrow::Cow;

use crate::Field;
use crate::narrow::narrowed;

/// What a field can be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    AgentId,
    Dimensions,
    Declared,
    /// Signs are written as `\u{1b}`.
    Escapes,
    /// The name of a finding, where it is a field like others.
    Id,
    /// What is wrong, where it is a field like others.
    Title,
    /// Lines of the file that `location` names.
    Lines,
    /// The last of these lines, where that is a field of its own.
    LastLine,
    /// What of the file that `location` names: a function, a class, a route. Code in evidence says such names as well.
    Part,
    /// The source and the sink, with an arrow between: `Source -> Sink`.
    Ends,
    Of(Field),
}

impl Key {
    /// Whether it stands before the findings.
    pub(super) fn is_of_header(self) -> bool {
        matches!(self, Self::AgentId | Self::Dimensions | Self::Declared | Self::Escapes)
    }

    /// Whether it says something of a finding besides its name and title.
    pub(super) fn is_of_finding(self) -> bool {
        matches!(self, Self::Lines | Self::LastLine | Self::Ends | Self::Of(_))
    }

    /// The field of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        // `Source (user input)`, `File(s)`
        let name = name.split(['(', '（']).next().unwrap_or(name);
        Some(match folded(name).as_ref() {
            "agent_id" | "agent" | "agent_name" | "agentid" => Self::AgentId,
            "dimensions" | "dimension" | "audit_dimensions" | "dimensions_audited" => Self::Dimensions,
            "declared_findings"
            | "declared"
            | "total_findings"
            | "findings_total"
            | "finding_count"
            | "findings_count"
            | "number_of_findings"
            | "declared_finding_count"
            | "declaredfindings" => Self::Declared,
            "escapes" => Self::Escapes,
            "id" | "finding_id" | "findingid" => Self::Id,
            "title" | "name" | "finding_title" | "vulnerability" | "issue" => Self::Title,
            "line" | "lines" | "line_number" | "line_numbers" | "line_range" | "linenumber"
            | "start_line" | "startline" | "line_start" | "linestart" | "first_line" => Self::Lines,
            "end_line" | "endline" | "line_end" | "lineend" | "last_line" => Self::LastLine,
            "function"
            | "functions"
            | "function_name"
            | "affected_function"
            | "vulnerable_function"
            | "method"
            | "method_name"
            | "affected_method"
            | "class"
            | "class_name"
            | "symbol"
            | "procedure"
            | "routine"
            | "endpoint"
            | "route" => Self::Part,
            "severity" | "severity_level" | "severity_rating" | "risk" | "risk_level" | "risk_rating" => {
                Self::Of(Field::Severity)
            }
            "cwe" | "cwes" | "cwe_id" | "cwe_ids" | "cweid" | "cwe_reference" | "weakness" => {
                Self::Of(Field::Cwe)
            }
            "location" | "locations" | "file" | "files" | "file_path" | "filepath" | "file_location"
            | "affected_file" | "affected_files" | "affected_location" | "code_location" | "place"
            | "path" => Self::Of(Field::Location),
            "source" | "sources" | "taint_source" | "tainted_source" | "input_source" | "source_of_taint"
            | "untrusted_source" | "data_source" | "entry_point" => Self::Of(Field::Source),
            "sink" | "sinks" | "taint_sink" | "dangerous_sink" | "vulnerable_sink" | "sink_function" => {
                Self::Of(Field::Sink)
            }
            "flow" | "data_flow" | "dataflow" | "taint_flow" | "taint_path" | "flow_path" | "call_path"
            | "call_chain" => Self::Of(Field::Flow),
            "source_to_sink" | "source_sink" | "source_and_sink" => Self::Ends,
            "evidence" | "code" | "code_snippet" | "snippet" | "vulnerable_code" | "affected_code"
            | "relevant_code" | "code_evidence" | "code_excerpt" | "proof" => Self::Of(Field::Evidence),
            "originally_truncated" => Self::Of(Field::OriginallyTruncated),
            _ => return None,
        })
    }
}

/// Names that often follow evidence and are none of a finding's fields.
pub(super) fn is_other_label(name: &str) -> bool {
    let folded = folded(name);
    let words = [
        "impact",
        "recommendation",
        "recommendations",
        "remediation",
        "fix",
        "suggested_fix",
        "mitigation",
        "description",
        "explanation",
        "analysis",
        "note",
        "notes",
        "reference",
        "references",
        "confidence",
        "exploitability",
        "likelihood",
        "cvss",
        "cvss_score",
        "attack_scenario",
        "exploit",
        "why",
        "status",
    ];
    words.contains(&folded.as_ref())
}

/// Whether a name speaks of what should be instead: code behind it is no evidence.
pub(super) fn is_of_remedy(name: &str) -> bool {
    let folded = folded(name);
    [
        "fix",
        "recommend",
        "remed",
        "mitigat",
        "instead",
        "safe",
        "secure",
        "should",
        "patch",
        "correct",
        "better",
    ]
    .iter()
    .any(|word| folded.contains(word))
}

/// A name in small letters, with one `_` for whatever is between its words.
pub(super) fn folded(name: &str) -> Cow<'_, str> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    // Most names are written so.
    if name.split('_').all(is_word) {
        return Cow::Borrowed(name);
    }
    let mut folded = String::with_capacity(name.len());
    for sign in name.chars().map(narrowed) {
        if sign.is_alphanumeric() {
            folded.extend(sign.to_lowercase());
        } else if !folded.is_empty() && !folded.ends_with('_') {
            folded.push('_');
        }
    }
    if folded.ends_with('_') {
        folded.pop();
    }
    Cow::Owned(folded)
}
