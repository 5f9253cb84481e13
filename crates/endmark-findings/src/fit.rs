//! Prevents cuts: estimates the size of a result in advance, and compresses it if it would not fit. (AR-2)

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Serialize;

use super::finding::{Evidence, Finding, Severity};
use super::join::{add_titles, distinct_pieces, join_fields, join_text};
use super::location::{FileLines, LineRange, Location};
use super::transcript::{AgentResult, Position, RemarkKind, Transcript};
use super::write::WriteParameters;

/// The estimated tokens per finding (AR-2).
pub const TOKENS_PER_FINDING: u64 = 300;

/// The estimated tokens per result in addition to its findings (AR-2).
pub const TOKENS_PER_RESULT: u64 = 200;

/// The maximum share of the remaining context budget for a result, in percent (AR-2).
pub const SHARE_PERCENT: u64 = 40;

/// Estimates the tokens of a result with this many findings: `findings × 300 + 200` (AR-2).
///
/// ```
/// assert_eq!(endmark_findings::estimate_tokens(12), 3_800);
/// ```
pub fn estimate_tokens(findings: u64) -> u64 {
    findings.saturating_mul(TOKENS_PER_FINDING).saturating_add(TOKENS_PER_RESULT)
}

/// Whether this many tokens exceed 40 % of the remaining budget. Exactly 40 % does not (AR-2).
///
/// ```
/// use endmark_findings::exceeds_budget_share;
///
/// assert!(!exceeds_budget_share(3_800, 9_500));
/// assert!(exceeds_budget_share(3_800, 9_499));
/// ```
pub fn exceeds_budget_share(tokens: u64, budget_left: u64) -> bool {
    u128::from(tokens) * 100 > u128::from(budget_left) * u128::from(SHARE_PERCENT)
}

/// The size of results before and after compression, in tokens (AR-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Receipt {
    /// The remaining context tokens.
    pub budget_left: u64,
    /// The maximum size of the results: 40 % of `budget_left`, rounded down.
    pub limit_tokens: u64,
    /// The number of findings before compression.
    pub findings_before: u64,
    /// The estimate for `findings_before`: findings × 300 + 200.
    pub estimated_tokens_before: u64,
    /// Whether that estimate exceeded 40 % of the budget, so that all three compressions were applied.
    pub compressed: bool,
    /// The number of findings after merging.
    pub findings: u64,
    /// The estimate for `findings`.
    pub estimated_tokens: u64,
    /// The number of findings that were merged into another one with the same weakness and file.
    pub joined: u64,
    /// The parts that the compressions removed.
    pub dropped: DroppedParts,
}

/// The parts that the compressions removed, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DroppedParts {
    /// Titles of merged findings, with their severities.
    pub titles: u64,
    /// Distinct lines of evidence.
    pub evidence_lines: u64,
    /// Distinct steps of flows.
    pub flow_steps: u64,
}

impl DroppedParts {
    /// Counts the parts of the group that are missing in the merged finding.
    fn add(&mut self, group: &[&Finding], merged: &Finding, keeps_titles: bool) {
        fn lines(finding: &Finding) -> impl Iterator<Item = &str> {
            let lines = finding.evidence.iter().flat_map(Evidence::lines).map(str::trim);
            lines.filter(|line| !line.is_empty())
        }
        fn steps(finding: &Finding) -> impl Iterator<Item = &str> {
            let flow = finding.flow.as_deref().unwrap_or_default();
            flow.split(['→', ';'])
                .flat_map(|part| part.split("->"))
                .map(str::trim)
                .filter(|step| !step.is_empty())
        }
        fn count_lost<'f>(all: impl Iterator<Item = &'f str>, kept: impl Iterator<Item = &'f str>) -> u64 {
            let kept: HashSet<&str> = kept.collect();
            all.filter(|text| !kept.contains(text)).collect::<HashSet<_>>().len() as u64
        }
        self.evidence_lines += count_lost(group.iter().copied().flat_map(lines), lines(merged));
        self.flow_steps += count_lost(group.iter().copied().flat_map(steps), steps(merged));
        self.titles += if keeps_titles { 0 } else { other_titles(group, merged).len() as u64 };
    }
}

