//! Detects the format of a text: JSON (also within Markdown fences and prose), tags, Markdown or plain text.

mod place;

use serde::{Deserialize, Serialize};

use place::{JsonPlace, Places};

use super::json::{JsonMachine, Values};
use super::markdown::MarkdownMachine;
use super::tags::{FirstTag, TagsMachine};
use crate::{Format, Hint, Verdict};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Guesses the format. It avoids treating prose as JSON (PC-1):
///
/// - A text from `{` or `[` counts as JSON immediately if nothing precedes it or it is in a fence marked `json`, as
///   long as it follows the grammar.
/// - anywhere else it counts from an object's first colon on, and `[1]` before prose not at all;
/// - A text that violates the grammar is prose. It is malformed instead if it counted as JSON, had such a colon, and
///   nothing precedes it.
///
/// A text is treated as tags if it begins with a tag, or if a tag begins a line before any JSON and nothing else has
/// the form of Markdown. HTML with Markdown around it is Markdown.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct AutoMachine {
    whole: WholeText,
    places: Places,
    /// Number of byte order mark bytes at the beginning of the text.
    mark: usize,
    /// The last part of the text, if it may be JSON.
    candidate: Option<Candidate>,
    /// The complete JSON before that part.
    found: Option<WholeJson>,
    /// The end of the JSON of a text that ceased to be JSON.
    broken: Option<JsonFault>,
}

/// The state for the whole text in formats other than JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct WholeText {
    markdown: MarkdownMachine,
    /// The last part of the text, if it may have tags.
    tags: Option<TaggedPart>,
}

/// A part of the text that begins with a tag.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TaggedPart {
    machine: TagsMachine,
    start: usize,
    /// Whether the text begins with it.
    first: bool,
}

/// The position and reason at which a text ceased to be JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct JsonFault {
    index: usize,
    reason: String,
}

/// Complete JSON that was found.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct WholeJson {
    /// Start of the first value.
    start: usize,
    end: usize,
    /// Whether there are several values in sequence.
    several: bool,
    /// The first raw control character in one of their strings.
    #[serde(default)]
    control: Option<usize>,
}

/// A part of the text that may be JSON: one value, and whitespace after it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Candidate {
    machine: JsonMachine,
    start: usize,
    bracket: u8,
    place: JsonPlace,
    /// Whether a value directly precedes it.
    follows: bool,
    /// Whether it counts without an object's colon.
    trusted: bool,
    /// Whether its last line is blank.
    blank_line: bool,
}

impl Candidate {
    fn new(start: usize, bracket: u8, place: JsonPlace) -> Self {
        // In prose, an unclosed quotation mark would turn all following text into a string.
        let mut machine = JsonMachine::new(Values::One);
        if !matches!(place, JsonPlace::First | JsonPlace::FirstFence) {
            machine.refuse_control_characters();
        }
        let trusted = place != JsonPlace::Prose;
        Self { machine, start, bracket, place, follows: false, trusted, blank_line: false }
    }

    /// Creates a candidate for a value that directly follows, at `start`.
    fn next(&self, start: usize, bracket: u8) -> Self {
        let trusted = self.bracket == bracket;
        Self { follows: true, trusted, ..Self::new(start, bracket, self.place) }
    }

    /// Processes bytes. Returns how many of them may belong to it.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let base = self.machine.position();
        self.machine.push(bytes);
        let taken = self.machine.malformation().map_or(bytes.len(), |(index, _)| index - base);
        if let Some(&byte) = bytes[..taken].iter().rfind(|byte| !matches!(byte, b' ' | b'\t' | b'\r')) {
            self.blank_line = byte == b'\n';
        }
        taken
    }

    /// Whether it counts as JSON while it follows the grammar.
    fn counts(&self) -> bool {
        self.trusted || self.machine.has_member()
    }

    /// Whether it counts as complete JSON if `byte` follows.
    fn counts_before(&self, byte: u8) -> bool {
        self.machine.has_member()
            || matches!(self.place, JsonPlace::FirstFence | JsonPlace::JsonFence)
            || self.trusted && matches!(byte, b'{' | b'[')
    }

    /// The first raw control character in its strings.
    fn control_character(&self) -> Option<usize> {
        self.machine.control_character().map(|index| self.start + index)
    }

    /// Whether only values of its kind precede it.
    fn is_first(&self) -> bool {
        matches!(self.place, JsonPlace::First | JsonPlace::FirstFence)
    }
}

