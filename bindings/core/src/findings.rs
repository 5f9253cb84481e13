//! Functions for the findings of a team of agents, which may be incomplete.

use endmark::context::count::Family;
use endmark::findings::{
    CheckedResult, Checkpoint, DeliveredResult, FinalReport, FindingForm, FittedResults, MeasuredReceipt,
    MergedResults, Position, Protocol, ProtocolFormat, Receipt, Remark, RewriteRefusal, Team, Transcript,
    read,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failure::{Failure, FailureKind};
use crate::options::{answer, find_input, parse};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProtocolOptions {
    #[serde(default)]
    form: Option<String>,
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    dimensions: Vec<String>,
    #[serde(default)]
    budget_left: Option<u64>,
    #[serde(default)]
    max_turns: Option<u32>,
    #[serde(default)]
    max_findings: Option<u32>,
}

pub(crate) fn protocol(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let options: ProtocolOptions = parse(options)?;
    let form = match options.form.as_deref() {
        None | Some("text") => ProtocolFormat::Text,
        Some("jsonl") => ProtocolFormat::Jsonl,
        Some(_) => return Err(Failure::invalid("invalid_options", "`form` must be text or jsonl")),
    };
    let protocol = Protocol {
        form,
        agent_id: options.agent_id.as_deref(),
        dimensions: &options.dimensions,
        budget_left: options.budget_left,
        max_turns: options.max_turns,
        max_findings: options.max_findings,
    };
    answer(&protocol.text())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EstimateOptions {
    findings: u64,
    budget_left: u64,
}

pub(crate) fn estimate(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let options: EstimateOptions = parse(options)?;
    answer(
        &Receipt::estimate(options.findings, options.budget_left)
            .with_measurement(None, Family::O200k.name()),
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FitOptions {
    budget_left: u64,
}

#[derive(Serialize)]
struct ShownFitted {
    receipt: MeasuredReceipt,
    text: String,
    findings: Vec<FindingForm>,
}

pub(crate) fn fit(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (raw, options): (_, FitOptions) = (find_input(inputs, 0)?, parse(options)?);
    let transcript = read(raw);
    if let Some(refusal) = RewriteRefusal::check(&transcript) {
        return Err(Failure::new(FailureKind::Malformed, refusal.code(), refusal));
    }
    let count = |text: &str| Family::O200k.tokens(text);
    let FittedResults { receipt, text, tokens, findings } =
        endmark::findings::fit(&transcript.results, options.budget_left, count);
    let receipt = receipt.with_measurement(Some(tokens), Family::O200k.name());
    answer(&ShownFitted { receipt, text, findings: findings.iter().map(FindingForm::new).collect() })
}

#[derive(Serialize)]
struct Checked<'c> {
    results: Vec<CheckedResult<'c>>,
    checkpoints: &'c [Checkpoint],
    remarks: Vec<ShownRemark<'c>>,
    remarks_omitted: usize,
}

#[derive(Serialize)]
struct ShownRemark<'c> {
    position: Position,
    kind: &'static str,
    text: &'c str,
    message: String,
}

pub(crate) fn check(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let Nothing {} = parse(options)?;
    let transcript = read(find_input(inputs, 0)?);
    answer(&Checked::new(&transcript))
}

impl<'c> Checked<'c> {
    fn new(transcript: &'c Transcript) -> Self {
        let remark = |remark: &'c Remark| ShownRemark {
            position: remark.position,
            kind: remark.kind.name(),
            text: &remark.text,
            message: remark.to_string(),
        };
        Self {
            results: transcript.results.iter().map(CheckedResult::new).collect(),
            checkpoints: &transcript.checkpoints,
            remarks: transcript.remarks.iter().map(remark).collect(),
            remarks_omitted: transcript.remarks_omitted,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamOptions<'o> {
    /// A name for each input. An agent is also recognized by its own name in the input.
    #[serde(default)]
    origins: Vec<String>,
    #[serde(default, borrow)]
    team: Option<&'o RawValue>,
    /// Whether agents without a result may still be running.
    #[serde(default)]
    running: bool,
}

fn merge_inputs(inputs: &[&[u8]], options: &str) -> Result<MergedResults, Failure> {
    let options: TeamOptions<'_> = parse(options)?;
    let team = match options.team {
        None => Team::default(),
        Some(team) => Team::parse(team.get()).map_err(|error| Failure::invalid("invalid_team", error))?,
    };
    let mut handed = Vec::new();
    for (index, raw) in inputs.iter().enumerate() {
        let origin = options.origins.get(index).cloned().unwrap_or_else(|| format!("result {}", index + 1));
        let results = read(raw).results.into_iter();
        handed.extend(results.map(|result| DeliveredResult { origin: origin.clone(), result }));
    }
    Ok(MergedResults::new(&Team { is_running: options.running, ..team }, handed))
}

pub(crate) fn plan(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    answer(&merge_inputs(inputs, options)?.plan())
}

#[derive(Serialize)]
struct ShownMerged {
    text: String,
    markdown: String,
    report: FinalReport,
}

/// Merges findings. Returns them with a report that discloses what may be missing.
pub(crate) fn merge(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let merged = merge_inputs(inputs, options)?;
    let report = merged.report();
    answer(&ShownMerged { text: merged.text(), markdown: report.markdown(), report })
}
