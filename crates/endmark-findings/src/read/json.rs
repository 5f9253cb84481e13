//! Parses a result in JSON: JSON Lines between the markers, or one object with a list of findings. (AR-1)

use endmark_text::detect::Detector;
use endmark_text::{CompleteError, Format, complete, replace_lone_surrogates};
use serde_json::{Map, Value};

use super::Remarks;
use super::block::Block;
use super::draft::{Draft, DraftOutcome};
use super::evidence::EvidenceCollector;
use super::key::Key;
use super::lines::Line;
use crate::{Field, FindingId, Position, RemarkKind};

/// JSON that has begun but may not be complete.
#[derive(Debug)]
pub(super) struct PendingJson {
    pub(super) start: Position,
    /// The byte offset of its first line.
    byte: usize,
    detector: Detector,
}

/// The effect of a line on the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonEffect {
    More,
    /// The JSON ends in this line.
    End,
    /// The line is not part of the JSON.
    Other,
}

impl PendingJson {
    /// Starts at a line that begins with an object or a list of objects.
    pub(super) fn new(line: &Line<'_>) -> Option<Self> {
        let text = line.text.trim();
        let list = text.strip_prefix('[').map(str::trim_start);
        let is_json =
            text.starts_with('{') || list.is_some_and(|list| list.is_empty() || list.starts_with('{'));
        let new = || Self { start: line.begins(), byte: line.byte, detector: Detector::for_strict_json() };
        is_json.then(new)
    }

    /// Processes a line of the text.
    pub(super) fn push(&mut self, text: &[u8], line: &Line<'_>) -> JsonEffect {
        let bytes = &text[line.byte..line.ends().byte];
        self.detector.push(bytes);
        let is_first = line.byte == self.byte;
        match (self.detector.is_malformed(), self.detector.is_whole()) {
            (true, _) if !is_first => JsonEffect::Other,
            (true, _) | (_, true) => JsonEffect::End,
            _ => {
                self.detector.push(b"\n");
                JsonEffect::More
            }
        }
    }

    /// Parses the JSON up to a byte offset of the text.
    pub(super) fn parse(&self, text: &[u8], ends: usize) -> Option<Parsed> {
        let text = &text[self.byte..ends];
        let (completed, problem) = match complete(text, &Format::Json) {
            Err(CompleteError::Malformed { index, reason }) => {
                (complete(&text[..index], &Format::Json), Some(reason))
            }
            completed => (completed, None),
        };
        let completed = completed.ok()?;
        // Parse before writing a pointer for each incomplete place: deeply nested input is rejected here, and would
        // need very many pointers.
        let value: Value = serde_json::from_str(&replace_lone_surrogates(&completed.text)).ok()?;
        let unfinished: Vec<String> = completed.unfinished().map(|place| place.pointer.to_owned()).collect();
        let is_cut = !unfinished.is_empty();
        let problem = problem.or_else(|| is_cut.then(|| "it ends in the middle".to_owned()));
        // If a name occurs twice, only the last value is kept.
        let twice = count_names(&completed.text) > count_members(&value);
        let problem = problem.or_else(|| twice.then(|| "a name stands twice".to_owned()));
        Some(Parsed { value, start: self.start, unfinished, problem })
    }
}

/// JSON that was parsed as received.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) value: Value,
    pub(super) start: Position,
    /// The pointers to values that are incomplete.
    unfinished: Vec<String>,
    /// The syntax problem, if the JSON is not valid as it is.
    pub(super) problem: Option<String>,
}

impl Parsed {
    /// Whether it is a result by itself.
    pub(super) fn is_result(&self) -> bool {
        findings(&self.value).is_some()
    }

    /// Whether it is a response of `endmark findings`, which reports missing findings in other fields.
    pub(super) fn is_answer(&self) -> bool {
        is_answer(&self.value)
    }

