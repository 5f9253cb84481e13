//! Detects the format of a text: JSON (also within Markdown fences and prose), tags, Markdown or plain text.

mod json_place;

use serde::{Deserialize, Serialize};

use json_place::{JsonPlace, PlaceFinder};

use super::json::{JsonMachine, ValueCount};
use super::markdown::MarkdownMachine;
use super::tags::{FirstTag, TagsMachine};
use crate::{Format, Hint, Verdict};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Detects the format, and avoids treating prose as JSON (PC-1):
///
/// - A value counts as JSON from its `{` or `[` on if it begins the text, or if it begins a fence that is
///   marked `json` or begins the text.
/// - Anywhere else, an object counts as JSON from its first colon on. An array before prose, such as `[1]`,
///   never counts.
/// - A text that violates the JSON grammar is prose. But if JSON with a colon begins the text, the text is
///   malformed.
///
/// A text counts as tags if it begins with a tag. It also does if a tag begins a line, no JSON precedes it,
/// and the text has no other Markdown syntax. HTML with Markdown around it is Markdown.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct AutoMachine {
    whole: OtherFormats,
    places: PlaceFinder,
    /// Number of byte order mark bytes at the beginning of the text.
    mark: usize,
    /// The part at the end of the text that may be JSON.
    candidate: Option<JsonCandidate>,
    /// The complete JSON before the candidate.
    found: Option<WholeJson>,
    /// The fault at which a text ceased to be JSON.
    broken: Option<JsonFault>,
}

/// The state of the formats other than JSON, for the whole text.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct OtherFormats {
    markdown: MarkdownMachine,
    /// The part at the end of the text that may contain tags.
    tags: Option<TaggedPart>,
}

/// A part of the text that begins with a tag.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TaggedPart {
    machine: TagsMachine,
    start: usize,
    /// Whether the whole text begins with this part.
    first: bool,
}

/// Where and why a text ceased to be JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct JsonFault {
    index: usize,
    reason: String,
}

/// Complete JSON in the text.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct WholeJson {
    /// Start of the first value.
    start: usize,
    end: usize,
    /// Whether the JSON consists of several consecutive values.
    several: bool,
    /// Position of the first raw control character in a string of this JSON.
    #[serde(default)]
    control: Option<usize>,
}

/// A part of the text that may be JSON: one value, and the whitespace after it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct JsonCandidate {
    machine: JsonMachine,
    start: usize,
    bracket: u8,
    place: JsonPlace,
    /// Whether it directly follows another value.
    follows: bool,
    /// Whether it counts as JSON even without a colon.
    trusted: bool,
    /// Whether its last line is blank.
    blank_line: bool,
}

impl JsonCandidate {
    fn new(start: usize, bracket: u8, place: JsonPlace) -> Self {
        // An unclosed quotation mark in prose would turn all following text into a string.
        let mut machine = JsonMachine::new(ValueCount::One);
        if !matches!(place, JsonPlace::First | JsonPlace::FirstFence) {
            machine.refuse_control_characters();
        }
        let trusted = place != JsonPlace::Prose;
        Self { machine, start, bracket, place, follows: false, trusted, blank_line: false }
    }

    /// Creates a candidate for a value that directly follows this one, at `start`.
    fn next(&self, start: usize, bracket: u8) -> Self {
        let trusted = self.bracket == bracket;
        Self { follows: true, trusted, ..Self::new(start, bracket, self.place) }
    }

    /// Processes bytes. Returns how many of them can belong to this candidate.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let base = self.machine.position();
        self.machine.push(bytes);
        let taken = self.machine.malformation().map_or(bytes.len(), |(index, _)| index - base);
        if let Some(&byte) = bytes[..taken].iter().rfind(|byte| !matches!(byte, b' ' | b'\t' | b'\r')) {
            self.blank_line = byte == b'\n';
        }
        taken
    }

    /// Whether the candidate counts as JSON while it follows the grammar.
    fn counts_as_json(&self) -> bool {
        self.trusted || self.machine.has_member()
    }

    /// Whether the candidate counts as complete JSON if `byte` follows.
    fn is_complete_before(&self, byte: u8) -> bool {
        self.machine.has_member()
            || matches!(self.place, JsonPlace::FirstFence | JsonPlace::JsonFence)
            || self.trusted && matches!(byte, b'{' | b'[')
    }

    /// Returns the position of the first raw control character in a string.
    fn control_character_position(&self) -> Option<usize> {
        self.machine.control_character().map(|index| self.start + index)
    }

    /// Whether the candidate is at the beginning of the text, possibly in a fence.
    fn begins_text(&self) -> bool {
        matches!(self.place, JsonPlace::First | JsonPlace::FirstFence)
    }
}

