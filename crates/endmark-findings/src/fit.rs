//! Prevention: a result is estimated before it is written, and compressed where it would not fit. (AR-2)

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Serialize;

use super::finding::{Evidence, Finding, Severity};
use super::join::{add_titles, distinct, joined_fields, joined_text};
use super::location::{LineRange, Location, Place};
use super::transcript::{AgentResult, Position, RemarkKind, Transcript};
use super::write::Writing;

/// So many tokens are reckoned for a finding (AR-2).
pub const TOKENS_PER_FINDING: u64 = 300;

/// So many tokens are reckoned for a result besides its findings (AR-2).
pub const TOKENS_PER_RESULT: u64 = 200;

/// What a result may take of the context budget that is left, in percent (AR-2).
pub const SHARE_PERCENT: u64 = 40;

/// How many tokens so many findings will take: `findings × 300 + 200` (AR-2).
///
/// ```
/// assert_eq!(endmark_findings::estimated_tokens(12), 3_800);
/// ```
pub fn estimated_tokens(findings: u64) -> u64 {
    findings.saturating_mul(TOKENS_PER_FINDING).saturating_add(TOKENS_PER_RESULT)
}

/// Whether so many tokens are more than 40 % of what is left; exactly 40 % is not (AR-2).
///
/// ```
/// use endmark_findings::is_above_share;
///
/// assert!(!is_above_share(3_800, 9_500));
/// assert!(is_above_share(3_800, 9_499));
/// ```
pub fn is_above_share(tokens: u64, budget_left: u64) -> bool {
    u128::from(tokens) * 100 > u128::from(budget_left) * u128::from(SHARE_PERCENT)
}

/// What a fitting came to, in tokens (AR-2). Commands and packages answer it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Receipt {
    /// The tokens of context that are left.
    pub budget_left: u64,
    /// 40 % of them, rounded down.
    pub limit_tokens: u64,
    /// How many findings there were.
    pub findings_before: u64,
    /// The formula on that number: findings × 300 + 200.
    pub estimated_tokens_before: u64,
    /// Whether that was above 40 % of the budget, so that all three compressions were applied.
    pub compressed: bool,
    /// How many findings are left after merging.
    pub findings: u64,
    /// The formula on that number.
    pub estimated_tokens: u64,
    /// How many findings were joined with another one of the same weakness and file.
    pub joined: u64,
    /// What the compressions left out.
    pub dropped: Dropped,
}

/// What the compressions of a fitting left out, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dropped {
    /// Titles of joined findings, with their severities.
    pub titles: u64,
    /// Different lines of evidence.
    pub evidence_lines: u64,
    /// Different steps of flows.
    pub flow_steps: u64,
}

impl Dropped {
    /// Counts what a merged finding does not have of those it was made from.
    fn add(&mut self, group: &[&Finding], merged: &Finding, has_titles: bool) {
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
        fn lost<'f>(all: impl Iterator<Item = &'f str>, kept: impl Iterator<Item = &'f str>) -> u64 {
            let kept: HashSet<&str> = kept.collect();
            all.filter(|text| !kept.contains(text)).collect::<HashSet<_>>().len() as u64
        }
        self.evidence_lines += lost(group.iter().copied().flat_map(lines), lines(merged));
        self.flow_steps += lost(group.iter().copied().flat_map(steps), steps(merged));
        self.titles += if has_titles { 0 } else { other_titles(group, merged).len() as u64 };
    }
}

impl Receipt {
    /// Estimates so many findings; what compression would merge is not known yet.
    pub fn estimated(findings: u64, budget_left: u64) -> Self {
        let estimated_before = estimated_tokens(findings);
        Self {
            budget_left,
            limit_tokens: u64::try_from(u128::from(budget_left) * u128::from(SHARE_PERCENT) / 100)
                .unwrap_or(u64::MAX),
            findings_before: findings,
            estimated_tokens_before: estimated_before,
            compressed: is_above_share(estimated_before, budget_left),
            findings,
            estimated_tokens: estimated_before,
            joined: 0,
            dropped: Dropped::default(),
        }
    }

    /// Whether a text of so many tokens is not above the share.
    pub fn fits(&self, tokens: u64) -> bool {
        !is_above_share(tokens, self.budget_left)
    }

