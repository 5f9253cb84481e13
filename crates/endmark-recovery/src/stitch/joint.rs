//! The two parts to join, and the facts about them that do not depend on a candidate.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::fence;
use super::overlap::EndFacts;
use super::reasoning::{self, ReasoningSigns};
use super::register::is_code_character;
use super::repetition;
use super::seam::AskedFrom;
use super::units::{Reading, Units};

/// Distance from the cut, in bytes, at which the detector is saved. The last settled token nearly always ends
/// after it, so the text need not be read twice.
const SAVED_STATE_BYTES: usize = 4_096;

/// How the continuation was requested, and what it may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContinuationMode {
    /// A prompt requested it. It may contain remarks about the text.
    Prompt,
    /// A prompt requested it, and it has proved its seam. Its end belongs to the text, except for a remark to
    /// a reader whom the text never addresses.
    Proven,
    /// It continued its own unfinished message at the cut, however it was requested. In text without a
    /// grammar, only a closing remark after a JSON document counts as a remark.
    Shown,
    /// It is itself cut, however it was requested. So its end is not a remark.
    Unfinished,
    /// The server is known to continue the same message. So neither its beginning is an announcement nor its
    /// end a remark.
    ByMessage,
}

/// Two parts to join.
// Fields: all facts about one seam. Each check uses a few of them.
pub(super) struct Joint<'a> {
    /// The first part, without the bytes of an incomplete character at the cut.
    pub(super) initial: &'a str,
    /// The continuation, without reasoning at its beginning and an incomplete character at its end.
    pub(super) continuation: &'a str,
    /// The reasoning at the beginning of the continuation, which is removed.
    pub(super) reasoning: &'a str,
    /// The signs of reasoning in the first part and in the request.
    pub(super) known_signs: ReasoningSigns,
    /// The format of the merged text. It is never [`Format::Auto`].
    pub(super) format: Format,
    pub(super) from: AskedFrom,
    pub(super) mode: ContinuationMode,
    /// Length of the settled part of the first part, in bytes.
    pub(super) settled_bytes: usize,
    /// The states of the detector at the end of the first part, and at the end of its settled part.
    state_at_cut: Detector,
    state_at_settled: Detector,
    /// The verdict on the first part.
    pub(super) verdict: Verdict,
    /// The units of the settled part of the first part, and of the whole first part.
    pub(super) settled_units: Units<'a>,
    pub(super) units: Units<'a>,
    /// Whether the cut is in a string, or in text without a grammar.
    pub(super) in_text: bool,
    /// In text without a grammar: whether the cut is in a code fence.
    pub(super) fence_is_open: bool,
    /// Cache of the costs of repetitions, by end and length.
    surprises: RefCell<HashMap<(usize, usize), f64>>,
    /// Cache of facts about the ends of the first part, by position.
    ends: RefCell<HashMap<usize, EndFacts>>,
    /// Positions of signs of reasoning in the continuation that are not in `known_signs`, on demand.
    signs: OnceCell<Vec<usize>>,
    /// Number of bytes that were dropped from both parts at the beginning.
    pub(super) dropped_bytes: usize,
    /// Whether both parts contain bytes of a cut character, which cannot be restored.
    pub(super) has_lost_character: bool,
}

impl<'a> Joint<'a> {
    /// Whether a range of the continuation contains a new sign of reasoning, or ends in part of one.
    pub(super) fn has_reasoning_sign(&self, start: usize, end: usize) -> bool {
        let places = self.signs.get_or_init(|| reasoning::sign_places(self.continuation, self.known_signs));
        reasoning::has_sign_within(self.continuation, (start, end), self.known_signs, places)
    }

    pub(super) fn new(initial: &'a str, continuation: &'a str, format: &Format, from: AskedFrom) -> Self {
        Self::with_reasoning_signs(initial, continuation, format, from, ReasoningSigns::default())
    }

