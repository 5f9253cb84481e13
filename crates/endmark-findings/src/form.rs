//! The JSON form of results and findings. (AR-1)

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::transcript::AgentResult;

/// A result as JSON, with the field names of the text form.
///
/// ```
/// use endmark_findings::{ResultForm, read};
///
/// let json = r#"{"agent_id": "a-1", "dimensions": ["keys"], "findings": [{"id": "F001", "title": "Fixed key"}]}"#;
/// let result = &read(json.as_bytes()).results[0];
/// assert_eq!(result.findings[0].finding.title, "Fixed key");
/// assert_eq!(serde_json::to_value(ResultForm::new(result))?["truncated"], false);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResultForm {
    /// The name of the agent, or null if the result does not state it.
    pub agent_id: Option<String>,
    /// The examined dimensions.
    #[serde(default)]
    pub dimensions: Vec<String>,
    /// The number of findings that the agent declares.
    #[serde(default)]
    pub declared_findings: Option<u32>,
    /// The findings.
    pub findings: Vec<FindingForm>,
    /// Whether the result was cut, so that findings may be missing at its end.
    #[serde(default)]
    pub truncated: bool,
}

/// A finding as JSON, with the field names of the text form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FindingForm {
    /// The id, such as `F001`.
    pub id: String,
    /// The problem in one line.
    #[serde(default)]
    pub title: String,
    /// Critical, High, Medium, Low, Info, or another word as written.
    #[serde(default)]
    pub severity: Option<String>,
    /// The CWE numbers, such as `CWE-89`, separated by commas.
    #[serde(default)]
    pub cwe: Option<String>,
    /// The affected files and lines, such as `src/db/user.rs:41-58`.
    #[serde(default)]
    pub location: Option<String>,
    /// The origin of the data.
    #[serde(default)]
    pub source: Option<String>,
    /// The place where the data does harm.
    #[serde(default)]
    pub sink: Option<String>,
    /// The path from source to sink.
    #[serde(default)]
    pub flow: Option<String>,
    /// Lines of code, joined by line feeds.
    #[serde(default)]
    pub evidence: Option<String>,
    /// Whether it was truncated when first delivered.
    #[serde(default)]
    pub originally_truncated: bool,
    /// Unknown fields by name.
    #[serde(flatten, skip_deserializing)]
    pub other: BTreeMap<String, String>,
}

impl FindingForm {
    /// Creates the JSON form of a finding.
    pub fn new(finding: &Finding) -> Self {
        Self {
            id: finding.id.to_string(),
            title: finding.title.clone(),
            severity: finding.severity.as_ref().map(|severity| severity.name().to_owned()),
            cwe: Some(finding.cwe_text()).filter(|cwe| !cwe.is_empty()),
            location: finding.location.as_ref().map(ToString::to_string),
            source: finding.source.clone(),
            sink: finding.sink.clone(),
            flow: finding.flow.clone(),
            evidence: finding.evidence.as_ref().map(|evidence| evidence.as_str().to_owned()),
            originally_truncated: finding.originally_truncated,
            other: finding.other.iter().map(|field| (field.name.clone(), field.value.clone())).collect(),
        }
    }
}

impl ResultForm {
    /// Creates the JSON form of a result with all findings that were read (AR-5).
    pub fn new(result: &AgentResult) -> Self {
        Self {
            agent_id: result.agent_id.clone(),
            dimensions: result.dimensions.clone(),
            declared_findings: result.declared_findings,
            findings: result.findings.iter().map(|read| FindingForm::new(&read.finding)).collect(),
            truncated: !result.cut.is_whole(),
        }
    }
}
