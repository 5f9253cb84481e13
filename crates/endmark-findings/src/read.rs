//! Parses agent output in the format of AR-1, in lines or in JSON. (AR-1, AR-3)
//!
//! Each line is one event, and its meaning depends only on the lines before it. Neither later text nor a cut therefore
//! changes earlier results. Text that cannot be parsed is counted, and nothing is guessed.

mod block;
mod checkpoint;
mod coverage;
mod draft;
mod evidence;
mod finding_hint;
mod grammar;
mod header;
mod json;
mod key;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use endmark_text::CodeFence;
use serde_json::Value;

use super::expected::IdNumbers;
use super::transcript::{AgentResult, Checkpoint, Cut, Position, Remark, RemarkKind, Transcript};
use block::{Block, BlockEffect};
pub(super) use coverage::read_dimensions;
pub(super) use grammar::{END, START};
use grammar::{LineEvent, classify_line, rest_after_speaker};

use json::{JsonEffect, ParsedJson, PendingJson};
use lines::{Line, split_lines};

/// The maximum number of remarks per kind. Further ones are only counted. A limit per kind prevents one kind from
/// hiding the others.
const MAX_REMARKS_PER_KIND: usize = 200;

/// The maximum length of a quoted line in a remark, in characters.
const MAX_QUOTED_CHARS: usize = 60;

/// The maximum depth of JSON strings in JSON strings that are searched for results.
const MAX_STRING_DEPTH: usize = 3;

/// Parses an agent's transcript into results, checkpoints and remarks about ignored text (AR-1, AR-3).
///
/// Never fails: a text without any result yields one result, which is a severe cut. Time and memory are linear in the
/// length of the text.
///
/// ```
/// use endmark_findings::{Cut, FindingState, read};
///
/// let text = "===AGENT_RESULT===\nagent_id: auth-2\n\n**[F1] SQL from a parameter**\n- **Severity:** high\n\
///             - Location: src/user.rs:41\n- Source: `name`\n- Sink: query\n- Evidence:\n  ```\n  q(name)\n  ```\n\n**[F2] A sec";
/// let result = &read(text.as_bytes()).results[0];
/// assert_eq!(result.cut, Cut::Mild);
/// assert_eq!(result.findings[0].state, FindingState::Complete);
/// assert_eq!(result.findings[1].state, FindingState::NeedsReaudit);
/// ```
pub fn read(text: &[u8]) -> Transcript {
    read_within(text, 0)
}

fn read_within(text: &[u8], depth: usize) -> Transcript {
    let mut reader = Reader { depth, ..Reader::default() };
    let mut end = Position { line: 1, column: 1, byte: 0 };
    for line in split_lines(text) {
        end = line.text_end(text.len());
        if let Some(broken) = line.invalid_utf8_at {
            reader.remarks.add(RemarkKind::NotUtf8, &line.text, line.position(broken));
        }
        if !reader.read_json_line(text, &line) {
            reader.read_line(&line);
        }
    }
    reader.finish(text, end)
}

/// Whether a line may be the start of JSON with findings. Most lines of a JSON Lines transcript contain none.
fn may_start_json(text: &str) -> bool {
    let text = text.trim();
    let is_object = text.starts_with('{') && text.ends_with('}');
    !is_object || ["indings", "AGENT_RESULT", "CHECKPOINT", "everity"].iter().any(|word| text.contains(word))
}

/// The state of the parser.
#[derive(Default)]
struct Reader {
    results: Vec<AgentResult>,
    checkpoints: Vec<Checkpoint>,
    remarks: Remarks,
    open: Option<Block>,
    /// JSON that has begun but not ended, inside or outside of a result.
    json: Option<PendingJson>,
    /// An open code fence around a result.
    surrounding_fence: Option<CodeFence>,
    /// The ids of findings outside of results.
    stray_numbers: IdNumbers,
    /// The first line of a finding after a result. The finding counts only if a field follows.
    pending_head: Option<(String, Position)>,
    /// The JSON strings so far that contain results or checkpoints.
    seen_strings: Vec<String>,
    /// The number of JSON strings around the text.
    depth: usize,
}

/// The remarks collected so far.
#[derive(Default)]
struct Remarks {
    list: Vec<Remark>,
    by_kind: BTreeMap<RemarkKind, usize>,
    omitted: usize,
}

impl Remarks {
    fn add(&mut self, kind: RemarkKind, text: &str, position: Position) {
        let kind_count = self.by_kind.entry(kind).or_default();
        if *kind_count == MAX_REMARKS_PER_KIND {
            self.omitted += 1;
            return;
        }
        *kind_count += 1;
        let text = text.trim();
        let mut shown: String = text.chars().take(MAX_QUOTED_CHARS).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        self.list.push(Remark { position, kind, text: shown });
    }
}

