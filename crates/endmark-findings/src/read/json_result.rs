//! A result that is JSON, or has its findings as JSON. (AR-1)

use crate::expected::Numbers;
use crate::stand_in::is_nothing;
use crate::{AgentResult, Cut, Field, FindingId, Position, ReadFinding, RemarkKind};

use super::Remarks;
use super::checkpoint::list;
use super::draft::{Draft, Finished};
use super::json::{Node, Value, parse};
use super::lines::Line;
use super::names::{Key, folded};
use super::number::number;
use words::{evidence, location, text};

mod words;

/// A value in which results, or findings alone, were found.
pub(super) struct Found {
    pub(super) results: Vec<AgentResult>,
    /// How many of its findings say nothing but what stands for something else.
    pub(super) templates: usize,
    /// Behind it, in bytes.
    pub(super) ends: usize,
}

/// So deep in a value a result is looked for: `{"result": {"agent_result": {…}}}`.
const DEEPEST: usize = 3;

/// Where JSON stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// Outside of any result.
    Nothing,
    /// In a result, before its findings.
    Header,
    /// Behind a finding, which it may be evidence of: what has no severity is not taken for another one.
    Findings,
}

/// JSON in which no result is.
pub(super) struct Missed {
    /// Up to where it was looked at, in bytes.
    pub(super) ends: usize,
    /// The numbers of the findings that it has in it all the same: in a bare list, or alone.
    pub(super) strays: Vec<Option<u32>>,
}

/// The results in the JSON that begins at this byte.
pub(super) fn results_at(
    text: &[u8],
    lines: &[Line<'_>],
    at: usize,
    within: Within,
    remarks: &mut Remarks,
) -> Result<Found, Missed> {
    let is_in_block = within != Within::Nothing;
    let parsed = parse(text, at).ok_or(Missed { ends: at + 1, strays: Vec::new() })?;
    let mut found = Vec::new();
    collect(&parsed.root, DEEPEST, is_in_block, &mut found);
    if within == Within::Findings {
        found.retain(|node| entries(findings_of(node).unwrap_or(node)).iter().any(|(_, item)| is_told(item)));
    }
    if found.is_empty() {
        return Err(Missed { ends: parsed.ends, strays: strays(&parsed.root) });
    }
    let ends = position(lines, parsed.ends);
    if !parsed.root.is_whole() {
        let problem = parsed.problem.unwrap_or("it ends in the middle");
        remarks.add(RemarkKind::BrokenJson, problem, ends);
    }
    for at in parsed.halves {
        let escape = text.get(at..at + 6).map(String::from_utf8_lossy).unwrap_or_default();
        remarks.add(RemarkKind::HalfCharacter, &escape, position(lines, at));
    }
    let (answers, found): (Vec<&Node>, Vec<&Node>) = found.into_iter().partition(|node| is_answer(node));
    let begins = position(lines, parsed.root.begins);
    let answer = (!answers.is_empty()).then(|| {
        remarks.add(RemarkKind::OwnAnswer, "{", begins);
        // What it says of a cut would be lost.
        AgentResult { begins: Some(begins), unread: u32::from(!is_in_block), ..AgentResult::nothing(ends) }
    });
    let mut templates = 0;
    let found = found.into_iter().map(|node| result(node, lines, ends, is_in_block, &mut templates, remarks));
    let results = answer.into_iter().chain(found).collect();
    Ok(Found { results, templates, ends: parsed.ends })
}

/// The numbers of findings that stand in no result.
fn strays(node: &Node) -> Vec<Option<u32>> {
    let alone = std::slice::from_ref(node);
    let told = node.items().unwrap_or(alone).iter().filter(|item| is_told(item));
    let id = |item: &Node| {
        let named = item.members().iter().find(|(name, _)| Key::named(name) == Some(Key::Id));
        named.and_then(|(_, value)| FindingId::named(&text(value, "")?)?.number())
    };
    told.map(id).collect()
}

/// The place of a byte.
pub(super) fn position(lines: &[Line<'_>], byte: usize) -> Position {
    let at = lines.partition_point(|line| line.byte <= byte);
    lines.get(at.saturating_sub(1)).map_or(Position { line: 1, column: 1, byte: 0 }, |line| {
        let within = (byte - line.byte).min(line.text.len());
        Position { byte, ..line.position(within) }
    })
}

/// The objects that are results, and in a result the lists of findings.
fn collect<'a>(node: &'a Node, depth: usize, is_in_block: bool, found: &mut Vec<&'a Node>) {
    let is_of_lines =
        |node: &Node| is_findings(node) || is_finding(node) || is_header(node) || is_begun(node);
    if findings_of(node).is_some() || is_in_block && is_of_lines(node) {
        found.push(node);
    } else if depth > 0 {
        let items = node.items().unwrap_or_default().iter();
        for inner in items.chain(node.members().iter().map(|(_, value)| value)) {
            collect(inner, depth - 1, is_in_block, found);
        }
    }
}

/// Whether an object with findings is of an answer of `endmark findings`: a report with its disclosure, what was checked, or
/// what was made to fit. What it says of findings that are missing stands elsewhere in it than in a result.
fn is_answer(node: &Node) -> bool {
    let is_reported = |(_, item): (Option<&str>, &Node)| {
        inner(item, "finding").is_some_and(|finding| !finding.members().is_empty())
            && ["reported_by", "places", "missing"].into_iter().any(|name| inner(item, name).is_some())
    };
    let has_within = |name, wanted| inner(node, name).is_some_and(|value| inner(value, wanted).is_some());
    let is_checked = inner(node, "cut").is_some() && inner(node, "lost").is_some();
    is_checked
        || has_within("disclosure", "unrecovered")
        || has_within("receipt", "limit_tokens")
        || entries(findings_of(node).unwrap_or(node)).into_iter().any(is_reported)
}

/// What an object has under a name, spelled exactly so.
fn inner<'a>(node: &'a Node, wanted: &str) -> Option<&'a Node> {
    node.members().iter().find(|(name, _)| name == wanted).map(|(_, value)| value)
}