impl Receipt {
    /// Returns the estimate for results with this many findings, before any compression.
    pub fn estimate(findings: u64, budget_left: u64) -> Self {
        let estimated_before = estimate_tokens(findings);
        Self {
            budget_left,
            limit_tokens: u64::try_from(u128::from(budget_left) * u128::from(SHARE_PERCENT) / 100)
                .unwrap_or(u64::MAX),
            findings_before: findings,
            estimated_tokens_before: estimated_before,
            compressed: exceeds_budget_share(estimated_before, budget_left),
            findings,
            estimated_tokens: estimated_before,
            joined: 0,
            dropped: DroppedParts::default(),
        }
    }

    /// Whether a text of this many tokens fits into the share.
    pub fn fits(&self, tokens: u64) -> bool {
        !exceeds_budget_share(tokens, self.budget_left)
    }

    /// Adds the measured tokens and the tokenizer's name. `tokens` is `None` if there is only an estimate.
    pub fn with_measurement(self, tokens: Option<u64>, tokenizer: &'static str) -> MeasuredReceipt {
        let fits = tokens.map_or(!self.compressed, |tokens| self.fits(tokens));
        MeasuredReceipt { receipt: self, tokens, tokenizer, fits }
    }
}

/// A receipt with the measured tokens of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredReceipt {
    /// The estimate.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// The measured tokens of the draft; null without a draft.
    pub tokens: Option<u64>,
    /// The tokenizer that counted them.
    pub tokenizer: &'static str,
    /// Whether the draft, or without one the estimate, uses at most 40 % of the budget.
    pub fits: bool,
}

/// The reason why results cannot be rewritten: the new text would look complete, but is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteRefusal {
    /// A result is cut at this position.
    Truncated(Position),
    /// Text looks like a finding but cannot be parsed. It may also follow the end marker.
    Unread {
        /// The number of such places in a result.
        count: u32,
        /// The position of the first one.
        first: Option<Position>,
    },
}

impl RewriteRefusal {
    /// Returns why the results of this text cannot be rewritten, or `None` if they can.
    pub fn check(transcript: &Transcript) -> Option<Self> {
        let results = &transcript.results;
        if let Some(cut) = results.iter().find(|result| !result.cut.is_whole()) {
            return Some(Self::Truncated(cut.ends));
        }
        let count = results.iter().map(|result| result.unread).find(|unread| *unread > 0)?;
        let first = transcript.remarks.iter().find(|remark| remark.kind == RemarkKind::UnreadFinding);
        Some(Self::Unread { count, first: first.map(|remark| remark.position) })
    }

    /// Returns the machine-readable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Truncated(_) => "truncated",
            Self::Unread { .. } => "unread_findings",
        }
    }
}

impl fmt::Display for RewriteRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(at) => {
                write!(formatter, "the result is cut at {at}, and would look complete if it were rewritten")
            }
            Self::Unread { count, first } => {
                let place = first.map_or(String::new(), |first| format!(", the first at {first}"));
                write!(
                    formatter,
                    "{count} of its findings cannot be read{place}, and would be lost if it were rewritten"
                )
            }
        }
    }
}

/// Results that were rewritten, and compressed where needed (AR-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedResults {
    /// The size before and after compression, in tokens.
    pub receipt: Receipt,
    /// The results in the canonical form.
    pub text: String,
    /// The token count of the text.
    pub tokens: u64,
    /// The findings of all results.
    pub findings: Vec<Finding>,
}

