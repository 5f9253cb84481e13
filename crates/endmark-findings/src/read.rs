//! Reads what agents hand over, in whatever spelling. (AR-1, AR-3)
//!
//! A text is read line by line; what a line is, is decided by the line itself and by what is open, so that the cut of a
//! text never changes what stands before it. Only an open fence of code looks a few lines ahead.

mod again;
mod ahead;
mod block;
mod checkpoint;
mod cleaned;
mod draft;
mod evidence;
mod header;
mod heads;
mod inside_json;
mod interleaved;
mod json;
mod json_result;
mod lines;
mod names;
mod number;
mod section;
mod signs;
mod speakers;
mod table;
mod tags;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use super::expected::Numbers;
use super::finding::{Field, Finding};
use super::location::Location;
use super::transcript::{
    AgentResult, Checkpoint, Cut, FindingState, Position, Remark, RemarkKind, Transcript, letters,
};
pub(super) use again::{
    reads_as_agent, reads_as_dimension, reads_as_evidence, reads_as_title, reads_as_value,
};
use ahead::{Ahead, Run};
use block::{Block, Closed};
use checkpoint::Found;
use cleaned::cleaned;
use evidence::Fence;
use json_result::Within;
use lines::{Line, lines, quote_depth, unquoted};
use names::Key;
use words::Marker;

/// Among so many results before it, one that is said twice is looked for.
const NEAR: usize = 8;

/// More remarks of one kind are counted, but not kept: none hides those of another kind.
const MOST_REMARKS: usize = 200;

/// So much of a line is repeated in a remark, in characters.
const SHOWN: usize = 60;

/// Reads an agent's transcript: its results, its checkpoints, and what had to be ignored (AR-1, AR-3).
///
/// Never fails: a text in which no result begins has one result, which is a severe cut. Runs in time linear in the
/// text, and keeps no more than the text.
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

/// So deep a string may stand in the text of another one.
const DEEPEST_STRING: usize = 3;

fn read_within(text: &[u8], depth: usize) -> Transcript {
    let cleaned = cleaned(text);
    let mut read = cleaned.iter().map(|cleaned| cleaned.placed(read_lines(&cleaned.text, depth)));
    match (read.next(), read.next()) {
        (None, _) => read_lines(text, depth),
        (Some(only), None) => only,
        (Some(first), Some(second)) => interleaved::joined([first, second].into_iter().chain(read).collect()),
    }
}

fn read_lines(text: &[u8], depth: usize) -> Transcript {
    let lines = lines(text);
    let end =
        lines.last().map_or(Position { line: 1, column: 1, byte: 0 }, |last| last.end_of_text(text.len()));
    let mut reader = Reader { depth, ..Reader::default() };
    for at in 0..lines.len() {
        if lines[at].byte >= reader.taken_up_to && !reader.json(text, &lines, at) {
            reader.line(&lines, at);
        }
    }
    reader.finish(end)
}

/// Whether what stands under the id of a finding says it again: under its title, or of its place, source and sink.
fn is_repeated(finding: &Finding, title: &str, run: &Run<'_>) -> bool {
    let known = |field: Field| match field {
        Field::Location => finding.location.as_ref().map(Location::as_str),
        Field::Source => finding.source.as_deref(),
        Field::Sink => finding.sink.as_deref(),
        _ => None,
    };
    let is_same = |(key, value): &(Key, &str)| match key {
        Key::Of(field @ (Field::Location | Field::Source | Field::Sink)) => {
            known(*field).is_some_and(|known| letters(known) == letters(value))
        }
        _ => true,
    };
    !title.is_empty() && letters(title) == letters(&finding.title) || run.said.iter().all(is_same)
}

/// Whether an object of JSON begins in a line, or a list of them.
fn is_object(line: &Line<'_>) -> bool {
    let text = line.text.trim();
    text.starts_with('{')
        || text == "["
        || text.strip_prefix('[').is_some_and(|text| text.trim_start().starts_with('{'))
}

