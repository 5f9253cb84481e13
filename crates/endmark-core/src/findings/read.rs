//! Reads what agents hand over, in whatever spelling. (AR-1, AR-3)
//!
//! A text is read line by line; what a line is, is decided by the line itself and by what is open, so that the cut of a
//! text never changes what stands before it. Only an open fence of code looks a few lines ahead.

mod ahead;
mod block;
mod checkpoint;
mod draft;
mod evidence;
mod header;
mod heads;
mod json;
mod json_result;
mod lines;
mod names;
mod table;
#[cfg(test)]
mod tests;
mod words;

use super::expected::Numbers;
use super::transcript::{
    AgentResult, Checkpoint, Cut, FindingState, Position, Remark, RemarkKind, Transcript,
};
use block::{Block, Closed};
use checkpoint::Found;
use evidence::Fence;
use lines::{Line, lines, quote_depth, unquoted};
use words::Marker;

/// More remarks are counted, but not kept.
const MOST_REMARKS: usize = 200;

/// So much of a line is repeated in a remark, in characters.
const SHOWN: usize = 60;

/// Reads an agent's transcript: its results, its checkpoints, and what had to be ignored (AR-1, AR-3).
///
/// Never fails: a text in which no result begins has one result, which is a severe cut. Runs in time linear in the
/// text, and keeps no more than the text.
///
/// ```
/// use endmark_core::findings::{Cut, FindingState, read};
///
/// let text = "===AGENT_RESULT===\nagent_id: auth-2\n\n**[F1] SQL from a parameter**\n- **Severity:** high\n\
///             - Location: src/user.rs:41\n- Source: `name`\n- Sink: query\n- Evidence:\n  ```\n  q(name)\n  ```\n\n**[F2] A sec";
/// let result = &read(text.as_bytes()).results[0];
/// assert_eq!(result.cut, Cut::Mild);
/// assert_eq!(result.findings[0].state, FindingState::Complete);
/// assert_eq!(result.findings[1].state, FindingState::NeedsReaudit);
/// ```
pub fn read(text: &[u8]) -> Transcript {
    let lines = lines(text);
    let end =
        lines.last().map_or(Position { line: 1, column: 1, byte: 0 }, |last| last.end_of_text(text.len()));
    let mut reader = Reader::default();
    for at in 0..lines.len() {
        if lines[at].byte >= reader.taken_up_to && !reader.json(text, &lines, at) {
            reader.line(&lines, at);
        }
    }
    reader.finish(end)
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
    /// Up to where the text was taken as JSON, in bytes.
    taken_up_to: usize,
    /// Up to where JSON was looked for in vain.
    tried_up_to: usize,
    /// Where the next marker is, unless that is passed.
    marker_at: usize,
}

/// What there is to remark.
#[derive(Default)]
struct Remarks {
    list: Vec<Remark>,
    omitted: usize,
}

impl Remarks {
    fn add(&mut self, kind: RemarkKind, text: &str, position: Position) {
        if self.list.len() == MOST_REMARKS {
            self.omitted += 1;
            return;
        }
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
        let is_in_block = self.open.is_some();
        if line.byte < self.tried_up_to
            || !line.text.trim_start().starts_with(['{', '['])
            || self.open.as_ref().is_some_and(|block| !block.is_before_findings())
        {
            return false;
        }
        let Some(within) = text[line.byte..].iter().position(|byte| matches!(byte, b'{' | b'[')) else {
            return false;
        };
        let text = &text[..self.next_marker(text, lines, at)];
        match json_result::results_at(text, lines, line.byte + within, is_in_block, &mut self.remarks) {
            Err(looked_at) => {
                self.tried_up_to = looked_at;
                false
            }
            Ok(found) => {
                self.taken_up_to = found.ends;
                for mut result in found.results {
                    if let Some(block) = &mut self.open {
                        block.take(result);
                    } else {
                        result.checkpoint = self.checkpoints.last().cloned();
                        self.behind = Numbers::default();
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
            None => self.outside(line),
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

    fn outside(&mut self, line: &Line<'_>) {
        let text = unquoted(&line.text, quote_depth(&line.text));
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
        } else if text.contains("===AGENT_RESULT===") && text.contains("\\n") {
            self.remarks.add(RemarkKind::InsideJson, text, line.begins());
        } else if text.trim_start().starts_with(['[', '*', '#', '-', '【'])
            && let Some(id) = heads::head(text).and_then(|head| head.id)
        {
            self.strays.add(id.number());
            self.behind.add(id.number());
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
                self.behind = Numbers::default();
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
                agent_id: None,
                dimensions: Vec::new(),
                declared_findings: None,
                findings: Vec::new(),
                discarded: self.strays.count,
                unread: 0,
                cut: Cut::Severe,
                begins: None,
                ends: end,
                checkpoint: self.checkpoints.last().cloned(),
                numbers: self.strays,
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
