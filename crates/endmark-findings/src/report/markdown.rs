//! Writes the report for people, in Markdown. (AR-6)

mod literal;

use std::fmt::Write;

use super::disclosure::NO_RESULT;
use super::{AgentDisclosure, Disclosure, FinalReport, ReportedFinding, Unrecovered};
use crate::control::escape_controls;
use crate::write::{fence_around, one_line};

use literal::{code_span, escape_prose};

/// The mark of a dimension whose result was cut (AR-4).
pub(super) const WARNING_SIGN: &str = "⚠️";

// Writing to a string cannot fail, here and below.
pub(super) fn render_markdown(report: &FinalReport) -> String {
    let mut text = String::from("# Findings\n\n");
    let disclosure = report.disclosure();
    let _ = writeln!(
        text,
        "{} from {}. {}\n",
        count_with_noun(report.findings().len(), "finding"),
        count_with_noun(disclosure.results, "result"),
        headline(disclosure)
    );
    write_disclosure(&mut text, disclosure);
    write_dimensions(&mut text, disclosure);
    text.push_str("## Findings\n\n");
    if report.findings().is_empty() {
        text.push_str("None.\n");
    }
    for finding in report.findings() {
        write_finding(&mut text, finding);
    }
    // Text from agents must not control the reader's terminal.
    escape_controls(&text).into_owned()
}

fn count_with_noun(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn headline(disclosure: &Disclosure) -> &'static str {
    match (disclosure.is_truncated(), disclosure.has_gaps()) {
        (_, true) => "**Something may be missing: see the disclosure.**",
        (true, false) => "Results were cut, and have been recovered: see the disclosure.",
        (false, false) => "Nothing was cut.",
    }
}

fn write_disclosure(text: &mut String, disclosure: &Disclosure) {
    text.push_str("## Disclosure\n\n");
    if disclosure.is_truncated() {
        text.push_str("| agent | what happened | recovery | may be missing | findings not recovered |\n|---|---|---|---|---|\n");
        for agent in &disclosure.truncated_agents {
            write_agent(text, agent);
        }
        text.push('\n');
    } else {
        text.push_str("No agent's result was truncated.\n\n");
    }
    let _ =
        writeln!(text, "- Findings that could not be recovered: {}", format_count(&disclosure.unrecovered));
    let _ = writeln!(
        text,
        "- Findings left out because they must be audited again: {}",
        disclosure.needs_reaudit
    );
    let _ = writeln!(
        text,
        "- Findings discarded with results that do not name their agent: {}",
        disclosure.discarded
    );
    let _ = writeln!(text, "- Duplicates joined: {}\n", disclosure.joined_duplicates);
}

fn write_agent(text: &mut String, agent: &AgentDisclosure) {
    let name = match &agent.agent_id {
        Some(name) => table_cell(name),
        None => format!("not named ({})", table_cell(&agent.origins.join(", "))),
    };
    let runs: Vec<String> = agent
        .runs
        .iter()
        .map(|run| format!("{}, round {}: {}", run.kind.name(), run.round, describe_cut(run.cut)))
        .collect();
    let runs = if runs.is_empty() { "no result yet".to_owned() } else { runs.join("; ") };
    let gaps =
        if agent.gaps.is_empty() { "no known gap".to_owned() } else { table_cell(&agent.gaps.join(", ")) };
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {gaps} | {} |",
        runs,
        agent.recovery.label(),
        format_count(&agent.unrecovered)
    );
}

fn describe_cut(cut: &str) -> &'static str {
    match cut {
        "whole" => "whole",
        NO_RESULT => "no result",
        "mild" => "truncated, complete findings kept",
        _ => "truncated, all discarded",
    }
}

/// Formats a count: `3, by declared_findings`, or `at least 2 so far` while a run is pending.
pub(super) fn format_count(unrecovered: &Unrecovered) -> String {
    let at_least = if unrecovered.at_least { "at least " } else { "" };
    let so_far = if unrecovered.is_open { " so far" } else { "" };
    let basis = match unrecovered.basis.as_slice() {
        [] => String::new(),
        basis => format!(", by {}", basis.join(", ")),
    };
    format!("{at_least}{}{so_far}{basis}", unrecovered.count)
}

fn write_dimensions(text: &mut String, disclosure: &Disclosure) {
    if disclosure.dimensions.is_empty() {
        return;
    }
    text.push_str("## Dimensions\n\n| dimension | agents | coverage |\n|---|---|---|\n");
    for dimension in &disclosure.dimensions {
        let coverage = match (dimension.truncated, dimension.gap) {
            (_, true) => format!("{WARNING_SIGN} may have gaps"),
            (true, false) if dimension.run_again => format!("{WARNING_SIGN} truncated, then recovered"),
            (true, false) => format!("{WARNING_SIGN} in a result that was truncated, not run again"),
            (false, false) => "whole".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {coverage} |",
            table_cell(&dimension.dimension),
            table_cell(&dimension.agents.join(", "))
        );
    }
    text.push('\n');
}

fn write_finding(text: &mut String, reported: &ReportedFinding) {
    let finding = &reported.finding;
    let _ = writeln!(text, "### [{}] {}\n", finding.id, escape_prose(&one_line(&finding.title)));
    let agents = reported.reported_by.join(", ");
    let also = reported.also_titled.join("; ");
    let as_prose = |value: Option<&str>| value.map(|value| escape_prose(&one_line(value)));
    let as_code = |value: Option<&str>| {
        value.filter(|value| !value.trim().is_empty()).map(|value| code_span(&one_line(value)))
    };
    let fields = [
        ("severity", as_prose(finding.severity.as_deref())),
        ("cwe", as_prose(finding.cwe.as_deref())),
        ("location", as_code(finding.location.as_deref())),
        ("source", as_code(finding.source.as_deref())),
        ("sink", as_code(finding.sink.as_deref())),
        ("flow", as_code(finding.flow.as_deref())),
        ("also called", as_prose(Some(&also))),
        ("reported by", as_prose(Some(&agents))),
    ];
    for (name, value) in fields {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let _ = writeln!(text, "- **{name}:** {value}");
        }
    }
    for (name, value) in &finding.other {
        let _ = writeln!(text, "- **{}:** {}", escape_prose(&one_line(name)), escape_prose(&one_line(value)));
    }
    if !reported.missing.is_empty() {
        let _ = writeln!(text, "- **missing:** {}", reported.missing.join(", "));
    }
    if finding.originally_truncated {
        text.push_str("- **originally_truncated:** true\n");
    }
    if let Some(evidence) = &finding.evidence {
        let fence = fence_around(evidence);
        let _ = writeln!(text, "\n{fence}\n{evidence}\n{fence}");
    }
    text.push('\n');
}

/// Formats a text for a table cell.
fn table_cell(text: &str) -> String {
    escape_prose(&one_line(text))
}