impl WholeText {
    fn push(&mut self, bytes: &[u8]) {
        self.markdown.push(bytes);
        if let Some(tags) = &mut self.tags {
            tags.machine.push(bytes);
        }
    }

    /// Looks for tags from here on, unless the text already has some.
    fn begin_tags(&mut self, first: bool) {
        if self.tags.as_ref().is_none_or(|tags| tags.machine.is_mere_text()) {
            let start = self.markdown.position();
            self.tags = Some(TaggedPart { machine: TagsMachine::guess(), start, first });
        }
    }
}

impl AutoMachine {
    /// Reads the next bytes of the text.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let base = self.position();
        let mut at = self.skip_byte_order_mark(chunk, base);
        self.whole.push(&chunk[..at]);
        while at < chunk.len() && self.broken.is_none() {
            if let Some(mut candidate) = self.candidate.take() {
                let taken = candidate.push(&chunk[at..]);
                self.whole.push(&chunk[at..at + taken]);
                at += taken;
                match chunk.get(at) {
                    Some(&byte) => self.end_candidate(&candidate, byte, base + at),
                    None => self.candidate = Some(candidate),
                }
            } else {
                let (taken, place) = self.places.find(&chunk[at..], &mut self.whole);
                at += taken;
                self.candidate = place.map(|place| Candidate::new(base + at, chunk[at], place));
            }
        }
        self.whole.push(&chunk[at..]);
    }

    /// Returns the number of bytes at the beginning of `chunk` that belong to a byte order mark. The chunk is at
    /// `base`.
    fn skip_byte_order_mark(&mut self, chunk: &[u8], base: usize) -> usize {
        if self.mark < base {
            return 0;
        }
        let missing = BYTE_ORDER_MARK.get(base..).unwrap_or_default();
        let taken = chunk.iter().zip(missing).take_while(|(byte, expected)| byte == expected).count();
        self.mark += taken;
        taken
    }

    /// Ends a candidate before `byte`, which does not belong to it.
    fn end_candidate(&mut self, candidate: &Candidate, byte: u8, offset: usize) {
        let earlier = self.found.and_then(|found| found.control);
        let control = earlier.or_else(|| candidate.control_character());
        match candidate.machine.value_end() {
            Some(end) => {
                if candidate.counts_before(byte) {
                    let start = self.found.map_or(candidate.start, |found| found.start);
                    let end = candidate.start + end;
                    self.found = Some(WholeJson { start, end, several: candidate.follows, control });
                }
                if matches!(byte, b'{' | b'[') {
                    self.candidate = Some(candidate.next(offset, byte));
                }
            }
            None if candidate.is_first() && candidate.machine.has_member() => {
                let reason = candidate
                    .machine
                    .malformation()
                    .map_or_else(String::new, |(_, reason)| reason.to_owned());
                self.found = Some(WholeJson {
                    start: candidate.start,
                    end: offset,
                    several: candidate.follows,
                    control,
                });
                self.broken = Some(JsonFault { index: offset, reason });
            }
            None => {}
        }
        self.places.resume(candidate.blank_line);
    }

    /// The first raw control character in a string of the JSON that was found.
    pub(super) fn control_character(&self) -> Option<usize> {
        let earlier = self.found.and_then(|found| found.control);
        earlier.or_else(|| self.final_candidate().and_then(Candidate::control_character))
    }

    /// Returns the last part of the text, if it counts as JSON.
    fn final_candidate(&self) -> Option<&Candidate> {
        self.candidate.as_ref().filter(|candidate| candidate.counts())
    }

    /// Returns the tags, if the text counts as one with tags.
    fn tags(&self) -> Option<&TaggedPart> {
        let tags = self.whole.tags.as_ref()?;
        let json =
            self.found.map(|found| found.start).or(self.final_candidate().map(|candidate| candidate.start));
        if self.broken.is_some() || json.is_some_and(|start| start < tags.start) {
            return None;
        }
        let is_markdown = self.whole.markdown.blocks().has_structure();
        let counts = match tags.machine.first() {
            // No further text changes this.
            _ if tags.machine.is_too_deep() => tags.first,
            Some(FirstTag::Other) => tags.first || !is_markdown,
            Some(FirstTag::Html) => !is_markdown,
            None => tags.first && json.is_none() && !tags.machine.is_mere_text(),
        };
        counts.then_some(tags)
    }

    /// Returns the tags, if the text counts as one with tags and exceeds the limit of open elements.
    fn too_deep(&self) -> Option<&TaggedPart> {
        self.tags().filter(|tags| tags.machine.is_too_deep())
    }

    /// Whether this state is reachable, as far as later code relies on it.
    pub(super) fn is_consistent(&self) -> bool {
        let position = self.position();
        let follows = |start: usize, length: usize| start.checked_add(length) == Some(position);
        self.whole.markdown.is_consistent()
            && self.mark <= BYTE_ORDER_MARK.len()
            && self.candidate.as_ref().is_none_or(|candidate| {
                let machine = &candidate.machine;
                machine.is_consistent()
                    && machine.values() == Values::One
                    && machine.malformation().is_none()
                    && follows(candidate.start, machine.position())
            })
            && self.whole.tags.as_ref().is_none_or(|tags| {
                tags.machine.is_consistent() && follows(tags.start, tags.machine.position())
            })
            && self.found.is_none_or(|found| found.start.max(found.end) <= position)
            && self.broken.as_ref().is_none_or(|broken| broken.index < position)
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.whole.markdown.position()
    }

    /// Whether no continuation could make the text whole.
    pub(super) fn is_malformed(&self) -> bool {
        self.broken.is_some() || self.whole.markdown.is_malformed() || self.too_deep().is_some()
    }

    /// Whether the text would be whole if it ended here, as far as is known.
    pub(super) fn is_whole(&self) -> bool {
        if self.is_malformed() {
            return false;
        }
        match (self.tags(), self.final_candidate()) {
            (Some(tags), _) => tags.machine.is_whole(),
            (None, Some(candidate)) => self.whole.markdown.text().is_whole() && candidate.machine.is_whole(),
            (None, None) if self.ends_in_markdown() => self.whole.markdown.is_whole(),
            (None, None) => self.whole.markdown.text().is_whole(),
        }
    }

    /// Returns the detected format.
    pub(super) fn detected_format(&self) -> Format {
        let several = match (self.tags(), self.final_candidate(), self.found) {
            (Some(_), _, _) => return Format::Tags,
            (None, Some(candidate), _) => candidate.follows,
            (None, None, Some(found)) if !self.ends_in_markdown() => found.several,
            (None, None, _) if self.is_markdown() => return Format::Markdown,
            (None, None, _) => return Format::Text,
        };
        if several { Format::Jsonl } else { Format::Json }
    }

    /// Whether Markdown decides if a construct is open. After JSON only constructs that began there count.
    fn ends_in_markdown(&self) -> bool {
        let open = self.whole.markdown.blocks().open();
        self.broken.is_none()
            && self.found.is_none_or(|found| open.is_some_and(|(_, _, start)| start >= found.end))
    }

    fn is_markdown(&self) -> bool {
        let blocks = self.whole.markdown.blocks();
        blocks.has_structure() || blocks.open().is_some()
    }

    /// Whether prose seems to stop in the middle of a sentence.
    pub(super) fn hint(&self) -> Option<Hint> {
        let is_prose = self.final_candidate().is_none() && self.tags().is_none() && !self.is_malformed();
        if is_prose { self.whole.markdown.hint() } else { None }
    }

    /// Returns the verdict as if the text ended here.
    pub(super) fn verdict(&self) -> Verdict {
        let text = self.whole.markdown.text();
        if let Some(JsonFault { index, reason }) = &self.broken {
            // An incomplete byte order mark before the JSON is a fault of the text.
            return match text.verdict() {
                Verdict::Malformed { index: earlier, reason } if earlier < *index => {
                    Verdict::Malformed { index: earlier, reason }
                }
                _ => Verdict::Malformed { index: *index, reason: reason.clone() },
            };
        }
        if let Some(tags) = self.too_deep()
            && let Verdict::Malformed { index, reason } = tags.machine.verdict()
        {
            return Verdict::Malformed { index: tags.start + index, reason };
        }
        if text.is_malformed() {
            return text.verdict();
        }
        let found = self.found.map_or(0, |found| found.end);
        let (start, balanced, verdict) = match (self.tags(), self.final_candidate()) {
            (Some(tags), _) => (tags.start, tags.start, tags.machine.verdict()),
            (None, Some(candidate)) => (candidate.start, found, candidate.machine.verdict()),
            (None, None) if self.ends_in_markdown() => return self.whole.markdown.verdict(),
            (None, None) => return text.verdict(),
        };
        match verdict {
            Verdict::Truncated(mut truncation) => {
                truncation.truncation_index += start;
                truncation.balanced_index =
                    if truncation.balanced_index > 0 { truncation.balanced_index + start } else { balanced };
                Verdict::Truncated(truncation)
            }
            _ => text.verdict(),
        }
    }
}

#[cfg(test)]
mod tests;