    /// Returns the ids of findings in it that belong to no result.
    pub(super) fn strays(&self) -> Vec<Option<u32>> {
        let objects = match &self.value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        };
        let objects = objects.into_iter().filter_map(Value::as_object).filter(|object| is_finding(object));
        objects.map(|object| FindingId::from_name(&text(object.get("id")?, "")?)?.number()).collect()
    }

    /// Whether it was cut: it is incomplete, or a field states so.
    pub(super) fn is_cut(&self) -> bool {
        let says_so = |(name, value): (&String, &Value)| {
            Key::from_name(name) == Some(Key::Truncated) && *value == Value::Bool(true)
        };
        self.problem.is_some() || self.value.as_object().is_some_and(|object| object.iter().any(says_so))
    }

    fn is_present(&self, pointer: &str) -> bool {
        !self.unfinished.iter().any(|place| place == pointer)
    }

    /// Adds its content to the result that it is part of, or that it is.
    pub(super) fn add_to(&self, block: &mut Block, remarks: &mut Remarks) {
        if let Some(problem) = &self.problem {
            remarks.add(RemarkKind::BrokenJson, problem, self.start);
        }
        if self.is_answer() {
            block.unread += 1;
            return remarks.add(RemarkKind::OwnAnswer, "{", self.start);
        }
        match &self.value {
            Value::Array(items) => self.items(items, "", block, remarks),
            Value::Object(object) if is_finding(object) || !is_header(object) => {
                self.item(&self.value, "", block, remarks);
            }
            Value::Object(object) => {
                for (name, value) in object {
                    let pointer = child("", name);
                    match Key::from_name(name) {
                        Some(Key::Findings) if value.is_array() => {
                            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                            self.items(items, &pointer, block, remarks);
                        }
                        Some(key) if key.is_header_field() => {
                            self.header(key, value, &pointer, block, remarks);
                        }
                        Some(Key::Truncated) => {}
                        None if self.is_present(&pointer) && text(value, ", ").is_some() => {
                            block.header.set_other(name, &text(value, ", ").unwrap_or_default());
                        }
                        _ => remarks.add(RemarkKind::UnknownField, name, self.start),
                    }
                }
            }
            _ => {}
        }
    }

    fn header(&self, key: Key, value: &Value, pointer: &str, block: &mut Block, remarks: &mut Remarks) {
        let Some(field_text) = text(value, ", ").filter(|_| self.is_present(pointer)) else { return };
        match (key, value) {
            // A dimension in a list may contain commas.
            (Key::Dimensions, Value::Array(items)) => {
                block.header.dimensions = Some(items.iter().filter_map(|item| text(item, "")).collect());
            }
            _ if block.header.set(key, &field_text) => {}
            _ => remarks.add(RemarkKind::RepeatedField, &field_text, self.start),
        }
    }

    fn items(&self, items: &[Value], pointer: &str, block: &mut Block, remarks: &mut Remarks) {
        for (at, item) in items.iter().enumerate() {
            self.item(item, &child(pointer, &at.to_string()), block, remarks);
        }
    }

    /// Adds a finding. Anything else counts as an unreadable finding, unless none of its content has arrived.
    fn item(&self, item: &Value, pointer: &str, block: &mut Block, remarks: &mut Remarks) {
        let is_said =
            |name: &String| Key::from_name(name).is_some() && self.is_present(&child(pointer, name));
        match item.as_object() {
            Some(object) if object.keys().any(is_said) => {
                let finished = self.finding(object, pointer, block.next_id(), remarks);
                block.take(finished, remarks);
            }
            _ if !self.is_present(pointer) => {}
            _ => {
                block.unread += 1;
                remarks.add(RemarkKind::UnreadFinding, &item.to_string(), self.start);
            }
        }
    }

    fn finding(
        &self,
        object: &Map<String, Value>,
        pointer: &str,
        next: FindingId,
        remarks: &mut Remarks,
    ) -> DraftOutcome {
        let mut draft = Draft::new(next, "", self.start);
        for (name, value) in object {
            let pointer = child(pointer, name);
            let key = Key::from_name(name);
            let between = match key {
                Some(Key::Finding(Field::Flow)) => " -> ",
                Some(Key::Finding(Field::Evidence)) => "\n",
                _ => ", ",
            };
            let field_text = text(value, between)
                .or_else(|| place(value).filter(|_| key == Some(Key::Finding(Field::Location))));
            match (key, field_text) {
                (Some(Key::Finding(Field::Evidence)), Some(field_text)) if draft.evidence.is_none() => {
                    draft.set_evidence(EvidenceCollector::from_text(&field_text));
                }
                // A value that is cut in the middle is dropped.
                _ if !self.is_present(&pointer) || value.is_null() => {}
                (Some(Key::Id), Some(field_text)) => {
                    draft.id = FindingId::from_name(&field_text).unwrap_or(draft.id);
                }
                (Some(key), Some(field_text)) if draft.value(key).is_none() => {
                    draft.set(key, field_text.trim(), self.start);
                }
                (None, Some(field_text)) => {
                    draft.set_other(name, &field_text);
                }
                (Some(_), Some(field_text)) => {
                    remarks.add(RemarkKind::RepeatedField, &field_text, self.start);
                }
                _ => remarks.add(RemarkKind::UnknownField, name, self.start),
            }
        }
        draft.finish(self.is_present(pointer))
    }
}

