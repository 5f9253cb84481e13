//! `endmark findings check`: checks which results and findings are whole (AR-1, AR-5).

use std::fmt::Write;
use std::mem;

use endmark_envelope::FieldPath;
use endmark_failure::{CommandError, to_single_line};
use endmark_findings::{AgentResult, CheckedResult, Cut, FindingState, Remark};
use serde::Serialize;

use super::pages::{ListIdentity, split_list};
use super::sources::{self, Source};
use super::{data_if_json, remark_warnings};
use crate::arguments::findings::Check;
use crate::context::Context;
use crate::view::answer::Answer;
use crate::view::paint::{Paint, Painter};

/// Answer data: all results.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckReport<'a> {
    results: Vec<ResultReport<'a>>,
    remarks: Vec<RemarkReport<'a>>,
    /// The number of further remarks that are not listed.
    remarks_omitted: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ResultReport<'a> {
    origin: &'a str,
    #[serde(flatten)]
    result: CheckedResult<'a>,
    /// The index of the item's first finding among all findings of its result. A result with more than half a megabyte
    /// of findings is split into several items, which differ only in their findings.
    findings_from: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RemarkReport<'a> {
    origin: &'a str,
    line: usize,
    column: usize,
    kind: &'static str,
    text: &'a str,
    message: String,
}

/// Maximum number of remarks in the answer; further ones are only counted.
const MAX_REMARKS: usize = 1_000;

/// The hint if no result begins.
const MISSING_FORM_HINT: &str = "A text without a start marker has no findings, or its agent ended before it delivered them. `endmark findings \
     protocol` prints the form for the agent's instructions.\n";
const PLAN_HINT: &str =
    "`endmark findings plan FILE…` lists the work to repeat; complete findings can be used.";

/// Checks all files.
pub(super) fn run(context: &Context, arguments: &Check) -> Result<Answer, CommandError> {
    let sources = sources::read_all(context, &arguments.files)?;
    let (remarks, remarks_omitted) = sources::remarks(&sources);
    let results: Vec<(&str, &AgentResult)> = sources
        .iter()
        .flat_map(|source: &Source| {
            source.transcript.results.iter().map(|result| (source.origin.as_str(), result))
        })
        .collect();
    let list = FieldPath::data().key("results");
    let cursor = arguments.cursor.as_deref();
    let list_identity = ListIdentity { command: "check", files: &arguments.files, options: None, cursor };
    let pages = list_identity.into_pages(list, context)?;
    let data = data_if_json(context, || {
        let mut items = Vec::new();
        for (origin, result) in &results {
            items.extend(ResultReport::new(origin, result)?);
        }
        let shown = remarks.iter().take(MAX_REMARKS);
        Ok(CheckReport {
            results: items,
            remarks: shown.map(|(origin, remark)| RemarkReport::new(origin, remark)).collect(),
            remarks_omitted: remarks_omitted + remarks.len().saturating_sub(MAX_REMARKS),
        })
    })?;
    let mut text = String::new();
    for (origin, result) in &results {
        write_result(&mut text, origin, result, context.terminal.output);
    }
    let formless = results.iter().filter(|(_, result)| result.begins.is_none()).count();
    if formless > 0 {
        text.push_str(MISSING_FORM_HINT);
    }
    let cut = results.iter().filter(|(_, result)| !result.cut.is_whole()).count();
    let short = results.iter().filter(|(_, result)| is_incomplete(result)).count();
    let of_all = results.len();
    let answer = if cut > 0 {
        Answer::no_in_text(data, text, "truncated", format!("{cut} of {of_all} results are truncated"))
            .with_hint(if formless > 0 { MISSING_FORM_HINT.trim_end() } else { PLAN_HINT })
    } else if short > 0 {
        Answer::no_in_text(
            data,
            text,
            "incomplete",
            format!("{short} of {of_all} results are whole, but not complete"),
        )
        .with_hint(
            "Let the agent repeat findings that are missing or need a re-audit; `endmark findings plan FILE…` plans \
             is to be done.",
        )
    } else {
        Answer::yes(data, text)
    };
    Ok(answer.with_warnings(remark_warnings(&remarks, remarks_omitted)).with_pages(pages))
}