/// What has been read, and what is open.
#[derive(Default)]
struct Reader {
    results: Vec<AgentResult>,
    checkpoints: Vec<Checkpoint>,
    remarks: Remarks,
    open: Option<Block>,
    /// Code that is open around a result.
    fence: Option<Fence>,
    /// Beginnings of findings where no result is open.
    strays: Numbers,
    /// Those among them that stand behind the last result.
    behind: Numbers,
    /// How many of those were counted as unread there.
    unread_behind: u32,
    /// Up to where the text was taken as JSON, in bytes.
    taken_up_to: usize,
    /// Up to where JSON was looked for in vain.
    tried_up_to: usize,
    /// Where the next marker is, unless that is passed.
    marker_at: usize,
    /// The strings of JSON in which results or checkpoints were.
    strings: Vec<String>,
    /// In how many strings the text stands.
    depth: usize,
}

/// What there is to remark.
#[derive(Default)]
struct Remarks {
    list: Vec<Remark>,
    of_kind: BTreeMap<RemarkKind, usize>,
    omitted: usize,
}

impl Remarks {
    fn add(&mut self, kind: RemarkKind, text: &str, position: Position) {
        let of_kind = self.of_kind.entry(kind).or_default();
        if *of_kind == MOST_REMARKS {
            self.omitted += 1;
            return;
        }
        *of_kind += 1;
        let text = text.trim();
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        self.list.push(Remark { position, kind, text: shown });
    }
}