/// Rewrites complete results, and compresses their findings if the estimate exceeds the share of the remaining budget
/// (AR-2). `count` returns the tokens of a text. If the compressed text still does not fit, merged findings keep only
/// one title and one line of evidence instead of one each.
pub fn fit<'r>(
    results: impl IntoIterator<Item = &'r AgentResult>,
    budget_left: u64,
    count: impl Fn(&str) -> u64,
) -> FittedResults {
    let results: Vec<&AgentResult> = results.into_iter().collect();
    let before = results.iter().map(|result| result.findings.len() as u64).sum();
    let receipt = Receipt::estimate(before, budget_left);
    let rewrite = |compression: Option<Compression>| {
        let mut fitted = FittedResults { receipt, text: String::new(), tokens: 0, findings: Vec::new() };
        for result in &results {
            let findings: Vec<Finding> = result.findings.iter().map(|read| read.finding.clone()).collect();
            let findings = match compression {
                Some(compression) => compress_if_needed(&findings, compression, &mut fitted.receipt.dropped),
                None => findings,
            };
            let writing = WriteParameters {
                agent_id: result.agent_id.as_deref(),
                dimensions: &result.dimensions,
                // Declared findings that are missing remain a shortfall.
                declared_findings: result.declared_findings.map(|declared| {
                    findings.len() + (declared as usize).saturating_sub(result.findings.len())
                }),
                other: &result.other,
                is_whole: true,
            };
            fitted.text.push_str(&writing.text(&findings));
            fitted.findings.extend(findings);
        }
        let remaining = fitted.findings.len() as u64;
        fitted.receipt.findings = remaining;
        fitted.receipt.estimated_tokens = estimate_tokens(remaining);
        fitted.receipt.joined = before - remaining;
        fitted.tokens = count(&fitted.text);
        fitted
    };
    if !receipt.compressed {
        return rewrite(None);
    }
    let fitted = rewrite(Some(Compression::PerFinding));
    if receipt.fits(fitted.tokens) { fitted } else { rewrite(Some(Compression::PerGroup)) }
}

/// What is kept of findings that are merged into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    /// The title and the most critical line of each finding.
    PerFinding,
    /// The title of the worst finding and the most critical line of all.
    PerGroup,
}

/// Applies all three compressions to the findings of one result (AR-2). Evidence is shortened to its most critical
/// line. Findings with the same CWE and file are merged into one with a range of lines. The flow of findings below
/// High becomes `Source → Sink`. A finding that lacks a required field is not merged with others.
pub fn compress(findings: &[Finding]) -> Vec<Finding> {
    compress_if_needed(findings, Compression::PerFinding, &mut DroppedParts::default())
}

fn compress_if_needed(
    findings: &[Finding],
    compression: Compression,
    dropped: &mut DroppedParts,
) -> Vec<Finding> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    let mut known: HashMap<(String, &str), usize> = HashMap::new();
    for finding in findings {
        // Merging would hide an incomplete finding, although it must be audited again.
        let is_complete = finding.missing_fields().is_empty();
        let group = single_file(finding)
            .filter(|_| is_complete)
            .map(|file| (finding.cwe_text(), file))
            .filter(|(cwe, _)| !cwe.is_empty());
        if let Some(at) = group.as_ref().and_then(|group| known.get(group)) {
            groups[*at].push(finding);
        } else {
            if let Some(group) = group {
                known.insert(group, groups.len());
            }
            groups.push(vec![finding]);
        }
    }
    groups.iter().filter_map(|group| merge_group(group, compression, dropped)).collect()
}

/// Returns the file of a finding if its location names only one.
fn single_file(finding: &Finding) -> Option<&str> {
    let places = finding.location.as_ref()?.places();
    let file = &places.first()?.file;
    places.iter().all(|place| place.file == *file).then_some(file.as_str())
}

