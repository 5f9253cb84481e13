//! Detects whether a text is whole, truncated (a valid beginning of a longer text) or malformed (PC-1, PC-2).
//!
//! [`detect`] reads a whole text. A [`Detector`] reads chunks of any size and gives the same result. Each
//! format has a push machine, which reads each byte once, stores only the end of the last token, and never
//! recurses.
//!
//! A token is *settled* if no continuation of the text can change it.

mod auto;
mod json;
mod markdown;
mod marker;
mod saved;
mod settled_tail;
mod tags;
mod text;
mod utf8;

use serde::{Deserialize, Serialize};

use auto::AutoMachine;
use json::{CONTROL_CHARACTER_REASON, JsonMachine, ValueCount};
pub use markdown::CodeFence;
use markdown::MarkdownMachine;
use marker::MarkerMachine;
use tags::TagsMachine;
use text::TextMachine;

use crate::{Detection, Format, Hint, Verdict};

/// Detects whether `raw` is whole, truncated or malformed in the given format (PC-1).
///
/// Raw line feeds and other control characters in JSON strings are accepted with the hint
/// [`Hint::ControlCharacters`], because models write them. [`detect_strict`] rejects them.
///
/// ```
/// use endmark_text::{Format, InToken, Verdict, detect::detect};
///
/// let cut = detect(br#"{"path": "a.rs", "line": 12"#, &Format::Json);
/// let truncation = cut.verdict.truncation().unwrap();
/// // The number touches the cut, so it may continue: only the text before it is settled.
/// assert_eq!(truncation.truncation_index, 25);
/// assert_eq!(truncation.last_valid_token, ":");
/// assert_eq!(truncation.in_token, Some(InToken::Number));
///
/// assert_eq!(detect(b"[1, 2]", &Format::Json).verdict, Verdict::Whole);
/// assert_eq!(detect(b"[1, 2}", &Format::Json).verdict.name(), "malformed");
/// ```
pub fn detect(raw: &[u8], format: &Format) -> Detection {
    let mut detector = Detector::new(format);
    detector.push(raw);
    detector.detection()
}

/// Detects like [`detect`], but follows RFC 8259 strictly: a raw control character in a JSON string is
/// malformed.
///
/// ```
/// use endmark_text::{Format, Hint, detect::{detect, detect_strict}};
///
/// let cut = b"{\"content\": \"line1\nline";
/// let lenient = detect(cut, &Format::Json);
/// assert_eq!((lenient.verdict.name(), lenient.hint), ("truncated", Some(Hint::ControlCharacters)));
/// assert_eq!(detect_strict(cut, &Format::Json).verdict.name(), "malformed");
/// ```
pub fn detect_strict(raw: &[u8], format: &Format) -> Detection {
    let mut detector = Detector::new(format);
    detector.push(raw);
    detector.strict_detection()
}

/// A detector that receives chunks and can report a verdict at any time (PC-2).
///
/// A clone is a saved state that continues independently. Its size depends on the nesting depth and on the
/// last token, but not on the length of the text.
///
/// ```
/// use endmark_text::{Format, detect::Detector};
///
/// let mut detector = Detector::new(&Format::Json);
/// detector.push(br#"{"name": "Ma"#);
/// let mut at_the_cut = detector.clone();
/// detector.push(br#"rie"}"#);
/// assert!(detector.is_whole());
/// at_the_cut.push(br#"", }"#);
/// assert!(at_the_cut.is_malformed());
/// ```
///
/// Serde can save and restore it, also in another process; the verdicts stay the same. A restored state is
/// checked. Bytes that no detector saved cause an error or a meaningless verdict, but never a panic.
///
/// ```
/// use endmark_text::{Format, detect::Detector};
///
/// let mut detector = Detector::new(&Format::Json);
/// detector.push(br#"{"name": "Ma"#);
/// let saved = serde_json::to_string(&detector)?;
///
/// let mut restored: Detector = serde_json::from_str(&saved)?;
/// assert_eq!((restored.position(), restored.format()), (12, Format::Json));
/// restored.push(br#"rie"}"#);
/// assert!(restored.is_whole());
/// assert!(serde_json::from_str::<Detector>("{}").is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "saved::SavedDetector", try_from = "saved::SavedDetector")]
pub struct Detector {
    machine: Machine,
}

/// Maximum length of the text of a restored state, in bytes. Larger offsets could overflow.
const MAX_POSITION: usize = usize::MAX >> 4;

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Machine {
    Json(JsonMachine),
    Markdown(Box<MarkdownMachine>),
    Tags(Box<TagsMachine>),
    Text(TextMachine),
    Marker(MarkerMachine),
    Auto(Box<AutoMachine>),
}

impl Detector {
    /// Creates a detector for a new text.
    pub fn new(format: &Format) -> Self {
        let machine = match format {
            Format::Json => Machine::Json(JsonMachine::new(ValueCount::One)),
            Format::Jsonl => Machine::Json(JsonMachine::new(ValueCount::Many)),
            Format::Markdown => Machine::Markdown(Box::default()),
            Format::Tags => Machine::Tags(Box::default()),
            Format::Text => Machine::Text(TextMachine::default()),
            Format::Marker(marker) => Machine::Marker(MarkerMachine::new(marker)),
            Format::Auto => Machine::Auto(Box::default()),
        };
        Self { machine }
    }

    /// Creates a detector for one JSON value that rejects raw control characters. Use it for line-based text
    /// such as JSON Lines.
    pub fn for_strict_json() -> Self {
        let mut detector = Self::new(&Format::Json);
        detector.refuse_control_characters();
        detector
    }