impl Reader {
    /// Reads a line as part of JSON. Returns whether it was JSON.
    fn read_json_line(&mut self, text: &[u8], line: &Line<'_>) -> bool {
        if self.json.is_none()
            && self.open.as_ref().map_or_else(|| may_start_json(&line.text), Block::may_start_json)
        {
            self.json = PendingJson::new(line);
        }
        let Some(pending) = &mut self.json else { return false };
        match pending.push(text, line) {
            JsonEffect::Incomplete => true,
            effect => {
                let ends = line.end_position();
                let parsed = self.json.take().and_then(|json| json.parse(text, ends.byte));
                let is_result = parsed.is_some_and(|parsed| self.add_json(&parsed, ends));
                effect == JsonEffect::End && is_result
            }
        }
    }

    /// Adds the results of parsed JSON. Returns `false` if the JSON is unrelated to results.
    fn add_json(&mut self, parsed: &ParsedJson, ends: Position) -> bool {
        if let Some(block) = &mut self.open {
            parsed.add_to(block, &mut self.remarks);
            return true;
        }
        if parsed.is_own_response() {
            self.remarks.add(RemarkKind::OwnResponse, "{", parsed.start);
            // Count it as a cut result, because its own information about cuts is not read.
            let empty = AgentResult::empty(ends);
            self.results.push(AgentResult { begins: Some(parsed.start), unread: 1, ..empty });
        } else if parsed.is_result() {
            let mut block = Block::new(parsed.start, None);
            parsed.add_to(&mut block, &mut self.remarks);
            self.close(block, !parsed.is_cut(), ends);
        } else {
            let strays = parsed.stray_numbers();
            if strays.is_empty() {
                // In complete JSON, the last line of each string is complete too.
                let end = if parsed.problem.is_none() { "\n" } else { "" };
                return self.read_strings(&parsed.value, end, parsed.start, ends);
            }
            for number in strays {
                self.count_stray(number, "{", parsed.start);
            }
        }
        true
    }

    /// Reads the results and checkpoints in JSON strings, as they occur in a JSON Lines transcript.
    fn read_strings(&mut self, value: &Value, end: &str, begins: Position, ends: Position) -> bool {
        let mut any = |item: &Value| self.read_strings(item, end, begins, ends);
        match value {
            Value::Array(items) => items.iter().fold(false, |found, item| any(item) | found),
            Value::Object(members) => members.values().fold(false, |found, item| any(item) | found),
            Value::String(text) if self.depth < MAX_STRING_DEPTH => {
                let may_have_results =
                    [START, checkpoint::MARKER, "\"findings\""].iter().any(|word| text.contains(word));
                // Agent streams repeat the last message. The second copy may be cut.
                if may_have_results
                    && !self.seen_strings.iter().any(|known_text| known_text.starts_with(text.as_str()))
                {
                    self.seen_strings.push(text.clone());
                    let read = read_within(format!("{text}{end}").as_bytes(), self.depth + 1);
                    self.add_nested(read, begins, ends);
                }
                may_have_results
            }
            _ => false,
        }
    }

    /// Adds the results of a JSON string. All of them get the position of the string.
    fn add_nested(&mut self, read: Transcript, begins: Position, ends: Position) {
        for checkpoint in read.checkpoints {
            self.checkpoints.push(Checkpoint { position: begins, ..checkpoint });
        }
        for remark in read.remarks {
            self.remarks.add(remark.kind, &remark.text, begins);
        }
        for mut result in read.results.into_iter().filter(|result| result.begins.is_some()) {
            (result.begins, result.ends) = (Some(begins), ends);
            result.findings.iter_mut().for_each(|read| read.position = begins);
            result.checkpoint = self.checkpoints.last().cloned();
            self.push(result);
        }
    }

    fn read_line(&mut self, line: &Line<'_>) {
        let Some(mut block) = self.open.take() else { return self.read_outside(line) };
        match block.read_line(line, &mut self.remarks) {
            BlockEffect::Open => self.open = Some(block),
            BlockEffect::Checkpoint => {
                self.read_checkpoint(line);
                self.open = Some(block);
            }
            BlockEffect::Ended => self.close(block, true, line.end_position()),
            BlockEffect::NewTurn => {
                self.remarks.add(RemarkKind::InnerTurn, &line.text, line.start_position());
                block.mark_cut();
                self.close(block, false, line.start_position());
                self.read_outside(line);
            }
            BlockEffect::Restarted => {
                match block.start.filter(|_| block.is_empty()) {
                    Some(begins) => self.remarks.add(RemarkKind::EmptyResult, START, begins),
                    None => self.close(block, false, line.start_position()),
                }
                self.open = Some(Block::new(line.start_position(), None));
            }
        }
    }