    /// The receipt with the tokens of the text, counted by this tokenizer; `None` for an estimate alone.
    pub fn measured(self, tokens: Option<u64>, tokenizer: &'static str) -> MeasuredReceipt {
        let fits = tokens.map_or(!self.compressed, |tokens| self.fits(tokens));
        MeasuredReceipt { receipt: self, tokens, tokenizer, fits }
    }
}

/// A receipt with the tokens that the text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredReceipt {
    /// The estimate.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// The tokens of the text, counted; null without a draft.
    pub tokens: Option<u64>,
    /// What counted them.
    pub tokenizer: &'static str,
    /// Whether the text is at most 40 % of the budget; without a draft, whether the estimate is.
    pub fits: bool,
}

/// Why results cannot be written again: they would look whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFitted {
    /// A result is cut here.
    Truncated(Position),
    /// Something looks like a finding, also after the end marker, and cannot be read as one.
    Unread {
        /// How many of these a result has.
        count: u32,
        /// Where the first one is.
        first: Option<Position>,
    },
}

impl NotFitted {
    /// Returns why the results of this text cannot be written again, if they cannot.
    pub fn of(transcript: &Transcript) -> Option<Self> {
        let results = &transcript.results;
        if let Some(cut) = results.iter().find(|result| !result.cut.is_whole()) {
            return Some(Self::Truncated(cut.ends));
        }
        let count = results.iter().map(|result| result.unread).find(|unread| *unread > 0)?;
        let first = transcript.remarks.iter().find(|remark| remark.kind == RemarkKind::UnreadFinding);
        Some(Self::Unread { count, first: first.map(|remark| remark.position) })
    }

    /// The word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Truncated(_) => "truncated",
            Self::Unread { .. } => "unread_findings",
        }
    }
}

impl fmt::Display for NotFitted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(at) => {
                write!(formatter, "the result is cut at {at}: written again, it would look whole")
            }
            Self::Unread { count, first } => {
                let place = first.map_or(String::new(), |first| format!(", the first at {first}"));
                write!(
                    formatter,
                    "{count} of its findings cannot be read{place}: written again, it would be without them"
                )
            }
        }
    }
}

/// Results that were written again, compressed where that was needed (AR-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitted {
    /// What it came to.
    pub receipt: Receipt,
    /// The results in the canonical form.
    pub text: String,
    /// The tokens of the text.
    pub tokens: u64,
    /// Their findings.
    pub findings: Vec<Finding>,
}

/// Writes whole results again, and compresses their findings where the estimate is above the share of what is left (AR-2).
/// Joined findings keep their titles and a line of evidence each, unless the text does not fit then by `count`.
pub fn fitted<'r>(
    results: impl IntoIterator<Item = &'r AgentResult>,
    budget_left: u64,
    count: impl Fn(&str) -> u64,
) -> Fitted {
    let results: Vec<&AgentResult> = results.into_iter().collect();
    let before = results.iter().map(|result| result.findings.len() as u64).sum();
    let receipt = Receipt::estimated(before, budget_left);
    let of = |compression: Option<Compression>| {
        let mut fitted = Fitted { receipt, text: String::new(), tokens: 0, findings: Vec::new() };
        for result in &results {
            let findings: Vec<Finding> = result.findings.iter().map(|read| read.finding.clone()).collect();
            let findings = match compression {
                Some(compression) => compressed(&findings, compression, &mut fitted.receipt.dropped),
                None => findings,
            };
            let writing = Writing {
                agent_id: result.agent_id.as_deref(),
                dimensions: &result.dimensions,
                // What was declared and is not there stays a shortfall.
                declared_findings: result.declared_findings.map(|declared| {
                    findings.len() + (declared as usize).saturating_sub(result.findings.len())
                }),
                other: &result.other,
                is_whole: true,
            };
            fitted.text.push_str(&writing.text(&findings));
            fitted.findings.extend(findings);
        }
        let left = fitted.findings.len() as u64;
        fitted.receipt.findings = left;
        fitted.receipt.estimated_tokens = estimated_tokens(left);
        fitted.receipt.joined = before - left;
        fitted.tokens = count(&fitted.text);
        fitted
    };
    if !receipt.compressed {
        return of(None);
    }
    let fitted = of(Some(Compression::KeepsEach));
    if receipt.fits(fitted.tokens) { fitted } else { of(Some(Compression::KeepsOne)) }
}

/// What is left of the findings that are merged into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    /// The title and the most critical line of each.
    KeepsEach,
    /// The title of the worst, and the most critical line of all.
    KeepsOne,
}

