//! What a team of agents hands over, whole or cut.

use endmark::context::count::Family;
use endmark::findings::{
    AgentResult, FinalReport, FindingForm, FindingState, Fitted, Handed, Merged, Position, Protocol,
    ProtocolForm, ReadFinding, Receipt, Remark, Team, Transcript, fitted, read,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failure::{Failure, FailureKind};
use crate::options::{answer, input, parse};

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
        None | Some("text") => ProtocolForm::Text,
        Some("jsonl") => ProtocolForm::Jsonl,
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

#[derive(Serialize)]
struct ShownReceipt {
    #[serde(flatten)]
    receipt: Receipt,
    tokens: Option<u64>,
    fits: bool,
}

impl ShownReceipt {
    fn of(receipt: Receipt, tokens: Option<u64>) -> Self {
        let fits = tokens.map_or(!receipt.compressed, |tokens| receipt.fits(tokens));
        Self { receipt, tokens, fits }
    }
}

pub(crate) fn estimate(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let options: EstimateOptions = parse(options)?;
    answer(&ShownReceipt::of(Receipt::estimated(options.findings, options.budget_left), None))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FitOptions {
    budget_left: u64,
}

#[derive(Serialize)]
struct ShownFitted {
    receipt: ShownReceipt,
    text: String,
    findings: Vec<FindingForm>,
}

pub(crate) fn fit(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (raw, options): (_, FitOptions) = (input(inputs, 0)?, parse(options)?);
    let transcript = read(raw);
    if let Some(cut) = transcript.results.iter().find(|result| !result.cut.is_whole()) {
        let message = format!("the result is cut at {}: written again, it would look whole", cut.ends);
        return Err(Failure::new(FailureKind::Malformed, "truncated", message));
    }
    if let Some(result) = transcript.results.iter().find(|result| result.unread > 0) {
        let message =
            format!("{} findings cannot be read: written again, it would be without them", result.unread);
        return Err(Failure::new(FailureKind::Malformed, "unread_findings", message));
    }
    let count = |text: &str| Family::O200k.tokens(text);
    let Fitted { receipt, text, tokens, findings } = fitted(transcript.results.iter(), options.budget_left, count);
    let receipt = ShownReceipt::of(receipt, Some(tokens));
    answer(&ShownFitted { receipt, text, findings: findings.iter().map(FindingForm::of).collect() })
}

#[derive(Serialize)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn of(position: Position) -> Self {
        Self { line: position.line, column: position.column }
    }
}

#[derive(Serialize)]
struct Checked<'c> {
    results: Vec<CheckedResult<'c>>,
    checkpoints: Vec<ShownCheckpoint<'c>>,
    remarks: Vec<ShownRemark<'c>>,
    remarks_omitted: usize,
}

#[derive(Serialize)]
struct CheckedResult<'c> {
    agent_id: Option<&'c str>,
    dimensions: &'c [String],
    declared_findings: Option<u32>,
    cut: &'static str,
    truncated: bool,
    begins: Option<Place>,
    ends: Place,
    complete: usize,
    truncated_findings: usize,
    needs_reaudit: usize,
    discarded: u32,
    expected_findings: Option<u32>,
    lost: usize,
    findings: Vec<CheckedFinding>,
}

#[derive(Serialize)]
struct CheckedFinding {
    id: String,
    state: &'static str,
    missing: Vec<&'static str>,
    position: Place,
    finding: FindingForm,
}

#[derive(Serialize)]
struct ShownCheckpoint<'c> {
    turn: u32,
    findings: Option<u32>,
    files_read: Option<u32>,
    remaining_dims: Option<&'c [String]>,
    position: Place,
}

#[derive(Serialize)]
struct ShownRemark<'c> {
    position: Place,
    kind: &'static str,
    text: &'c str,
    message: String,
}

pub(crate) fn check(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let Nothing {} = parse(options)?;
    let transcript = read(input(inputs, 0)?);
    answer(&Checked::of(&transcript))
}

impl<'c> Checked<'c> {
    fn of(transcript: &'c Transcript) -> Self {
        let remark = |remark: &'c Remark| ShownRemark {
            position: Place::of(remark.position),
            kind: remark.kind.name(),
            text: &remark.text,
            message: remark.to_string(),
        };
        let checkpoints = transcript.checkpoints.iter().map(|checkpoint| ShownCheckpoint {
            turn: checkpoint.turn,
            findings: checkpoint.findings,
            files_read: checkpoint.files_read,
            remaining_dims: checkpoint.remaining_dims.as_deref(),
            position: Place::of(checkpoint.position),
        });
        Self {
            results: transcript.results.iter().map(CheckedResult::of).collect(),
            checkpoints: checkpoints.collect(),
            remarks: transcript.remarks.iter().map(remark).collect(),
            remarks_omitted: transcript.remarks_omitted,
        }
    }
}

impl<'c> CheckedResult<'c> {
    fn of(result: &'c AgentResult) -> Self {
        Self {
            agent_id: result.agent_id.as_deref(),
            dimensions: &result.dimensions,
            declared_findings: result.declared_findings,
            cut: result.cut.name(),
            truncated: !result.cut.is_whole(),
            begins: result.begins.map(Place::of),
            ends: Place::of(result.ends),
            complete: result.count(FindingState::Complete),
            truncated_findings: result.count(FindingState::Truncated),
            needs_reaudit: result.count(FindingState::NeedsReaudit),
            discarded: result.discarded,
            expected_findings: result.expected().map(|expected| expected.findings),
            lost: result.lost(),
            findings: result.findings.iter().map(CheckedFinding::of).collect(),
        }
    }
}

impl CheckedFinding {
    fn of(found: &ReadFinding) -> Self {
        let mut finding = FindingForm::of(&found.finding);
        finding.originally_truncated |= found.state == FindingState::Truncated;
        Self {
            id: found.finding.id.to_string(),
            state: found.state.name(),
            missing: found.missing.iter().map(|field| field.name()).collect(),
            position: Place::of(found.position),
            finding,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamOptions<'o> {
    /// One name for each input, for people; an agent is recognised by its own name in it, too.
    #[serde(default)]
    origins: Vec<String>,
    #[serde(default, borrow)]
    team: Option<&'o RawValue>,
    /// Whether agents that have handed over nothing may still be at work.
    #[serde(default)]
    running: bool,
}

fn merged(inputs: &[&[u8]], options: &str) -> Result<Merged, Failure> {
    let options: TeamOptions<'_> = parse(options)?;
    let team = match options.team {
        None => Team::default(),
        Some(team) => Team::parse(team.get()).map_err(|error| Failure::invalid("invalid_team", error))?,
    };
    let mut handed = Vec::new();
    for (index, raw) in inputs.iter().enumerate() {
        let origin = options.origins.get(index).cloned().unwrap_or_else(|| format!("result {}", index + 1));
        let results = read(raw).results.into_iter();
        handed.extend(results.map(|result| Handed { origin: origin.clone(), result }));
    }
    Ok(Merged::new(&Team { is_running: options.running, ..team }, handed))
}

pub(crate) fn plan(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    answer(&merged(inputs, options)?.plan())
}

#[derive(Serialize)]
struct ShownMerged {
    text: String,
    markdown: String,
    report: FinalReport,
}

/// The merged findings, with the report that discloses what may be missing.
pub(crate) fn merge(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let merged = merged(inputs, options)?;
    let report = merged.report();
    answer(&ShownMerged { text: merged.text(), markdown: report.markdown(), report })
}