    fn read_outside(&mut self, line: &Line<'_>) {
        let is_marker = |line_text: &&str| line_text.contains(START.trim_matches('='));
        let text = rest_after_speaker(&line.text).filter(is_marker).unwrap_or(&line.text);
        match classify_line(text) {
            LineEvent::Start => {
                self.open = Some(Block::new(line.start_position(), self.surrounding_fence.take()));
            }
            LineEvent::End => {
                self.remarks.add(RemarkKind::EndWithoutStart, text, line.start_position());
                // Findings followed the first end marker, so it was part of the evidence of the last finding.
                if let Some(result) = self.results.last_mut().filter(|result| result.unread > 0) {
                    result.mark_last_finding_cut();
                }
            }
            LineEvent::Checkpoint => self.read_checkpoint(line),
            LineEvent::Fence(fence) => {
                let is_closed = self.surrounding_fence.is_some_and(|around| around.is_closed_by(fence));
                self.surrounding_fence =
                    if is_closed { None } else { self.surrounding_fence.or(Some(fence)) };
            }
            LineEvent::Head(id, title) => {
                // The severe cut of the last result may have been at a turn, so its findings continue here.
                if let Some(last) = self.results.last_mut().filter(|last| last.cut == Cut::Severe) {
                    last.discarded += 1;
                    last.numbers.add(id.number());
                }
                self.stray_numbers.add(id.number());
                let known = self.results.iter().flat_map(|result| &result.findings);
                let is_known =
                    known.filter(|read| read.finding.id == id).any(|read| read.finding.title == title);
                self.pending_head = (!is_known).then(|| (line.text.to_string(), line.start_position()));
            }
            LineEvent::Fields(fields) if fields.iter().any(|field| field.key.is_finding_field()) => {
                if let Some((text, position)) = self.pending_head.take() {
                    self.count_unread(&text, position);
                }
            }
            LineEvent::Blank => {}
            _ if line.text.contains("===AGENT_RESULT===\\n") => {
                self.remarks.add(RemarkKind::InsideJson, text, line.start_position());
                let empty = AgentResult::empty(line.end_position());
                self.push(AgentResult { begins: Some(line.start_position()), unread: 1, ..empty });
            }
            _ => self.pending_head = None,
        }
    }

    /// Counts a finding that belongs to no result.
    fn count_stray(&mut self, number: Option<u32>, text: &str, position: Position) {
        self.stray_numbers.add(number);
        self.count_unread(text, position);
    }

    /// Counts a finding after a result as missing from that result.
    fn count_unread(&mut self, text: &str, position: Position) {
        if let Some(last) = self.results.last_mut() {
            last.unread = last.unread.saturating_add(1);
            self.remarks.add(RemarkKind::UnreadFinding, text, position);
        }
    }

    fn read_checkpoint(&mut self, line: &Line<'_>) {
        let (checkpoint, kind) = checkpoint::parse_checkpoint(line);
        self.checkpoints.extend(checkpoint);
        if let Some(kind) = kind {
            self.remarks.add(kind, &line.text, line.start_position());
        }
    }

    fn close(&mut self, block: Block, is_whole: bool, ends: Position) {
        let begins = block.start;
        match block.finish(is_whole, ends, self.checkpoints.last().cloned(), &mut self.remarks) {
            Some(result) => self.push(result),
            None => begins.into_iter().for_each(|at| self.remarks.add(RemarkKind::Template, START, at)),
        }
    }

    fn push(&mut self, result: AgentResult) {
        self.pending_head = None;
        self.results.push(result);
    }

    fn finish(mut self, text: &[u8], end: Position) -> Transcript {
        if let Some(parsed) = self.json.take().and_then(|json| json.parse(text, text.len())) {
            self.add_json(&parsed, end);
        }
        if let Some(block) = self.open.take() {
            self.close(block, false, end);
        }
        if self.results.is_empty() {
            self.results.push(AgentResult {
                discarded: self.stray_numbers.count,
                checkpoint: self.checkpoints.last().cloned(),
                numbers: self.stray_numbers,
                ..AgentResult::empty(end)
            });
        }
        self.remarks.list.sort_by_key(|remark| remark.position);
        Transcript {
            results: self.results,
            checkpoints: self.checkpoints,
            remarks: self.remarks.list,
            remarks_omitted: self.remarks.omitted,
        }
    }
}