impl Reader {
    /// Takes the results in JSON that begin in this line.
    fn json(&mut self, text: &[u8], lines: &[Line<'_>], at: usize) -> bool {
        let line = &lines[at];
        let within = match &self.open {
            None => Within::Nothing,
            Some(block) if block.is_before_findings() => Within::Header,
            Some(_) => Within::Findings,
        };
        if line.byte < self.tried_up_to
            || !line.text.trim_start().starts_with(['{', '['])
            || self.open.as_ref().is_some_and(|block| !block.may_take_json(line))
        {
            return false;
        }
        let Some(column) = text[line.byte..].iter().position(|byte| matches!(byte, b'{' | b'[')) else {
            return false;
        };
        let whole = text.len();
        let text = &text[..self.next_marker(text, lines, at)];
        match json_result::results_at(text, lines, line.byte + column, within, &mut self.remarks) {
            // What is cut before it tells whether it is evidence, or the next finding, is neither.
            Err(missed) if within == Within::Findings && missed.ends == whole && is_object(line) => {
                self.taken_up_to = whole;
                true
            }
            Err(missed) => {
                self.tried_up_to = missed.ends;
                if within == Within::Nothing {
                    missed.strays.into_iter().for_each(|number| self.strays.add(number));
                }
                false
            }
            Ok(found) => {
                self.taken_up_to = found.ends;
                if let Some(block) = &mut self.open {
                    block.templates += found.templates;
                }
                for mut result in found.results {
                    if let Some(block) = &mut self.open {
                        block.take(result, &mut self.remarks);
                    } else {
                        result.checkpoint = self.checkpoints.last().cloned();
                        (self.behind, self.unread_behind) = (Numbers::default(), 0);
                        self.results.push(result);
                    }
                }
                true
            }
        }
    }

    /// Where the next marker is, or the end of the text: JSON that is cut within quotes would go on into the next result.
    fn next_marker(&mut self, text: &[u8], lines: &[Line<'_>], at: usize) -> usize {
        if self.marker_at <= lines[at].byte {
            let mut behind = lines[at + 1..].iter();
            let marker =
                behind.find(|line| words::marker(unquoted(&line.text, quote_depth(&line.text))).is_some());
            self.marker_at = marker.map_or(text.len(), |line| line.byte);
        }
        self.marker_at
    }

    fn line(&mut self, lines: &[Line<'_>], at: usize) {
        let line = &lines[at];
        if let Some(broken) = line.broken_at {
            self.remarks.add(RemarkKind::NotUtf8, &line.text, line.position(broken));
        }
        match self.open.take() {
            None => self.outside(line, Ahead { lines, at, quotes: quote_depth(&line.text) }),
            Some(mut block) => match block.line(lines, at, &mut self.remarks) {
                Closed::Open => self.open = Some(block),
                Closed::Checkpoint => {
                    self.checkpoint(line);
                    self.open = Some(block);
                }
                Closed::Ended => self.close(block, true, line.ends()),
                Closed::Restarted => {
                    if block.is_empty() {
                        self.remarks.add(RemarkKind::EmptyResult, "===AGENT_RESULT===", block.begins);
                    } else {
                        self.close(block, false, line.begins());
                    }
                    self.begin(line);
                }
            },
        }
    }

    fn outside(&mut self, line: &Line<'_>, ahead: Ahead<'_, '_>) {
        if self.strings(line) {
            return;
        }
        let text = unquoted(&line.text, quote_depth(&line.text));
        // `Assistant: ===AGENT_RESULT===`
        let text = speakers::speaker(text)
            .map(|speaker| speaker.says)
            .filter(|says| says.contains("=="))
            .unwrap_or(text);
        match words::marker(text) {
            Some(Marker::Start) => return self.begin(line),
            Some(Marker::End) => {
                self.remarks.add(RemarkKind::EndWithoutStart, text, line.begins());
                return self.end_again();
            }
            None => {}
        }
        if self.checkpoint(line) {
            return;
        }
        if let Some(fence) = Fence::of(text) {
            self.fence = match self.fence {
                Some(open) if open.is_closed_by(fence) => None,
                Some(open) => Some(open),
                None => Some(fence),
            };
        } else if self.fence.is_none() && self.is_finding_behind(text, ahead) {
            if let Some(last) = self.results.last_mut() {
                last.unread = last.unread.saturating_add(1);
            }
            self.unread_behind += 1;
            self.behind.add(heads::loose_head(text).and_then(|head| head.id).and_then(|id| id.number()));
            self.remarks.add(RemarkKind::UnreadFinding, text, line.begins());
        } else if text.trim_start().starts_with(['[', '*', '#', '-', '【'])
            && let Some(id) = heads::head(text).and_then(|head| head.id)
        {
            self.strays.add(id.number());
            self.behind.add(id.number());
        }
    }

    /// Whether a finding begins here, behind a result, that the result does not have.
    fn is_finding_behind(&self, text: &str, ahead: Ahead<'_, '_>) -> bool {
        let Some(last) = self.results.last() else { return false };
        if !last.cut.is_whole() {
            return false;
        }
        let Some(head) = heads::loose_head(text) else { return false };
        let run = ahead.run(false, false);
        let findings = self.results.iter().flat_map(|result| &result.findings);
        let is_said = findings
            .filter(|read| Some(&read.finding.id) == head.id.as_ref())
            .any(|read| is_repeated(&read.finding, &head.title, &run));
        run.is_finding() && !is_said
    }

    /// Takes what stands escaped in the strings of a line of JSON; of another text the results in it are counted as lost.
    fn strings(&mut self, line: &Line<'_>) -> bool {
        let text: &str = &line.text;
        if !inside_json::BEGINNINGS.iter().any(|word| text.contains(word)) {
            return false;
        }
        let strings = if self.depth < DEEPEST_STRING { inside_json::inner(text) } else { Vec::new() };
        let has_strings = !strings.is_empty();
        for string in strings {
            // Streams of agents say the last message twice; the second time may be cut.
            let is_said = |said: &String| said.starts_with(&string.text);
            if !string.is_closed && self.strings.iter().any(is_said) {
                continue;
            }
            // A checkpoint that a closed string ends with is as whole as its string.
            let last = string.text.lines().last().unwrap_or_default();
            for at in &string.halves {
                let escape = text.get(*at..*at + 6).unwrap_or_default();
                self.remarks.add(RemarkKind::HalfCharacter, escape, line.position(*at));
            }
            let is_settled = string.is_closed
                && checkpoint::checkpoint(last, true, line.begins()).is_some()
                && !string.text.ends_with('\n');
            let text = if is_settled { format!("{}\n", string.text) } else { string.text.clone() };
            let read = read_within(text.as_bytes(), self.depth + 1);
            self.take_within(read, line.position(string.begins), line.position(string.ends));
            self.strings.push(string.text);
        }
        if has_strings {
            return true;
        }
        let is_escaped = text.contains("===AGENT_RESULT===\\n");
        if is_escaped {
            self.remarks.add(RemarkKind::InsideJson, text, line.begins());
            // The instructions, repeated, are no result.
            let plain = text.replace("\\n", "\n").replace("===AGENT_RESULT===", "\n===AGENT_RESULT===");
            let read = read_within(plain.as_bytes(), DEEPEST_STRING);
            if read.results.iter().any(|result| result.begins.is_some()) {
                self.results.push(AgentResult {
                    begins: Some(line.begins()),
                    unread: 1,
                    ..AgentResult::nothing(line.ends())
                });
            }
        }
        is_escaped
    }

    /// Takes what was read of a string: all of it stands where the string does.
    fn take_within(&mut self, read: Transcript, begins: Position, ends: Position) {
        for checkpoint in read.checkpoints {
            self.checkpoints.push(Checkpoint { position: begins, ..checkpoint });
        }
        for remark in read.remarks {
            self.remarks.add(remark.kind, &remark.text, begins);
        }
        for mut result in read.results.into_iter().filter(|result| result.begins.is_some()) {
            (result.begins, result.ends) = (Some(begins), ends);
            for finding in &mut result.findings {
                finding.position = begins;
            }
            result.checkpoint = self.checkpoints.last().cloned();
            if !self.results.iter().rev().take(NEAR).any(|known| known.says_the_same(&result)) {
                (self.behind, self.unread_behind) = (Numbers::default(), 0);
                self.results.push(result);
            }
        }
    }

    /// Takes a second end with findings before it: the first stood in the evidence of a finding, so the result is cut
    /// there, and what stands behind is not known to be one.
    fn end_again(&mut self) {
        let behind = std::mem::take(&mut self.behind);
        let Some(result) = self.results.last_mut().filter(|result| result.cut.is_whole()) else { return };
        if behind.count == 0 {
            return;
        }
        let numbers = result.findings.iter().map(|read| read.finding.id.number());
        let mut ids = behind;
        for number in numbers {
            ids.add(number);
        }
        result.unread = result.unread.saturating_sub(std::mem::take(&mut self.unread_behind));
        result.numbers = ids;
        if result.agent_id.is_some() {
            result.cut = Cut::Mild;
            if let Some(last) = result.findings.last_mut().filter(|last| last.state == FindingState::Complete)
            {
                last.state = FindingState::Truncated;
            }
        } else {
            result.cut = Cut::Severe;
            result.discarded = ids.count;
            result.findings.clear();
        }
    }

    fn begin(&mut self, line: &Line<'_>) {
        self.open = Some(Block::new(line.begins(), quote_depth(&line.text), self.fence.take()));
    }

    /// Takes a line that is a checkpoint.
    fn checkpoint(&mut self, line: &Line<'_>) -> bool {
        let position = line.begins();
        match checkpoint::checkpoint(&line.text, line.is_settled, position) {
            None => return false,
            Some(Found::Checkpoint(checkpoint)) => self.checkpoints.push(checkpoint),
            Some(Found::Part(checkpoint)) => {
                self.checkpoints.push(checkpoint);
                self.remarks.add(RemarkKind::BrokenCheckpoint, &line.text, position);
            }
            Some(Found::Template) => self.remarks.add(RemarkKind::Template, &line.text, position),
            Some(Found::Broken) if !line.is_settled => {}
            Some(Found::Broken) => self.remarks.add(RemarkKind::BrokenCheckpoint, &line.text, position),
        }
        true
    }

    fn close(&mut self, block: Block, is_whole: bool, ends: Position) {
        let begins = block.begins;
        match block.finish(is_whole, ends, self.checkpoints.last().cloned(), &mut self.remarks) {
            Some(result) => {
                (self.behind, self.unread_behind) = (Numbers::default(), 0);
                self.results.push(result);
            }
            None => self.remarks.add(RemarkKind::Template, "===AGENT_RESULT===", begins),
        }
    }

    fn finish(mut self, end: Position) -> Transcript {
        if let Some(block) = self.open.take() {
            self.close(block, false, end);
        }
        if self.results.is_empty() {
            self.results.push(AgentResult {
                discarded: self.strays.count,
                checkpoint: self.checkpoints.last().cloned(),
                numbers: self.strays,
                ..AgentResult::nothing(end)
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
