//! Answers one line of `endmark guard --batch`.

use std::borrow::Cow;

use endmark_guard::{Artifact, Criteria, Finding, Guard, Verdict};
use endmark_text::replace_lone_surrogates;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::batch::{self, Field, LineAnswer, LineError};

/// The fields of a batch line, in addition to its id.
const FIELDS: [Field; 6] = [
    Field::Text("text"),
    Field::Text("name"),
    Field::Count("min_lines"),
    Field::OptionalTexts("required_sections"),
    Field::OptionalTexts("forbidden_phrases"),
    Field::OptionalTexts("forbidden_phrases_only"),
];

#[derive(Deserialize)]
struct BatchRequest<'a> {
    #[serde(default)]
    id: Value,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    /// The file name of the text. Its extension determines the kind of artifact.
    name: Option<String>,
    min_lines: Option<usize>,
    required_sections: Option<Vec<String>>,
    forbidden_phrases: Option<Vec<String>>,
    forbidden_phrases_only: Option<Vec<String>>,
}

impl BatchRequest<'_> {
    /// Returns the line's own criteria, completed from the command line, or `None` if the line has no criteria.
    fn criteria(&self, typed: &Criteria) -> Option<Criteria> {
        let has_own = self.min_lines.is_some()
            || self.required_sections.is_some()
            || self.forbidden_phrases.is_some()
            || self.forbidden_phrases_only.is_some();
        if !has_own {
            return None;
        }
        let mut criteria = typed.clone();
        criteria.min_lines = self.min_lines.or(criteria.min_lines);
        if let Some(sections) = &self.required_sections {
            criteria.required_sections.clone_from(sections);
        }
        if let Some(phrases) = &self.forbidden_phrases {
            criteria.forbidden_phrases.clone_from(phrases);
        }
        Some(match &self.forbidden_phrases_only {
            Some(only) => criteria.with_only_forbidden_phrases(only.clone()),
            None => criteria,
        })
    }
}

#[derive(Serialize)]
struct BatchAnswer<'a> {
    id: &'a Value,
    verdict: Verdict,
    findings: &'a [Finding],
    /// The number of omitted findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    unlisted: Option<usize>,
}

/// Checks the text of one line.
pub(super) fn answer_line(line: &str, guard: &Guard) -> Result<LineAnswer, LineError> {
    let line = &*replace_lone_surrogates(line);
    let request: BatchRequest<'_> = batch::parse_request(line, &FIELDS)?;
    let failed = |message: String| LineError { id: request.id.clone(), message };
    let text = request.text.as_deref().ok_or_else(|| failed("`text` is missing".to_owned()))?;
    let artifact = match &request.name {
        Some(name) => Artifact::read_file(text, name),
        None => Artifact::read(text),
    };
    let report = match request.criteria(guard.criteria()) {
        Some(criteria) => guard.with_criteria(criteria).judge(&artifact),
        None => guard.judge(&artifact),
    };
    let (verdict, findings) = (report.verdict(), report.findings());
    let unlisted = Some(report.unlisted_count()).filter(|count| *count > 0);
    let json = serde_json::to_string(&BatchAnswer { id: &request.id, verdict, findings, unlisted })
        .map_err(|error| failed(error.to_string()))?;
    Ok(LineAnswer { json, is_yes: verdict == Verdict::Whole })
}