/// Applies all three compressions to the findings of one result (AR-2): evidence is shortened to its one most critical
/// line, findings with the same CWE and file are merged into one with a range of lines, and the flow of findings below
/// High becomes `Source → Sink`. One that lacks a needed field is merged with no other.
pub fn compress(findings: &[Finding]) -> Vec<Finding> {
    compressed(findings, Compression::KeepsEach, &mut Dropped::default())
}

fn compressed(findings: &[Finding], compression: Compression, dropped: &mut Dropped) -> Vec<Finding> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    let mut known: HashMap<(String, &str), usize> = HashMap::new();
    for finding in findings {
        // What lacks something would be gone in another one: somebody has to look at it again.
        let is_complete = finding.missing().is_empty();
        let group = one_file(finding)
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
    groups.iter().filter_map(|group| merged(group, compression, dropped)).collect()
}

/// The only file that a finding is in.
fn one_file(finding: &Finding) -> Option<&str> {
    let places = finding.location.as_ref()?.places();
    let file = &places.first()?.file;
    places.iter().all(|place| place.file == *file).then_some(file.as_str())
}

fn merged(group: &[&Finding], compression: Compression, dropped: &mut Dropped) -> Option<Finding> {
    // The worst of them speaks for all; among equals the first.
    let worst = group
        .iter()
        .min_by_key(|finding| finding.severity.clone().map_or((1, None), |severity| (0, Some(severity))))?;
    let mut merged = (*worst).clone();
    let keeps_each = compression == Compression::KeepsEach;
    let others = || group.iter().copied().filter(|finding| !std::ptr::eq(*finding, *worst));
    if group.len() > 1 {
        let all = |field: fn(&Finding) -> Option<&str>| {
            joined_text(group.iter().filter_map(|finding| Some((field(finding)?, false))))
        };
        merged.location = range(group);
        merged.source = all(|finding| finding.source.as_deref());
        merged.sink = all(|finding| finding.sink.as_deref());
        merged.flow = all(|finding| finding.flow.as_deref());
        merged.originally_truncated = group.iter().any(|finding| finding.originally_truncated);
        let in_order = std::iter::once(*worst).chain(others());
        merged.other = joined_fields(in_order.flat_map(|finding| &finding.other).map(|field| (field, false)));
        if keeps_each {
            add_titles(&mut merged, &other_titles(group, worst));
        }
    }
    if merged.flow.is_some()
        && merged.severity.as_ref().is_some_and(Severity::is_below_high)
        && let (Some(source), Some(sink)) = merged.ends()
    {
        merged.flow = Some(format!("{source} → {sink}"));
    }
    let in_order = std::iter::once(*worst).chain(others());
    let evidence: Vec<&Evidence> = in_order.filter_map(|finding| finding.evidence.as_ref()).collect();
    let pieces = if keeps_each { evidence.chunks(1) } else { evidence.chunks(evidence.len().max(1)) };
    let lines = pieces.filter_map(|piece| Some((critical_line(piece, &merged)?, false)));
    merged.evidence = Evidence::of_lines(distinct(lines));
    dropped.add(group, &merged, keeps_each);
    Some(merged)
}

/// Other titles than that of the finding that speaks for all, with other severities.
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

/// One place from the first line that is named to the last.
fn range(group: &[&Finding]) -> Option<Location> {
    let file = one_file(group.first()?)?.to_owned();
    let places = group.iter().filter_map(|finding| finding.location.as_ref()).flat_map(Location::places);
    let lines = places.filter_map(|place| place.lines).reduce(LineRange::with);
    Location::of_places(vec![Place { file, lines }])
}

/// What a line begins with that is no code.
const COMMENTS: [&str; 7] = ["#", "//", "/*", "*", "--", "```", "~~~"];

/// The line that says most: the sink's, which shares most words with it; among these code, then the source's; the first of equals.
fn critical_line<'a>(evidence: &[&'a Evidence], finding: &Finding) -> Option<&'a str> {
    let (source, sink) = finding.ends();
    let (source, sink) = (words(source.unwrap_or_default()), words(sink.unwrap_or_default()));
    let score = |line: &str| {
        let of_line = words(line);
        let shared = |of: &HashSet<&str>| of_line.intersection(of).count();
        // A comment speaks of the code, and is not it.
        let is_code = !COMMENTS.iter().any(|sign| line.trim_start().starts_with(sign));
        let has_words = usize::from(!of_line.is_empty());
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
