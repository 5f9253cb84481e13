//! The two parts that are to be joined, and what is known of them before any seam is proposed.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::fence;
use super::overlap::Ends;
use super::reasoning::{self, ReasoningSigns};
use super::register::of_code;
use super::repetition;
use super::seam::AskedFrom;
use super::units::{Reading, Units};

/// The last settled token ends hardly ever further before the cut, in bytes: the detector is saved there, so that no
/// text is read twice.
const NEAR_THE_CUT: usize = 4_096;

/// How a model was brought to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// By a prompt, as far as is known: it may say something about the text.
    InWords,
    /// By a prompt, and its answer proved where it goes on: it does as told, and what stands at its end is the text's own, unless
    /// it speaks to a reader to whom the text never does.
    Proven,
    /// In any way, and it went on at the cut with its own unfinished message: nothing behind a text without grammar is a remark,
    /// but for leave behind a document of JSON.
    Shown,
    /// In any way, and the continuation is itself cut: nothing at its end is a remark.
    Unfinished,
    /// By its own unfinished message, with which its server is known to go on: nor is anything in front an announcement.
    ByMessage,
}

/// Two parts to be joined.
pub(super) struct Joint<'a> {
    /// The first part, without the remains of a character that the cut went through.
    pub(super) initial: &'a str,
    /// The continuation, without such remains at its end and reasoning at its beginning.
    pub(super) continuation: &'a str,
    /// The reasoning that the continuation begins with.
    pub(super) reasoning: &'a str,
    /// The signs of reasoning that are known to the text: those of the first part and of the request.
    pub(super) known: ReasoningSigns,
    /// What the merged text is to be; never [`Format::Auto`].
    pub(super) format: Format,
    pub(super) from: AskedFrom,
    pub(super) asked: Asked,
    /// Up to here the first part is settled.
    pub(super) settled: usize,
    /// The detector's state where the first part ends, and where its settled part ends.
    at_cut: Detector,
    at_settled: Detector,
    /// What detection says of the first part.
    pub(super) verdict: Verdict,
    /// The units of the settled part of the first part, and of all of it.
    pub(super) settled_units: Units<'a>,
    pub(super) units: Units<'a>,
    /// Whether the cut goes through a text: a string of a grammar, or text without grammar.
    pub(super) in_text: bool,
    /// Whether the cut stands inside a code fence; in text without grammar.
    pub(super) fence_is_open: bool,
    /// What is known already of how surprising repetitions are, by where they end and how long they are.
    surprises: RefCell<HashMap<(usize, usize), f64>>,
    /// What is known of the ends of the first part, by where it is taken to end.
    ends: RefCell<HashMap<usize, Ends>>,
    /// Where the continuation has whole signs of reasoning that are not known.
    signs: OnceCell<Vec<usize>>,
    /// Bytes dropped of both sides before anything else.
    pub(super) dropped: usize,
    /// Whether both sides show remains of one character: it cannot be known any more.
    pub(super) lost_character: bool,
}

impl<'a> Joint<'a> {
    /// Whether this range of the continuation has a sign of reasoning that is not known, or ends in a part of one.
    pub(super) fn has_reasoning_sign(&self, start: usize, end: usize) -> bool {
        let places = self.signs.get_or_init(|| reasoning::sign_places(self.continuation, self.known));
        reasoning::has_sign_within(self.continuation, (start, end), self.known, places)
    }

    pub(super) fn new(initial: &'a str, continuation: &'a str, format: &Format, from: AskedFrom) -> Self {
        Self::knowing(initial, continuation, format, from, ReasoningSigns::default())
    }

    /// The same where the request has these signs of reasoning.
    pub(super) fn knowing(
        initial: &'a str,
        continuation: &'a str,
        format: &Format,
        from: AskedFrom,
        known: ReasoningSigns,
    ) -> Self {
        let known = known.and(ReasoningSigns::of(initial));
        let lead = reasoning::lead(initial, continuation, known, reasoning::MIN_PARTIAL_BYTES);
        let length = lead.length().unwrap_or(continuation.len());
        let (reasoning, continuation) = continuation.split_at(length);
        let sound_initial = initial.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let sound_continuation = continuation.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let dropped = initial.len() - sound_initial.len() + continuation.len() - sound_continuation.len();
        let lost_character =
            sound_initial.len() < initial.len() && continuation.starts_with(char::REPLACEMENT_CHARACTER);
        let format = resolved(format, sound_initial);
        let has_grammar = matches!(format, Format::Json | Format::Jsonl);
        let near = sound_initial.len().saturating_sub(NEAR_THE_CUT);
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
        // A raw line feed tells a fence or words about the text from the rest of a string, unless the model writes such itself.
        let (mut at_cut, mut at_settled) = (at_cut, at_settled);
        if at_cut.control_character().is_none() {
            at_cut.refuse_control_characters();
            at_settled.refuse_control_characters();
        }
        let reading = if has_grammar { Reading::Structure } else { Reading::Plain };
        let (settled_units, units) = Units::read_both(sound_initial, settled, reading);
        Self {
            in_text: settled_units.ends_in_content,
            fence_is_open: !has_grammar && fence::lines(sound_initial) % 2 == 1,
            initial: sound_initial,
            continuation: sound_continuation,
            signs: OnceCell::new(),
            reasoning,
            known,
            format,
            from,
            asked: Asked::InWords,
            settled,
            at_cut,
            at_settled,
            verdict,
            settled_units,
            units,
            surprises: RefCell::default(),
            ends: RefCell::default(),
            dropped,
            lost_character,
        }
    }

    /// The same where the model was brought to go on in this way.
    pub(super) fn asked(self, asked: Asked) -> Self {
        Self { asked, ..self }
    }

