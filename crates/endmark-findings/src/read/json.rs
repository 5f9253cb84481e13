//! Parses a result in JSON: JSON Lines between the markers, or one object with a list of findings. (AR-1)

use endmark_text::detect::Detector;
use endmark_text::{CompleteError, Format, complete, replace_lone_surrogates};
use serde_json::{Map, Value};

use super::Remarks;
use super::block::Block;
use super::draft::{DraftOutcome, FindingDraft};
use super::evidence::EvidenceCollector;
use super::key::Key;
use super::lines::Line;
use crate::{Field, FindingId, Position, RemarkKind};

/// JSON that has begun but not ended yet.
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
    Incomplete,
    /// The JSON ends in this line, or the line is not valid JSON.
    End,
    /// The line is not part of the JSON.
    Other,
}

impl PendingJson {
    /// Starts JSON at a line that begins an object or a list of objects. Returns `None` for other lines.
    pub(super) fn new(line: &Line<'_>) -> Option<Self> {
        let text = line.text.trim();
        let list = text.strip_prefix('[').map(str::trim_start);
        let is_json =
            text.starts_with('{') || list.is_some_and(|list| list.is_empty() || list.starts_with('{'));
        let new =
            || Self { start: line.start_position(), byte: line.byte, detector: Detector::for_strict_json() };
        is_json.then(new)
    }

    /// Processes a line of the text.
    pub(super) fn push(&mut self, text: &[u8], line: &Line<'_>) -> JsonEffect {
        let bytes = &text[line.byte..line.end_position().byte];
        self.detector.push(bytes);
        let is_first = line.byte == self.byte;
        match (self.detector.is_malformed(), self.detector.is_whole()) {
            (true, _) if !is_first => JsonEffect::Other,
            (true, _) | (_, true) => JsonEffect::End,
            _ => {
                self.detector.push(b"\n");
                JsonEffect::Incomplete
            }
        }
    }

    /// Parses the JSON up to a byte offset of the text. Returns `None` if nothing of it is usable.
    pub(super) fn parse(&self, text: &[u8], ends: usize) -> Option<ParsedJson> {
        let text = &text[self.byte..ends];
        let (completed, problem) = match complete(text, &Format::Json) {
            Err(CompleteError::Malformed { index, reason }) => {
                (complete(&text[..index], &Format::Json), Some(reason))
            }
            completed => (completed, None),
        };
        let completed = completed.ok()?;
        // Parse before writing a pointer to each incomplete value. This rejects deeply nested input, which would need
        // gigabytes of pointers.
        let value: Value = serde_json::from_str(&replace_lone_surrogates(&completed.text)).ok()?;
        let unfinished: Vec<String> = completed.unfinished().map(|place| place.pointer.to_owned()).collect();
        let is_cut = !unfinished.is_empty();
        let problem = problem.or_else(|| is_cut.then(|| "it ends in the middle".to_owned()));
        // If a name occurs twice, the parser keeps only the last value.
        let has_repeated_name = count_names(&completed.text) > count_members(&value);
        let problem = problem.or_else(|| has_repeated_name.then(|| "a name occurs twice".to_owned()));
        Some(ParsedJson { value, start: self.start, unfinished, problem })
    }
}

/// Parsed JSON, with what is incomplete or wrong in it.
#[derive(Debug)]
pub(super) struct ParsedJson {
    pub(super) value: Value,
    pub(super) start: Position,
    /// JSON Pointers to the incomplete values.
    unfinished: Vec<String>,
    /// The problem, if the JSON is invalid or incomplete.
    pub(super) problem: Option<String>,
}

impl ParsedJson {
    /// Whether the JSON is a whole result object.
    pub(super) fn is_result(&self) -> bool {
        findings(&self.value).is_some()
    }

    /// Whether the JSON is a response of `endmark findings`, which discloses missing findings in other fields.
    pub(super) fn is_own_response(&self) -> bool {
        is_own_response(&self.value)
    }