fn merge_group(group: &[&Finding], compression: Compression, dropped: &mut DroppedParts) -> Option<Finding> {
    // The worst finding represents the group; among equals the first.
    let worst = group
        .iter()
        .min_by_key(|finding| finding.severity.clone().map_or((1, None), |severity| (0, Some(severity))))?;
    let mut merged = (*worst).clone();
    let keeps_each = compression == Compression::PerFinding;
    let others = || group.iter().copied().filter(|finding| !std::ptr::eq(*finding, *worst));
    if group.len() > 1 {
        let all = |field: fn(&Finding) -> Option<&str>| {
            join_text(group.iter().filter_map(|finding| Some((field(finding)?, false))))
        };
        merged.location = merged_location(group);
        merged.source = all(|finding| finding.source.as_deref());
        merged.sink = all(|finding| finding.sink.as_deref());
        merged.flow = all(|finding| finding.flow.as_deref());
        merged.originally_truncated = group.iter().any(|finding| finding.originally_truncated);
        let in_order = std::iter::once(*worst).chain(others());
        merged.other = join_fields(in_order.flat_map(|finding| &finding.other).map(|field| (field, false)));
        if keeps_each {
            add_titles(&mut merged, &other_titles(group, worst));
        }
    }
    if merged.flow.is_some()
        && merged.severity.as_ref().is_some_and(Severity::is_below_high)
        && let (Some(source), Some(sink)) = merged.source_and_sink()
    {
        merged.flow = Some(format!("{source} → {sink}"));
    }
    let in_order = std::iter::once(*worst).chain(others());
    let evidence: Vec<&Evidence> = in_order.filter_map(|finding| finding.evidence.as_ref()).collect();
    let pieces = if keeps_each { evidence.chunks(1) } else { evidence.chunks(evidence.len().max(1)) };
    let lines = pieces.filter_map(|piece| Some((critical_line(piece, &merged)?, false)));
    merged.evidence = Evidence::from_lines(distinct_pieces(lines));
    dropped.add(group, &merged, keeps_each);
    Some(merged)
}

/// Returns the titles other than that of the worst finding, each with its severity if that differs.
fn other_titles(group: &[&Finding], worst: &Finding) -> Vec<String> {
    let mut known = HashSet::from([(worst.title.as_str(), &worst.severity)]);
    let others = group.iter().filter(|finding| !finding.title.is_empty());
    let others = others.filter(|finding| known.insert((finding.title.as_str(), &finding.severity)));
    let written = others.map(|finding| match &finding.severity {
        Some(severity) if finding.severity != worst.severity => {
            format!("{} ({})", finding.title, severity.name())
        }
        _ => finding.title.clone(),
    });
    written.collect()
}

/// Returns one location that covers the lines of all findings in the group.
fn merged_location(group: &[&Finding]) -> Option<Location> {
    let file = single_file(group.first()?)?.to_owned();
    let places = group.iter().filter_map(|finding| finding.location.as_ref()).flat_map(Location::places);
    let lines = places.filter_map(|place| place.lines).reduce(LineRange::union);
    Location::from_places(vec![FileLines { file, lines }])
}

/// Prefixes of comments and code fences, which are not code.
const NON_CODE_PREFIXES: [&str; 7] = ["#", "//", "/*", "*", "--", "```", "~~~"];

/// Returns the most critical line: the one that shares the most words with the sink. Among equals, code precedes
/// comments, then lines with more words of the source come first, then earlier lines.
fn critical_line<'a>(evidence: &[&'a Evidence], finding: &Finding) -> Option<&'a str> {
    let (source, sink) = finding.source_and_sink();
    let (source, sink) = (words(source.unwrap_or_default()), words(sink.unwrap_or_default()));
    let score = |line: &str| {
        let line_words = words(line);
        let shared = |others: &HashSet<&str>| line_words.intersection(others).count();
        let is_code = !NON_CODE_PREFIXES.iter().any(|ch| line.trim_start().starts_with(ch));
        let has_words = usize::from(!line_words.is_empty());
        (shared(&sink), usize::from(is_code), shared(&source), has_words)
    };
    let mut best = ((0, 0, 0, 0), "");
    for line in evidence.iter().flat_map(|evidence| evidence.lines()) {
        let found = score(line);
        if found > best.0 {
            best = (found, line);
        }
    }
    if best.1.is_empty() { evidence.first()?.lines().next() } else { Some(best.1) }
}

fn words(text: &str) -> HashSet<&str> {
    text.split(|character: char| !(character.is_alphanumeric() || character == '_'))
        .filter(|word| word.len() > 1)
        .collect()
}