    /// Whether the grammar of JSON decides about a seam.
    pub(super) fn has_grammar(&self) -> bool {
        matches!(self.format, Format::Json | Format::Jsonl)
    }

    /// Whether the first part has the end that its format demands, and the continuation is more than white space, the end of a
    /// fence or the same text again. A number may still go on.
    pub(super) fn has_nothing_to_join(&self) -> bool {
        let text = self.initial.trim_start_matches('\u{feff}').trim_start();
        let can_end = match self.format {
            Format::Json => !text.starts_with(|sign: char| sign == '-' || sign.is_ascii_digit()),
            Format::Marker(_) => true,
            _ => false,
        };
        let rest = self.continuation.trim();
        let is_rest = !rest.is_empty() && fence::closing(rest).is_none_or(|behind| !behind.trim().is_empty());
        can_end && self.verdict.is_whole() && is_rest && rest != self.initial.trim()
    }

    /// Whether the first part ends in a token that may still change.
    pub(super) fn has_unsettled(&self) -> bool {
        self.settled < self.initial.len()
    }

    /// The saved state of the detector behind the first `keep` bytes of the first part.
    pub(super) fn state_at(&self, keep: usize) -> Detector {
        if keep == self.initial.len() { self.at_cut.clone() } else { self.at_settled.clone() }
    }

    /// How unlikely it is, in bits, that the first `keep` bytes go on by saying their last `length` bytes again.
    pub(super) fn surprise_of_repetition(&self, keep: usize, length: usize) -> f64 {
        if let Some(known) = self.surprises.borrow().get(&(keep, length)) {
            return *known;
        }
        let surprise = repetition::surprise_of_repetition(
            &self.initial[..keep],
            length,
            self.ends.borrow_mut().entry(keep).or_default(),
        );
        self.surprises.borrow_mut().insert((keep, length), surprise);
        surprise
    }

    /// The shortest period of the last `length` bytes of the first part, in bytes.
    pub(super) fn period_of_end(&self, length: usize) -> usize {
        let text = self.initial.as_bytes();
        self.ends.borrow_mut().entry(text.len()).or_default().period(text, length)
    }

    /// Whether the last `length` bytes of the first part say the same at least twice, or what stands right before them:
    /// how often the text was to say it before it went on, nothing tells.
    pub(super) fn goes_round(&self, length: usize) -> bool {
        let end = &self.initial[self.initial.ceil_char_boundary(self.initial.len() - length)..];
        let twice = length * 2;
        length > 0
            && !end.trim().is_empty()
            && (self.period_of_end(length) * 2 <= length
                || twice <= self.initial.len() && self.period_of_end(twice) <= length)
    }

    /// The units of the first `keep` bytes of the first part, read as its format is.
    pub(super) fn units_at(&self, keep: usize) -> &Units<'a> {
        if keep == self.settled { &self.settled_units } else { &self.units }
    }

    /// The ways to read text in this format, at a place where it is not known what is open.
    pub(super) fn readings(&self) -> &'static [Reading] {
        if self.has_grammar() {
            // Letter by letter as well: what is repeated may begin in the middle of an escape.
            &[Reading::Structure, Reading::Content, Reading::Plain]
        } else {
            &[Reading::Plain]
        }
    }

    /// Whether a fence that the continuation begins with would stand in a line of its own, joined as it is.
    pub(super) fn fence_stands_alone(&self) -> bool {
        let blank = self.continuation.len() - self.continuation.trim_start().len();
        self.initial.is_empty() || self.initial.ends_with('\n') || self.continuation[..blank].contains('\n')
    }

    /// Whether the continuation is one code block from its beginning to its end, which nothing in the first
    /// part announced, so that the block is a wrapper rather than a part of the text.
    pub(super) fn looks_wrapped(&self) -> bool {
        let Some(length) = fence::opening(self.continuation) else { return false };
        let closed = fence::is_closed(&self.continuation[length..]);
        closed && fence::lines(self.initial) == 0 && !self.announces_block()
    }

    /// Whether the first part announces a block: with a colon that ends no line of code.
    pub(super) fn announces_block(&self) -> bool {
        let line = self.initial.trim_end().lines().next_back().unwrap_or_default();
        let behind = fence::opening(self.continuation).map_or("", |length| &self.continuation[length..]);
        line.ends_with(':') && !line.contains(of_code) && !behind.starts_with([' ', '\t'])
    }
}

/// The units of the first part in every reading: its letters, escapes as written, are read where they are asked for,
/// which is seldom.
pub(super) struct Readings<'j> {
    joint: &'j Joint<'j>,
    at_cut: OnceCell<Units<'j>>,
    at_settled: OnceCell<Units<'j>>,
}

impl<'j> Readings<'j> {
    pub(super) fn of(joint: &'j Joint<'j>) -> Self {
        Self { joint, at_cut: OnceCell::new(), at_settled: OnceCell::new() }
    }

    /// The units of the first `keep` bytes, which end at the cut or at the settled end.
    pub(super) fn at(&self, keep: usize, reading: Reading) -> &Units<'j> {
        if reading != Reading::Plain || !self.joint.has_grammar() {
            return self.joint.units_at(keep);
        }
        let letters = if keep == self.joint.initial.len() { &self.at_cut } else { &self.at_settled };
        letters.get_or_init(|| Units::read(&self.joint.initial[..keep], Reading::Plain))
    }
}

/// The format that `auto` stands for: JSON as far as the first part can be a beginning of it, else what detection takes it
/// for, where it begins with a tag or has the form of Markdown.
fn resolved(format: &Format, initial: &str) -> Format {
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