    /// Returns the number in the id of each finding outside of a result. A number is `None` if the id has none.
    pub(super) fn stray_numbers(&self) -> Vec<Option<u32>> {
        let objects = match &self.value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        };
        let objects = objects.into_iter().filter_map(Value::as_object).filter(|object| is_finding(object));
        objects.map(|object| FindingId::from_name(&value_text(object.get("id")?, "")?)?.number()).collect()
    }

    /// Whether the result was cut: the JSON is incomplete, or its field `truncated` is true.
    pub(super) fn is_cut(&self) -> bool {
        let states_cut = |(name, value): (&String, &Value)| {
            Key::from_name(name) == Some(Key::Truncated) && *value == Value::Bool(true)
        };
        self.problem.is_some() || self.value.as_object().is_some_and(|object| object.iter().any(states_cut))
    }

    fn is_finished(&self, pointer: &str) -> bool {
        !self.unfinished.iter().any(|place| place == pointer)
    }

    /// Adds the content of the JSON to a result.
    pub(super) fn add_to(&self, block: &mut Block, remarks: &mut Remarks) {
        if let Some(problem) = &self.problem {
            remarks.add(RemarkKind::BrokenJson, problem, self.start);
        }
        if self.is_own_response() {
            block.unread += 1;
            return remarks.add(RemarkKind::OwnResponse, "{", self.start);
        }
        match &self.value {
            Value::Array(items) => self.add_items(items, "", block, remarks),
            Value::Object(object) if is_finding(object) || !is_header(object) => {
                self.add_item(&self.value, "", block, remarks);
            }
            Value::Object(object) => {
                for (name, value) in object {
                    let pointer = child_pointer("", name);
                    match Key::from_name(name) {
                        Some(Key::Findings) if value.is_array() => {
                            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                            self.add_items(items, &pointer, block, remarks);
                        }
                        Some(key) if key.is_header_field() => {
                            self.add_header_field(key, value, &pointer, block, remarks);
                        }
                        Some(Key::Truncated) => {}
                        None if self.is_finished(&pointer) && value_text(value, ", ").is_some() => {
                            block.header.set_other(name, &value_text(value, ", ").unwrap_or_default());
                        }
                        _ => remarks.add(RemarkKind::UnknownField, name, self.start),
                    }
                }
            }
            _ => {}
        }
    }

    fn add_header_field(
        &self,
        key: Key,
        value: &Value,
        pointer: &str,
        block: &mut Block,
        remarks: &mut Remarks,
    ) {
        let Some(field_text) = value_text(value, ", ").filter(|_| self.is_finished(pointer)) else { return };
        match (key, value) {
            // A dimension in a list may contain commas.
            (Key::Dimensions, Value::Array(items)) => {
                block.header.dimensions =
                    Some(items.iter().filter_map(|item| value_text(item, "")).collect());
            }
            _ if block.header.set(key, &field_text) => {}
            _ => remarks.add(RemarkKind::RepeatedField, &field_text, self.start),
        }
    }

    fn add_items(&self, items: &[Value], pointer: &str, block: &mut Block, remarks: &mut Remarks) {
        for (at, item) in items.iter().enumerate() {
            self.add_item(item, &child_pointer(pointer, &at.to_string()), block, remarks);
        }
    }

    /// Adds a finding. Any other value counts as an unreadable finding, unless the text ends before its content.
    fn add_item(&self, item: &Value, pointer: &str, block: &mut Block, remarks: &mut Remarks) {
        let has_known_value =
            |name: &String| Key::from_name(name).is_some() && self.is_finished(&child_pointer(pointer, name));
        match item.as_object() {
            Some(object) if object.keys().any(has_known_value) => {
                let finished = self.read_finding(object, pointer, block.next_id(), remarks);
                block.add_finding(finished, remarks);
            }
            _ if !self.is_finished(pointer) => {}
            _ => {
                block.unread += 1;
                remarks.add(RemarkKind::UnreadFinding, &item.to_string(), self.start);
            }
        }
    }

    fn read_finding(
        &self,
        object: &Map<String, Value>,
        pointer: &str,
        next: FindingId,
        remarks: &mut Remarks,
    ) -> DraftOutcome {
        let mut draft = FindingDraft::new(next, "", self.start);
        for (name, value) in object {
            let pointer = child_pointer(pointer, name);
            let key = Key::from_name(name);
            let between = match key {
                Some(Key::Finding(Field::Flow)) => " -> ",
                Some(Key::Finding(Field::Evidence)) => "\n",
                _ => ", ",
            };
            let field_text = value_text(value, between)
                .or_else(|| location_text(value).filter(|_| key == Some(Key::Finding(Field::Location))));
            match (key, field_text) {
                (Some(Key::Finding(Field::Evidence)), Some(field_text)) if draft.evidence.is_none() => {
                    draft.set_evidence(EvidenceCollector::from_text(&field_text));
                }
                // A value that is cut in the middle is dropped.
                _ if !self.is_finished(&pointer) || value.is_null() => {}
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
        draft.finish(self.is_finished(pointer))
    }
}

/// Whether a value contains a response of `endmark findings`: a report, a check or a receipt.
fn is_own_response(value: &Value) -> bool {
    let is_object = |value: &Value, name: &str| value.get(name).is_some_and(Value::is_object);
    let is_reported_finding = |item: &Value| {
        is_object(item, "finding")
            && ["reported_by", "places", "missing"].iter().any(|name| item.get(*name).is_some())
    };
    let has_reported_findings =
        findings(value).is_some_and(|(_, items)| items.iter().any(is_reported_finding));
    let is_checked = value.get("cut").is_some() && value.get("lost").is_some();
    let has_own_members =
        has_reported_findings || is_checked || is_object(value, "disclosure") || is_object(value, "receipt");
    match value {
        Value::Array(items) => items.iter().any(is_own_response),
        Value::Object(members) => has_own_members || members.values().any(is_own_response),
        _ => false,
    }
}

/// Returns the name and the items of the member that contains a result's findings.
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

/// Returns a value as text, with `between` between the items of a list. Returns `None` for null and for objects.
fn value_text(value: &Value, between: &str) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Array(items) => {
            let texts: Option<Vec<String>> = items.iter().map(|item| value_text(item, between)).collect();
            texts.map(|texts| texts.join(between))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// Returns a location object, or several of them, as text. A location object is for example
/// `{"file": "a.c", "line": 3, "end_line": 9, "function": "get"}`.
fn location_text(value: &Value) -> Option<String> {
    if let Value::Array(items) = value {
        let places: Option<Vec<String>> = items.iter().map(location_text).collect();
        return places.map(|places| places.join(", ")).filter(|places| !places.is_empty());
    }
    let (mut file, mut lines, mut words) = (None, Vec::new(), Vec::new());
    for (name, value) in value.as_object()? {
        let field_text = value_text(value, "-").filter(|field_text| !field_text.is_empty());
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

/// Counts the members of all objects in a JSON text by the colons outside strings.
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

/// Returns the JSON Pointer of a member or an item.
fn child_pointer(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