/// The findings of an object that is a result.
fn findings_of(node: &Node) -> Option<&Node> {
    let named = |wanted: &'static [&'static str]| {
        let members = node.members().iter();
        members.filter(move |(name, _)| wanted.contains(&folded(name).as_ref())).map(|(_, value)| value)
    };
    named(&[FINDINGS])
        .find(|list| list.items().is_some() || is_finding(list) || is_by_name(list))
        .or_else(|| named(&OTHER_NAMES).find(|list| is_findings(list)))
}

/// The name of the list of findings.
const FINDINGS: &str = "findings";

/// What models call it besides.
const OTHER_NAMES: [&str; 3] = ["vulnerabilities", "issues", "results"];

/// Whether an object has findings under their ids, or lists of them under other names; the last one may be cut before much is
/// said in it.
fn is_by_name(node: &Node) -> bool {
    let has_findings = |value: &Node| is_finding(value) || is_findings(value);
    let may_have_them = |value: &Node| has_findings(value) || !value.is_whole();
    let mut values = node.members().iter().map(|(_, value)| value);
    matches!(node.value, Value::Object(_)) && (values.clone().any(has_findings) || values.all(may_have_them))
}

/// What a list of findings has in it, or an object that is by name, or one finding; each with the id that it stands under.
fn entries(node: &Node) -> Vec<(Option<&str>, &Node)> {
    if is_header(node) {
        return Vec::new();
    }
    if let Some(items) = node.items() {
        return items.iter().map(|item| (None, item)).collect();
    }
    if is_finding(node) || !is_by_name(node) {
        return vec![(None, node)];
    }
    let mut found = Vec::new();
    for (name, value) in node.members() {
        match (&value.value, value.items()) {
            (_, Some(items)) => found.extend(items.iter().map(|item| (None, item))),
            // How many there are, and the like.
            (Value::Null | Value::Bool(_) | Value::Number(_), None) => {}
            _ => found.push((Some(name.as_str()), value)),
        }
    }
    found
}

/// Whether a list is one of findings, or an object has them under ids.
fn is_findings(node: &Node) -> bool {
    let members = node.members();
    let is_under_id = |(name, value): &(String, Node)| FindingId::read(name).is_some() && is_finding(value);
    if members.iter().any(is_under_id) {
        return members.iter().all(|member| is_under_id(member) || !member.1.is_whole());
    }
    // The last one may be cut before much is said in it.
    node.items().is_some_and(|items| {
        items.iter().any(is_finding) && items.iter().all(|item| is_finding(item) || !item.is_whole())
    })
}

/// Whether an object says of a finding what there is to say of one.
fn is_finding(node: &Node) -> bool {
    let keys = node.members().iter().filter_map(|(name, _)| Key::named(name));
    keys.filter(|key| key.is_of_finding()).count() >= 2
}

/// Whether an object is the first line of a result in JSON Lines: it says whose the result is, and nothing of a finding.
fn is_header(node: &Node) -> bool {
    let mut keys = node.members().iter().filter_map(|(name, _)| Key::named(name)).peekable();
    keys.peek().is_some_and(|first| first.is_of_header()) && keys.all(Key::is_of_header)
}

