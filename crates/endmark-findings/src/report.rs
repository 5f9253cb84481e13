//! Builds the final report, which always includes its disclosure. (AR-6)

mod disclosure;
mod markdown;
mod sarif;

use serde::Serialize;

use super::finding::Field;
use super::form::FindingForm;
use super::join::ALSO_TITLED;
use super::merge::{MergedFinding, MergedResults};

pub use disclosure::{AgentDisclosure, DimensionCoverage, Disclosure, RunDisclosure, Unrecovered};

/// The final report of a team: its findings, and what may be missing from them.
///
/// A report can only be created from merged results, together with its disclosure. There is no other constructor.
///
/// ```
/// use endmark_findings::{DeliveredResult, MergedResults, Team, read};
///
/// let cut = read(b"===AGENT_RESULT===\nagent_id: a-1\ndimensions: keys\n\n[F001] Fixed k").results.remove(0);
/// let delivered = vec![DeliveredResult { origin: "a-1.txt".into(), result: cut }];
/// let report = MergedResults::new(&Team::default(), delivered).report();
/// assert!(report.disclosure().is_truncated());
/// assert!(report.markdown().contains("## Disclosure"));
/// ```
///
/// A report from arbitrary parts does not compile:
///
/// ```compile_fail,E0451
/// # use endmark_findings::{Disclosure, FinalReport, ReportedFinding};
/// fn quiet(findings: Vec<ReportedFinding>, disclosure: Disclosure) -> FinalReport {
///     FinalReport { findings, disclosure }
/// }
/// ```
///
/// ```compile_fail,E0624
/// # use endmark_findings::{Disclosure, MergedResults};
/// fn made_up(merged: &MergedResults) -> Disclosure {
///     Disclosure::new(merged)
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use endmark_findings::FinalReport;
/// fn from_outside(json: &str) -> FinalReport {
///     serde_json::from_str(json).unwrap()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FinalReport {
    /// The findings, worst first.
    findings: Vec<ReportedFinding>,
    /// What may be missing.
    disclosure: Disclosure,
}

/// A finding of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportedFinding {
    /// The finding itself.
    pub finding: FindingForm,
    /// The files and lines in its location.
    pub places: Vec<ReportedPlace>,
    /// The required fields that it lacks.
    pub missing: Vec<&'static str>,
    /// The other titles under which it was reported.
    pub also_titled: Vec<String>,
    /// The agents that reported it.
    pub reported_by: Vec<String>,
}

/// A file, optionally with lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportedPlace {
    /// The file path.
    pub file: String,
    /// The first line, from 1.
    pub start_line: Option<u32>,
    /// The last line.
    pub end_line: Option<u32>,
}

impl ReportedFinding {
    fn new(merged: &MergedFinding) -> Self {
        let mut finding = FindingForm::new(&merged.finding);
        let mut also_titled = merged.also_titled.clone();
        let earlier_titles = finding.other.remove(ALSO_TITLED).unwrap_or_default();
        also_titled.extend(earlier_titles.split("; ").filter(|title| !title.is_empty()).map(str::to_owned));
        Self {
            finding,
            places: merged
                .finding
                .file_lines()
                .iter()
                .map(|place| ReportedPlace {
                    file: place.file.clone(),
                    start_line: place.lines.map(|lines| lines.start),
                    end_line: place.lines.map(|lines| lines.end),
                })
                .collect(),
            missing: merged.finding.missing_fields().into_iter().map(Field::name).collect(),
            also_titled,
            reported_by: merged.reported_by.clone(),
        }
    }
}

impl MergedResults {
    /// Returns the final report with its disclosure (AR-6).
    pub fn report(&self) -> FinalReport {
        FinalReport {
            findings: self.findings().iter().map(ReportedFinding::new).collect(),
            disclosure: Disclosure::new(self),
        }
    }
}

impl FinalReport {
    /// Returns the findings, worst first.
    pub fn findings(&self) -> &[ReportedFinding] {
        &self.findings
    }

    /// Returns what may be missing.
    pub fn disclosure(&self) -> &Disclosure {
        &self.disclosure
    }

    /// Returns the human-readable report, in Markdown.
    pub fn markdown(&self) -> String {
        markdown::render_markdown(self)
    }

    /// Returns the report as SARIF 2.1.0. `version` is the version of the program that writes it.
    pub fn sarif(&self, version: &str) -> serde_json::Value {
        sarif::render_sarif(self, version)
    }
}