    /// Creates a joint like `new`, with the signs of reasoning of the request.
    pub(super) fn with_reasoning_signs(
        initial: &'a str,
        continuation: &'a str,
        format: &Format,
        from: AskedFrom,
        known: ReasoningSigns,
    ) -> Self {
        let known = known.union(ReasoningSigns::from_text(initial));
        let lead =
            reasoning::continuation_beginning(initial, continuation, known, reasoning::MIN_PARTIAL_BYTES);
        let length = lead.length().unwrap_or(continuation.len());
        let (reasoning, continuation) = continuation.split_at(length);
        let sound_initial = initial.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let sound_continuation = continuation.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let dropped = initial.len() - sound_initial.len() + continuation.len() - sound_continuation.len();
        let lost_character =
            sound_initial.len() < initial.len() && continuation.starts_with(char::REPLACEMENT_CHARACTER);
        let format = resolve_format(format, sound_initial);
        let has_grammar = matches!(format, Format::Json | Format::Jsonl);
        let near = sound_initial.len().saturating_sub(SAVED_STATE_BYTES);
        let mut near_cut = Detector::new(&format);
        near_cut.push(&sound_initial.as_bytes()[..near]);
        let mut at_cut = near_cut.clone();
        at_cut.push(&sound_initial.as_bytes()[near..]);
        let verdict = at_cut.verdict();
        let settled = match &verdict {
            Verdict::Truncated(truncation) if has_grammar => {
                sound_initial.floor_char_boundary(truncation.truncation_index)
            }
            _ => sound_initial.len(),
        };
        let at_settled = if settled == sound_initial.len() {
            at_cut.clone()
        } else {
            let (mut state, from) =
                if settled < near { (Detector::new(&format), 0) } else { (near_cut, near) };
            state.push(&sound_initial.as_bytes()[from..settled]);
            state
        };
        // In a string, a raw line feed ends the string before a fence or remark, unless the model also writes
        // raw line feeds in strings.
        let (mut at_cut, mut at_settled) = (at_cut, at_settled);
        if at_cut.control_character().is_none() {
            at_cut.refuse_control_characters();
            at_settled.refuse_control_characters();
        }
        let reading = if has_grammar { Reading::Structure } else { Reading::Plain };
        let (settled_units, units) = Units::read_both(sound_initial, settled, reading);
        Self {
            in_text: settled_units.ends_in_content,
            fence_is_open: !has_grammar && fence::line_count(sound_initial) % 2 == 1,
            initial: sound_initial,
            continuation: sound_continuation,
            signs: OnceCell::new(),
            reasoning,
            known_signs: known,
            format,
            from,
            mode: ContinuationMode::Prompt,
            settled_bytes: settled,
            state_at_cut: at_cut,
            state_at_settled: at_settled,
            verdict,
            settled_units,
            units,
            surprises: RefCell::default(),
            ends: RefCell::default(),
            dropped_bytes: dropped,
            has_lost_character: lost_character,
        }
    }

    /// Sets how the continuation was requested.
    pub(super) fn with_mode(self, wanted_mode: ContinuationMode) -> Self {
        Self { mode: wanted_mode, ..self }
    }

    /// Whether the format is JSON or JSON Lines, so that the grammar can reject a seam.
    pub(super) fn has_grammar(&self) -> bool {
        matches!(self.format, Format::Json | Format::Jsonl)
    }

    /// Whether the first part is already whole, and the continuation is more than whitespace, a closing
    /// fence, or the same text again. A number at the end of the first part may still continue.
    pub(super) fn has_nothing_to_join(&self) -> bool {
        let text = self.initial.trim_start_matches('\u{feff}').trim_start();
        let can_end = match self.format {
            Format::Json => {
                !text.starts_with(|character: char| character == '-' || character.is_ascii_digit())
            }
            Format::Marker(_) => true,
            _ => false,
        };
        let rest = self.continuation.trim();
        let is_rest = !rest.is_empty()
            && fence::rest_after_closing(rest).is_none_or(|behind| !behind.trim().is_empty());
        can_end && self.verdict.is_whole() && is_rest && rest != self.initial.trim()
    }

    /// Whether the first part ends in a token that may still change.
    pub(super) fn has_unsettled_token(&self) -> bool {
        self.settled_bytes < self.initial.len()
    }

    /// Returns the detector state after the first `keep` bytes of the first part.
    pub(super) fn state_at(&self, keep: usize) -> Detector {
        if keep == self.initial.len() { self.state_at_cut.clone() } else { self.state_at_settled.clone() }
    }

    /// Returns how unlikely it is, in bits, that the last `length` bytes before `keep` occur a second time
    /// directly after it.
    pub(super) fn repetition_cost(&self, keep: usize, length: usize) -> f64 {
        if let Some(known) = self.surprises.borrow().get(&(keep, length)) {
            return *known;
        }
        let surprise = repetition::repetition_cost(
            &self.initial[..keep],
            length,
            self.ends.borrow_mut().entry(keep).or_default(),
        );
        self.surprises.borrow_mut().insert((keep, length), surprise);
        surprise
    }