/// Whether a value contains a response of `endmark findings`: a report with its disclosure, a check, or a fitting.
fn is_answer(value: &Value) -> bool {
    let is_object = |value: &Value, name: &str| value.get(name).is_some_and(Value::is_object);
    let is_told = |item: &Value| {
        is_object(item, "finding")
            && ["reported_by", "places", "missing"].iter().any(|name| item.get(*name).is_some())
    };
    let is_told_in = findings(value).is_some_and(|(_, items)| items.iter().any(is_told));
    let is_checked = value.get("cut").is_some() && value.get("lost").is_some();
    let is_own = is_told_in || is_checked || is_object(value, "disclosure") || is_object(value, "receipt");
    match value {
        Value::Array(items) => items.iter().any(is_answer),
        Value::Object(members) => is_own || members.values().any(is_answer),
        _ => false,
    }
}

/// Returns the findings of a result object, and the name of that member.
fn findings(value: &Value) -> Option<(&str, &[Value])> {
    let lists = value.as_object()?.iter().filter(|(name, _)| Key::from_name(name) == Some(Key::Findings));
    lists.into_iter().find_map(|(name, list)| Some((name.as_str(), list.as_array()?.as_slice())))
}

/// Whether an object has at least two fields of a finding.
fn is_finding(object: &Map<String, Value>) -> bool {
    object.keys().filter_map(|name| Key::from_name(name)).filter(|key| key.is_finding_field()).count() >= 2
}

/// Whether an object has a field of a result.
fn is_header(object: &Map<String, Value>) -> bool {
    object
        .keys()
        .filter_map(|name| Key::from_name(name))
        .any(|key| key.is_header_field() || key == Key::Findings)
}

/// Returns a value as text, with `between` between several items, or `None` if it contains anything but plain values.
fn text(value: &Value, between: &str) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Array(items) => {
            let texts: Option<Vec<String>> = items.iter().map(|item| text(item, between)).collect();
            texts.map(|texts| texts.join(between))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// Returns a location object as text: `{"file": "a.c", "line": 3, "end_line": 9, "function": "get"}`, or several of
/// them.
fn place(value: &Value) -> Option<String> {
    if let Value::Array(items) = value {
        let places: Option<Vec<String>> = items.iter().map(place).collect();
        return places.map(|places| places.join(", ")).filter(|places| !places.is_empty());
    }
    let (mut file, mut lines, mut words) = (None, Vec::new(), Vec::new());
    for (name, value) in value.as_object()? {
        let field_text = text(value, "-").filter(|field_text| !field_text.is_empty());
        match Key::from_name(name) {
            Some(Key::Finding(Field::Location)) => file = field_text,
            Some(Key::Lines | Key::LastLine) => lines.extend(field_text),
            _ => words.extend(field_text.filter(|field_text| field_text.contains(char::is_alphabetic))),
        }
    }
    let lines = if lines.is_empty() { String::new() } else { format!(":{}", lines.join("-")) };
    let words = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
    Some(format!("{}{lines}{words}", file?))
}

/// Counts the members of all objects in a JSON text by the colon after each name.
fn count_names(text: &str) -> usize {
    let (mut names, mut is_in_string, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b':' if !is_in_string => names += 1,
            _ => {}
        }
    }
    names
}

/// Counts the members of all objects in a value.
fn count_members(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_members).sum(),
        Value::Object(members) => members.len() + members.values().map(count_members).sum::<usize>(),
        _ => 0,
    }
}

/// Returns the pointer of a member or an item.
fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