/// Whether an object begins as a finding does, and is cut before much is said in it.
fn is_begun(node: &Node) -> bool {
    let first = node.members().first().filter(|_| !node.is_whole());
    first.is_some_and(|(name, id)| Key::named(name) == Some(Key::Id) && id.is_whole())
}

/// Whether an object says how bad a finding is, and most of what there is to say.
fn is_told(node: &Node) -> bool {
    let keys: Vec<Key> = node.members().iter().filter_map(|(name, _)| Key::named(name)).collect();
    keys.contains(&Key::Of(Field::Severity)) && keys.iter().filter(|key| key.is_of_finding()).count() >= 4
}

fn result(
    node: &Node,
    lines: &[Line<'_>],
    ends: Position,
    is_in_block: bool,
    templates: &mut usize,
    remarks: &mut Remarks,
) -> AgentResult {
    let begins = position(lines, node.begins);
    let mut agent_id = None;
    let mut dimensions = Vec::new();
    let mut declared_findings = None;
    let mut is_truncated = !node.is_whole();
    let mut first = First::default();
    let mut unread = unread_lists(node, lines, remarks);
    let told = findings_of(node);
    let is_beside_findings =
        |value: &Node| told.is_some_and(|told| !std::ptr::eq(told, value)) && !is_findings(value);
    for (name, value) in node.members() {
        match Key::named(name) {
            Some(key) if key.is_of_header() && value.is_whole() => {
                if !first.takes(key, name, value, lines, remarks) {
                    continue;
                }
                match key {
                    Key::AgentId => {
                        agent_id =
                            text(value, "").filter(|id| !id.trim().is_empty() && !is_nothing(id.trim()));
                    }
                    Key::Dimensions => dimensions = list(&text(value, ",").unwrap_or_default()),
                    Key::Declared => {
                        declared_findings = text(value, "").and_then(|said| {
                            number(said.trim()).and_then(|(number, rest)| rest.is_empty().then_some(number))
                        });
                        if declared_findings.is_none() && !matches!(value.value, Value::Null) {
                            remarks.add(RemarkKind::NoNumber, name, position(lines, value.begins));
                        }
                    }
                    _ => {}
                }
            }
            _ if folded(name) == "truncated" => is_truncated |= matches!(value.value, Value::Bool(true)),
            None if is_beside_findings(value) => unknown(name, value, lines, remarks),
            _ => {}
        }
    }
    let of_result =
        if told.is_none() && is_header(node) { Vec::new() } else { entries(told.unwrap_or(node)) };
    let mut findings: Vec<ReadFinding> = Vec::new();
    for (name, item) in of_result {
        let place = position(lines, item.begins);
        if !item.members().iter().any(|(_, value)| value.is_whole()) {
            if item.is_whole() {
                unread += 1;
                remarks.add(RemarkKind::UnreadFinding, "an item of `findings`", place);
            }
            continue;
        }
        let next = u32::try_from(findings.len() + 1).unwrap_or(u32::MAX);
        let found = finding(item, name, next, lines, remarks);
        *templates += usize::from(found.is_none());
        findings.extend(found);
    }
    let numbers = numbers_of(&findings);
    let cut = match (is_truncated, &agent_id) {
        (false, _) => Cut::Whole,
        // Between markers, the header says whose it is.
        (true, agent) if agent.is_some() || is_in_block => Cut::Mild,
        (true, _) => Cut::Severe,
    };
    if cut == Cut::Whole && agent_id.is_none() && !is_in_block {
        remarks.add(RemarkKind::NoAgent, "{", begins);
    }
    let discarded = if cut == Cut::Severe { numbers.count } else { 0 };
    AgentResult {
        agent_id,
        dimensions,
        declared_findings,
        findings: if cut == Cut::Severe { Vec::new() } else { findings },
        discarded,
        unread,
        cut,
        begins: Some(begins),
        ends,
        checkpoint: None,
        numbers,
    }
}

/// The numbers in the ids of findings.
fn numbers_of(findings: &[ReadFinding]) -> Numbers {
    let mut numbers = Numbers::default();
    for read in findings {
        numbers.add(read.finding.id.number());
    }
    numbers
}

/// How many lists of findings there are beside the one that is read.
fn unread_lists(node: &Node, lines: &[Line<'_>], remarks: &mut Remarks) -> u32 {
    let mut unread = 0;
    if let Some(list) = findings_of(node) {
        let is_more = |(name, other): &&(String, Node)| {
            !std::ptr::eq(other, list)
                && if folded(name) == FINDINGS {
                    other.items().is_some_and(|items| !items.is_empty())
                } else {
                    OTHER_NAMES.contains(&folded(name).as_ref()) && is_findings(other)
                }
        };
        for (name, more) in node.members().iter().filter(is_more) {
            unread += 1;
            remarks.add(RemarkKind::UnreadFinding, name, position(lines, more.begins));
        }
    }
    unread
}

/// What was said first under each name: that counts, as it does where a cut leaves no more.
#[derive(Default)]
struct First(Vec<(Key, String)>);

impl First {
    /// Whether nothing has been said under this name before; what says otherwise is remarked.
    fn takes(
        &mut self,
        key: Key,
        name: &str,
        value: &Node,
        lines: &[Line<'_>],
        remarks: &mut Remarks,
    ) -> bool {
        let known = self.0.iter().find(|(known, _)| *known == key).map(|(_, said)| said);
        let is_new = known.is_none();
        if let Some(said) = text(value, ", ").filter(|_| value.is_whole()) {
            // A place may have several: a class, and a method of it.
            if key != Key::Part && known.is_some_and(|known| *known != said) {
                let member = format!("{name}: {said}");
                remarks.add(RemarkKind::RepeatedField, &member, position(lines, value.begins));
            } else if is_new {
                self.0.push((key, said));
            }
        }
        is_new
    }
}

/// The finding that an object says; `name` is what it stands under, `next` its number where nothing says its id.
fn finding(
    node: &Node,
    name: Option<&str>,
    next: u32,
    lines: &[Line<'_>],
    remarks: &mut Remarks,
) -> Option<ReadFinding> {
    let mut members: Vec<(Key, &Node)> = Vec::new();
    let mut first = First::default();
    for (name, value) in node.members() {
        if let Some(key) = Key::named(name) {
            first.takes(key, name, value, lines, remarks);
            members.push((key, value));
            continue;
        }
        // `"taint": {"source": …, "sink": …}`
        let inner = value.members().iter().filter_map(|(name, value)| Some((Key::named(name)?, name, value)));
        let before = members.len();
        for (key, name, value) in inner.filter(|(key, ..)| key.is_of_finding()) {
            first.takes(key, name, value, lines, remarks);
            members.push((key, value));
        }
        if members.len() == before {
            unknown(name, value, lines, remarks);
        }
    }
    let said = |wanted: Key| {
        let mut fitting = members.iter().filter(|(key, value)| *key == wanted && value.is_whole());
        fitting.find_map(|(_, value)| text(value, " "))
    };
    let id = said(Key::Id).or_else(|| name.map(str::to_owned)).and_then(|id| FindingId::named(&id));
    let id = id.unwrap_or_else(|| FindingId::numbered(next));
    let is_taken = |key: Key| key.is_of_finding() || key == Key::Part;
    let title = said(Key::Title).unwrap_or_default();
    let mut draft = Draft::new(id, title.trim(), position(lines, node.begins));
    for (key, value) in &members {
        let place = position(lines, value.begins);
        match key {
            Key::Of(Field::Evidence) => {
                if let Some(text) = evidence(value).filter(|_| draft.is_new(*key)) {
                    draft.collect_text(&text);
                }
            }
            // What was cut in the middle is not there.
            _ if !value.is_whole() || !is_taken(*key) || !draft.is_new(*key) => {}
            Key::Of(Field::Location) => {
                if let Some(location) = location(value) {
                    draft.set(*key, &location, place);
                }
            }
            Key::Of(field) => {
                let between = if *field == Field::Flow { " -> " } else { ", " };
                if let Some(text) = text(value, between) {
                    draft.set(*key, &text, place);
                }
            }
            key => {
                let between = if *key == Key::Ends { " -> " } else { ", " };
                if let Some(text) = text(value, between) {
                    draft.set(*key, &text, place);
                }
            }
        }
    }
    match draft.finish(node.is_whole()) {
        Finished::Template(position) => {
            remarks.add(RemarkKind::Template, "{…}", position);
            None
        }
        Finished::Finding(finding, said) => {
            for (kind, text, position) in said {
                remarks.add(kind, &text, position);
            }
            Some(*finding)
        }
    }
}

/// Says that nothing is known under a name, where something is said there.
fn unknown(name: &str, value: &Node, lines: &[Line<'_>], remarks: &mut Remarks) {
    if text(value, " ").is_some_and(|said| !said.trim().is_empty()) {
        remarks.add(RemarkKind::UnknownField, name, position(lines, value.begins));
    }
}