    /// Rejects raw control characters in JSON strings from now on. Earlier ones remain accepted.
    pub fn refuse_control_characters(&mut self) {
        if let Machine::Json(machine) = &mut self.machine {
            machine.refuse_control_characters();
        }
    }

    /// Rejects raw control characters from now on, unless the text already contains one: a model that wrote
    /// one usually writes more.
    pub fn refuse_new_control_characters(&mut self) {
        if self.control_character().is_none() {
            self.refuse_control_characters();
        }
    }

    /// Reads the next bytes of the text. A chunk may begin and end anywhere, even within a character.
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.machine {
            Machine::Json(machine) => machine.push(bytes),
            Machine::Markdown(machine) => machine.push(bytes),
            Machine::Tags(machine) => machine.push(bytes),
            Machine::Text(machine) => machine.push(bytes),
            Machine::Marker(machine) => machine.push(bytes),
            Machine::Auto(machine) => machine.push(bytes),
        }
    }

    /// Returns the detection as if the text ended here.
    pub fn detection(&self) -> Detection {
        let (hint, detected) = match &self.machine {
            Machine::Json(_) | Machine::Tags(_) | Machine::Marker(_) => (None, None),
            Machine::Markdown(machine) => (machine.hint(), None),
            Machine::Text(machine) => (machine.hint(), None),
            Machine::Auto(machine) => (machine.hint(), Some(machine.detected_format())),
        };
        let has_control = !self.is_malformed() && self.control_character().is_some();
        let hint = if has_control { Some(Hint::ControlCharacters) } else { hint };
        Detection { verdict: self.verdict(), hint, detected }
    }

    /// Returns the result of [`detect_strict`] as if the text ended here.
    pub fn strict_detection(&self) -> Detection {
        let detection = self.detection();
        let Some(index) = self.control_character() else { return detection };
        let verdict = Verdict::Malformed { index, reason: CONTROL_CHARACTER_REASON.to_owned() };
        Detection { verdict, hint: None, ..detection }
    }

    /// Returns the position of the first raw control character in a JSON string, which strict JSON does not
    /// allow.
    pub fn control_character(&self) -> Option<usize> {
        match &self.machine {
            Machine::Json(machine) => machine.control_character(),
            Machine::Auto(machine) => machine.control_character(),
            Machine::Markdown(_) | Machine::Tags(_) | Machine::Text(_) | Machine::Marker(_) => None,
        }
    }

    /// Returns the verdict as if the text ended here.
    pub fn verdict(&self) -> Verdict {
        match &self.machine {
            Machine::Json(machine) => machine.verdict(),
            Machine::Markdown(machine) => machine.verdict(),
            Machine::Tags(machine) => machine.verdict(),
            Machine::Text(machine) => machine.verdict(),
            Machine::Marker(machine) => machine.verdict(),
            Machine::Auto(machine) => machine.verdict(),
        }
    }

    /// Returns the format for which the detector was created.
    pub fn format(&self) -> Format {
        match &self.machine {
            Machine::Json(machine) if machine.values() == ValueCount::One => Format::Json,
            Machine::Json(_) => Format::Jsonl,
            Machine::Markdown(_) => Format::Markdown,
            Machine::Tags(_) => Format::Tags,
            Machine::Text(_) => Format::Text,
            Machine::Marker(machine) => Format::Marker(machine.marker()),
            Machine::Auto(_) => Format::Auto,
        }
    }

    /// Whether this detector and another one process any following text in the same way, even at different
    /// positions. Returns `false` if this is not certain.
    pub fn behaves_like(&self, other: &Self) -> bool {
        match (&self.machine, &other.machine) {
            (Machine::Json(this), Machine::Json(that)) => this.behaves_like(that),
            _ => false,
        }
    }

    /// Returns the number of bytes read so far.
    pub fn position(&self) -> usize {
        match &self.machine {
            Machine::Json(machine) => machine.position(),
            Machine::Markdown(machine) => machine.position(),
            Machine::Tags(machine) => machine.position(),
            Machine::Text(machine) => machine.position(),
            Machine::Marker(machine) => machine.position(),
            Machine::Auto(machine) => machine.position(),
        }
    }

    /// Whether no continuation can make the text valid. Once true, it stays true. The cost is constant.
    ///
    /// It agrees with the verdict, except for a text that is only a byte order mark. The verdict is
    /// malformed, although a value may follow.
    pub fn is_malformed(&self) -> bool {
        match &self.machine {
            Machine::Json(machine) => machine.malformation().is_some(),
            Machine::Markdown(machine) => machine.is_malformed(),
            Machine::Tags(machine) => machine.is_malformed(),
            Machine::Text(machine) => machine.is_malformed(),
            Machine::Marker(machine) => machine.is_malformed(),
            Machine::Auto(machine) => machine.is_malformed(),
        }
    }

    /// Whether the text would be whole if it ended here. The cost is constant, unlike that of
    /// [`verdict`](Self::verdict).
    pub fn is_whole(&self) -> bool {
        match &self.machine {
            Machine::Json(machine) => machine.is_whole(),
            Machine::Markdown(machine) => machine.is_whole(),
            Machine::Tags(machine) => machine.is_whole(),
            Machine::Text(machine) => machine.is_whole(),
            Machine::Marker(machine) => machine.is_whole(),
            Machine::Auto(machine) => machine.is_whole(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
