//! `endmark findings merge` and `endmark findings report`: one list of findings, and its gaps (AR-5, AR-6).

use endmark_envelope::{ErrorBody, FieldPath, Warning};
use endmark_failure::{CommandError, ExitStatus};
use endmark_findings::{Disclosure, FinalReport, MergedFinding, MergedResults, Team};
use serde::Serialize;
use serde_json::Value;

use super::pages::{ListIdentity, text_unless_paged};
use super::{data_if_json, remark_warnings, sources, team};
use crate::arguments::findings::{Merge, Report, ReportForm, TeamArguments};
use crate::context::Context;
use crate::view::answer::{Answer, PagedList};

/// Answer data: the merged results.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MergeReport<'a> {
    /// The findings in the canonical form, with an end marker only if nothing is missing. Null if the list of findings
    /// is split into pages; without `--json` the text is always complete.
    text: Option<&'a str>,
    report: &'a FinalReport,
}

/// Answer data: the final report.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FinalReportAnswer<'a> {
    report: &'a FinalReport,
    /// Present only with `--to markdown`.
    markdown: Option<&'a str>,
    /// Present only with `--to sarif`.
    sarif: Option<&'a Value>,
}

/// Prints the merged findings.
pub(super) fn merge(context: &Context, arguments: &Merge) -> Result<Answer, CommandError> {
    let (merged, notices, pages) = merge_team(context, &arguments.team, "merge")?;
    let report = merged.report();
    let disclosure = report.disclosure();
    let text = merged.text();
    let (shown, left_out) = text_unless_paged(&text, context);
    let data = data_if_json(context, || Ok(MergeReport { text: shown, report: &report }))?;
    Ok(build_answer(data, text, disclosure, &merged)
        .with_warnings(notices)
        .with_warnings(left_out)
        .with_warnings(omitted_agents_warning(&merged))
        .with_pages(pages))
}

/// Warns that the text form cannot name the reporting agents of a merged finding.
fn omitted_agents_warning(merged: &MergedResults) -> Option<Warning> {
    let is_of_several = |merged: &&MergedFinding| merged.reported_by.len() > 1;
    let count = merged.findings().iter().filter(is_of_several).count();
    let message = format!(
        "{count} findings were reported by several agents, which the text does not name; \
         `endmark findings report` and --json name them"
    );
    (count > 0).then(|| Warning::notice("NOT_IN_TEXT", message))
}

/// Prints the final report.
pub(super) fn report(context: &Context, arguments: &Report) -> Result<Answer, CommandError> {
    let (merged, notices, pages) = merge_team(context, &arguments.team, "report")?;
    let report = merged.report();
    let markdown = (arguments.to == ReportForm::Markdown).then(|| report.markdown());
    let sarif = (arguments.to == ReportForm::Sarif).then(|| report.sarif(env!("CARGO_PKG_VERSION")));
    let text = match (&markdown, &sarif) {
        (Some(markdown), _) => markdown.clone(),
        (None, Some(sarif)) => to_pretty_json(sarif)?,
        (None, None) => to_pretty_json(&report)?,
    };
    let (shown, left_out) = text_unless_paged(&text, context);
    let data = data_if_json(context, || {
        Ok(FinalReportAnswer {
            report: &report,
            markdown: markdown.as_deref().and(shown),
            sarif: sarif.as_ref().filter(|_| shown.is_some()),
        })
    })?;
    let left_out = left_out.filter(|_| arguments.to != ReportForm::Json);
    let answer = build_answer(data, text, report.disclosure(), &merged);
    Ok(answer.with_warnings(notices).with_warnings(left_out).with_pages(pages))
}

fn pages(
    context: &Context,
    arguments: &TeamArguments,
    command: &'static str,
    team: &Team,
) -> Result<PagedList, CommandError> {
    let cursor = arguments.cursor.as_deref();
    let list_identity = ListIdentity { command, files: &arguments.files, options: Some(team), cursor };
    list_identity.into_pages(FieldPath::data().key("report").key("findings"), context)
}

fn to_pretty_json(value: &impl Serialize) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CommandError::Bug(error.to_string()))?;
    Ok(text + "\n")
}

fn merge_team(
    context: &Context,
    arguments: &TeamArguments,
    command: &'static str,
) -> Result<(MergedResults, Vec<Warning>, PagedList), CommandError> {
    let sources = sources::read_all(context, &arguments.files)?;
    let team = team::read_team(context, arguments.team.as_deref(), arguments.running)?;
    let (remarks, omitted) = sources::remarks(&sources);
    let mut notices = remark_warnings(&remarks, omitted);
    let pages = pages(context, arguments, command, &team)?;
    let merged = MergedResults::new(&team, sources::into_results(sources));
    notices.extend(team::unknown_agent_warnings(&merged));
    Ok((merged, notices, pages))
}

/// Builds the answer, with truncated results as warnings. It is negative if nothing at all was usable.
fn build_answer(data: Value, text: String, disclosure: &Disclosure, merged: &MergedResults) -> Answer {
    let answer = Answer::yes(data, text).with_warnings(disclosure.truncated_agents.iter().map(|agent| {
        let name =
            agent.agent_id.clone().unwrap_or_else(|| format!("not named ({})", agent.origins.join(", ")));
        let message =
            format!("the result of agent {name} {}; recovery: {}", agent.describe(), agent.recovery.label());
        Warning::truncation("AGENT_TRUNCATED", message)
    }));
    let is_usable = merged.results().iter().any(|handed| handed.result.cut != endmark_findings::Cut::Severe);
    if is_usable {
        return answer;
    }
    answer.with_error(
        ErrorBody::new("no_result", ExitStatus::Negative.code(), "no file has a usable result")
            .with_hint("`endmark findings check FILE…` explains the problem of each file."),
    )
}