impl OtherFormats {
    fn push(&mut self, bytes: &[u8]) {
        self.markdown.push(bytes);
        if let Some(tags) = &mut self.tags {
            tags.machine.push(bytes);
        }
    }

    /// Looks for tags from here on, unless the text already contains some.
    fn begin_tags(&mut self, first: bool) {
        if self.tags.as_ref().is_none_or(|tags| tags.machine.is_only_text()) {
            let start = self.markdown.position();
            self.tags = Some(TaggedPart { machine: TagsMachine::for_unknown_format(), start, first });
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
                self.candidate = place.map(|place| JsonCandidate::new(base + at, chunk[at], place));
            }
        }
        self.whole.push(&chunk[at..]);
    }

    /// Returns the number of bytes at the beginning of `chunk` that belong to a byte order mark. The chunk
    /// begins at `base`.
    fn skip_byte_order_mark(&mut self, chunk: &[u8], base: usize) -> usize {
        if self.mark < base {
            return 0;
        }
        let missing = BYTE_ORDER_MARK.get(base..).unwrap_or_default();
        let taken = chunk.iter().zip(missing).take_while(|(byte, expected)| byte == expected).count();
        self.mark += taken;
        taken
    }

    /// Ends a candidate at `offset`, before `byte`, which does not belong to it.
    fn end_candidate(&mut self, candidate: &JsonCandidate, byte: u8, offset: usize) {
        let earlier = self.found.and_then(|found| found.control);
        let control = earlier.or_else(|| candidate.control_character_position());
        match candidate.machine.value_end() {
            Some(end) => {
                if candidate.is_complete_before(byte) {
                    let start = self.found.map_or(candidate.start, |found| found.start);
                    let end = candidate.start + end;
                    self.found = Some(WholeJson { start, end, several: candidate.follows, control });
                }
                if matches!(byte, b'{' | b'[') {
                    self.candidate = Some(candidate.next(offset, byte));
                }
            }
            None if candidate.begins_text() && candidate.machine.has_member() => {
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

    /// Returns the position of the first raw control character in a string of the detected JSON.
    pub(super) fn control_character(&self) -> Option<usize> {
        let earlier = self.found.and_then(|found| found.control);
        earlier.or_else(|| self.final_candidate().and_then(JsonCandidate::control_character_position))
    }

    /// Returns the candidate if it counts as JSON.
    fn final_candidate(&self) -> Option<&JsonCandidate> {
        self.candidate.as_ref().filter(|candidate| candidate.counts_as_json())
    }

    /// Returns the part with tags if the text counts as a text with tags.
    fn accepted_tags(&self) -> Option<&TaggedPart> {
        let tags = self.whole.tags.as_ref()?;
        let json =
            self.found.map(|found| found.start).or(self.final_candidate().map(|candidate| candidate.start));
        if self.broken.is_some() || json.is_some_and(|start| start < tags.start) {
            return None;
        }
        let is_markdown = self.whole.markdown.blocks().has_structure();
        let counts = match tags.machine.first() {
            // Once this limit is exceeded, further text must not change the verdict.
            _ if tags.machine.is_too_deep() => tags.first,
            Some(FirstTag::Other) => tags.first || !is_markdown,
            Some(FirstTag::Html) => !is_markdown,
            None => tags.first && json.is_none() && !tags.machine.is_only_text(),
        };
        counts.then_some(tags)
    }

    /// Returns the part with tags if it exceeds the limit of open elements.
    fn tags_over_limit(&self) -> Option<&TaggedPart> {
        self.accepted_tags().filter(|tags| tags.machine.is_too_deep())
    }

    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        let position = self.position();
        let follows = |start: usize, length: usize| start.checked_add(length) == Some(position);
        self.whole.markdown.is_consistent()
            && self.mark <= BYTE_ORDER_MARK.len()
            && self.candidate.as_ref().is_none_or(|candidate| {
                let machine = &candidate.machine;
                machine.is_consistent()
                    && machine.values() == ValueCount::One
                    && machine.malformation().is_none()
                    && follows(candidate.start, machine.position())
            })
            && self.whole.tags.as_ref().is_none_or(|tags| {
                tags.machine.is_consistent() && follows(tags.start, tags.machine.position())
            })
            && self.found.is_none_or(|found| found.start.max(found.end) <= position)
            && self.broken.as_ref().is_none_or(|broken| broken.index < position)
    }

    /// Returns the number of bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.whole.markdown.position()
    }

    /// Whether no continuation can make the text whole.
    pub(super) fn is_malformed(&self) -> bool {
        self.broken.is_some() || self.whole.markdown.is_malformed() || self.tags_over_limit().is_some()
    }

    /// Whether the text would be whole if it ended here.
    pub(super) fn is_whole(&self) -> bool {
        if self.is_malformed() {
            return false;
        }
        match (self.accepted_tags(), self.final_candidate()) {
            (Some(tags), _) => tags.machine.is_whole(),
            (None, Some(candidate)) => self.whole.markdown.text().is_whole() && candidate.machine.is_whole(),
            (None, None) if self.ends_in_markdown() => self.whole.markdown.is_whole(),
            (None, None) => self.whole.markdown.text().is_whole(),
        }
    }

    /// Returns the detected format.
    pub(super) fn detected_format(&self) -> Format {
        let several = match (self.accepted_tags(), self.final_candidate(), self.found) {
            (Some(_), _, _) => return Format::Tags,
            (None, Some(candidate), _) => candidate.follows,
            (None, None, Some(found)) if !self.ends_in_markdown() => found.several,
            (None, None, _) if self.is_markdown() => return Format::Markdown,
            (None, None, _) => return Format::Text,
        };
        if several { Format::Jsonl } else { Format::Json }
    }

    /// Whether Markdown determines the verdict. After JSON, it does so only if a construct is open that began
    /// after it.
    fn ends_in_markdown(&self) -> bool {
        let open = self.whole.markdown.blocks().open();
        self.broken.is_none()
            && self.found.is_none_or(|found| open.is_some_and(|(_, _, start)| start >= found.end))
    }

    fn is_markdown(&self) -> bool {
        let blocks = self.whole.markdown.blocks();
        blocks.has_structure() || blocks.open().is_some()
    }

    /// Returns a hint if prose seems to stop in the middle of a sentence.
    pub(super) fn hint(&self) -> Option<Hint> {
        let is_prose =
            self.final_candidate().is_none() && self.accepted_tags().is_none() && !self.is_malformed();
        if is_prose { self.whole.markdown.hint() } else { None }
    }

    /// Returns the verdict as if the text ended here.
    pub(super) fn verdict(&self) -> Verdict {
        let text = self.whole.markdown.text();
        if let Some(JsonFault { index, reason }) = &self.broken {
            // An incomplete byte order mark before the JSON is reported first, as invalid text.
            return match text.verdict() {
                Verdict::Malformed { index: earlier, reason } if earlier < *index => {
                    Verdict::Malformed { index: earlier, reason }
                }
                _ => Verdict::Malformed { index: *index, reason: reason.clone() },
            };
        }
        if let Some(tags) = self.tags_over_limit()
            && let Verdict::Malformed { index, reason } = tags.machine.verdict()
        {
            return Verdict::Malformed { index: tags.start + index, reason };
        }
        if text.is_malformed() {
            return text.verdict();
        }
        let found = self.found.map_or(0, |found| found.end);
        let (start, balanced, verdict) = match (self.accepted_tags(), self.final_candidate()) {
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