    /// Returns the shortest period of the last `length` bytes of the first part, in bytes.
    pub(super) fn final_period(&self, length: usize) -> usize {
        let text = self.initial.as_bytes();
        self.ends.borrow_mut().entry(text.len()).or_default().find_period(text, length)
    }

    /// Whether the last `length` bytes of the first part are periodic, or repeat the bytes before them. Then
    /// the number of periods is unknown.
    pub(super) fn is_periodic(&self, length: usize) -> bool {
        let end = &self.initial[self.initial.ceil_char_boundary(self.initial.len() - length)..];
        let twice = length * 2;
        length > 0
            && !end.trim().is_empty()
            && (self.final_period(length) * 2 <= length
                || twice <= self.initial.len() && self.final_period(twice) <= length)
    }

    /// Returns the units of the first `keep` bytes of the first part.
    pub(super) fn units_at(&self, keep: usize) -> &Units<'a> {
        if keep == self.settled_bytes { &self.settled_units } else { &self.units }
    }

    /// Returns the ways to read text of this format if it is unknown whether the text is inside a string.
    pub(super) fn readings(&self) -> &'static [Reading] {
        if self.has_grammar() {
            // A repetition may begin within an escape, so also read letter by letter.
            &[Reading::Structure, Reading::Content, Reading::Plain]
        } else {
            &[Reading::Plain]
        }
    }

    /// Whether a fence at the beginning of the continuation would be on its own line if it were joined
    /// unchanged.
    pub(super) fn has_separate_fence(&self) -> bool {
        let blank = self.continuation.len() - self.continuation.trim_start().len();
        self.initial.is_empty() || self.initial.ends_with('\n') || self.continuation[..blank].contains('\n')
    }

    /// Whether the continuation is a single code block that the first part does not announce. The fence is
    /// then a wrapper, and not part of the text.
    pub(super) fn is_single_block(&self) -> bool {
        let Some(length) = fence::opening_line_end(self.continuation) else { return false };
        let closed = fence::is_closed(&self.continuation[length..]);
        closed && fence::line_count(self.initial) == 0 && !self.announces_block()
    }

    /// Whether the first part announces a block: it ends in a colon that is not part of code.
    pub(super) fn announces_block(&self) -> bool {
        let line = self.initial.trim_end().lines().next_back().unwrap_or_default();
        let behind =
            fence::opening_line_end(self.continuation).map_or("", |length| &self.continuation[length..]);
        line.ends_with(':') && !line.contains(is_code_character) && !behind.starts_with([' ', '\t'])
    }
}

/// The units of the first part in all readings. Letter-by-letter readings are computed on demand, because
/// they are rarely needed.
pub(super) struct Readings<'j> {
    joint: &'j Joint<'j>,
    at_cut: OnceCell<Units<'j>>,
    at_settled: OnceCell<Units<'j>>,
}

impl<'j> Readings<'j> {
    pub(super) fn new(joint: &'j Joint<'j>) -> Self {
        Self { joint, at_cut: OnceCell::new(), at_settled: OnceCell::new() }
    }

    /// Returns the units of the first `keep` bytes, which must end at the cut or at the end of the settled
    /// part.
    pub(super) fn at(&self, keep: usize, reading: Reading) -> &Units<'j> {
        if reading != Reading::Plain || !self.joint.has_grammar() {
            return self.joint.units_at(keep);
        }
        let letters = if keep == self.joint.initial.len() { &self.at_cut } else { &self.at_settled };
        letters.get_or_init(|| Units::read(&self.joint.initial[..keep], Reading::Plain))
    }
}

/// Resolves `auto`: JSON if the first part can be a beginning of JSON. Otherwise tags or Markdown if the
/// first part has their form, or else text.
fn resolve_format(format: &Format, initial: &str) -> Format {
    if *format != Format::Auto {
        return format.clone();
    }
    let state_in = |format: Format| {
        let mut detector = Detector::new(&format);
        detector.push(initial.as_bytes());
        detector
    };
    let could_be = |format: Format| (!state_in(format.clone()).is_malformed()).then_some(format);
    let text = initial.trim_start();
    if text.starts_with(['{', '[']) {
        return could_be(Format::Json).or_else(|| could_be(Format::Jsonl)).unwrap_or(Format::Text);
    }
    match state_in(Format::Auto).detection().detected {
        Some(Format::Tags) if text.starts_with('<') => Format::Tags,
        Some(Format::Markdown) => Format::Markdown,
        _ => Format::Text,
    }
}