/// Whether a result lacks findings or parts of them, or contradicts itself, although it may have an end
/// marker.
fn is_incomplete(result: &AgentResult) -> bool {
    result.lost_count() > 0
        || result.count(FindingState::Complete) < result.findings.len()
        || result.contradicts_itself()
}

impl<'a> ResultReport<'a> {
    /// Returns the report of a result, split into several items if it is too large for one.
    fn new(origin: &'a str, result: &'a AgentResult) -> Result<Vec<Self>, CommandError> {
        let mut checked = CheckedResult::new(result);
        let pieces = split_list(mem::take(&mut checked.findings))?;
        let item = |(findings_from, findings)| Self {
            origin,
            result: CheckedResult { findings, ..checked.clone() },
            findings_from,
        };
        Ok(pieces.into_iter().map(item).collect())
    }
}

impl<'a> RemarkReport<'a> {
    fn new(origin: &'a str, remark: &'a Remark) -> Self {
        Self {
            origin,
            line: remark.position.line,
            column: remark.position.column,
            kind: remark.kind.name(),
            text: &remark.text,
            message: remark.to_string(),
        }
    }
}

// Writing to a string cannot fail.
fn write_result(text: &mut String, origin: &str, result: &AgentResult, painter: Painter) {
    let agent = result
        .agent_id
        .as_deref()
        .map_or("agent not named".to_owned(), |id| format!("agent {}", to_single_line(id)));
    let place = format!("at line {}, column {}", result.ends.line, result.ends.column);
    let verdict = match result.cut {
        Cut::Whole => painter.paint(Paint::Good, "whole"),
        Cut::Mild => {
            format!(
                "{} {place}: mild, its complete findings can be used",
                painter.paint(Paint::Doubt, "truncated")
            )
        }
        Cut::Severe if result.begins.is_none() => {
            format!(
                "{}: severe, no start marker, nothing can be used",
                painter.paint(Paint::Bad, "truncated")
            )
        }
        Cut::Severe => {
            format!("{} {place}: severe, all findings are discarded", painter.paint(Paint::Bad, "truncated"))
        }
    };
    let _ = writeln!(text, "{}: {agent}: {verdict}", to_single_line(origin));
    for read in &result.findings {
        let paint = match read.state {
            FindingState::Complete => Paint::Good,
            FindingState::Truncated => Paint::Doubt,
            FindingState::NeedsReaudit => Paint::Bad,
        };
        let finding = &read.finding;
        let missing: Vec<&str> = read.missing.iter().map(|field| field.name()).collect();
        let lacks =
            if missing.is_empty() { String::new() } else { format!("  (lacks {})", missing.join(", ")) };
        let _ = writeln!(
            text,
            "  {:<6} {}  {}{lacks}",
            finding.id.to_string(),
            painter.paint(paint, &format!("{:<13}", read.state.name())),
            to_single_line(&finding.title)
        );
    }
    if result.discarded > 0 {
        let _ = writeln!(text, "  {} findings discarded", result.discarded);
    }
    if result.contradicts_itself() {
        text.push_str(
            "  two findings have the same id, or there are more findings than the agent declares\n",
        );
    }
    let lost = result.lost_count();
    if let Some(expected) = result.expected_count().filter(|_| lost > 0) {
        let (of, by) = (expected.findings, expected.basis.name());
        let _ = if lost <= of as usize {
            writeln!(text, "  {lost} of {of} findings are missing (according to {by})")
        } else {
            writeln!(
                text,
                "  {lost} findings need another audit, more than the {of} there are (according to {by})"
            )
        };
    }
}
