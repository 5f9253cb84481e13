//! Detection: is this text whole, a valid beginning of something longer, or beyond repair? (PC-1, PC-2)
//!
//! [`detect`] answers for a text in one piece; a [`Detector`] is fed chunks of any size, down to one byte,
//! and gives the same answer. Each format is a push machine of its own that reads every byte once,
//! keeps no text but the last token's end, and recurses never.

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
use json::{CONTROL_CHARACTER, JsonMachine, Values};
pub use markdown::CodeFence;
use markdown::MarkdownMachine;
use marker::MarkerMachine;
use tags::TagsMachine;
use text::TextMachine;

use crate::{Detection, Format, Hint, Verdict};

/// Says whether `raw` is whole, truncated or malformed in the given format (PC-1).
///
/// Models write raw line feeds and other control characters into JSON strings. They are accepted, with the hint
/// [`Hint::ControlCharacters`]; [`detect_strict`] refuses them.
///
/// ```
/// use endmark_text::{Format, InToken, Verdict, detect::detect};
///
/// let cut = detect(br#"{"path": "a.rs", "line": 12"#, &Format::Json);
/// let truncation = cut.verdict.truncation().unwrap();
/// // The number touches the cut, so it may go on: settled is what stands before it.
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

/// The same by the letter of RFC 8259: a raw control character in a JSON string makes the text malformed.
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

/// Detection as a machine that is fed chunks and can be asked at any time (PC-2).
///
/// A clone is a saved state: it costs the nesting and the last token's end, however long the text was,
/// and goes on from there independently.
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
/// It can be saved and restored with serde, also in another process, and answers the same from then on. What is
/// restored is checked: bytes that no detector has saved give an error, or a detector that says something useless,
/// but never a panic.
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

/// The longest text that a restored state may be of, in bytes; beyond that, offsets could not be counted.
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
    /// A detector before the text's first byte.
    pub fn new(format: &Format) -> Self {
        let machine = match format {
            Format::Json => Machine::Json(JsonMachine::new(Values::One)),
            Format::Jsonl => Machine::Json(JsonMachine::new(Values::Many)),
            Format::Markdown => Machine::Markdown(Box::default()),
            Format::Tags => Machine::Tags(Box::default()),
            Format::Text => Machine::Text(TextMachine::default()),
            Format::Marker(marker) => Machine::Marker(MarkerMachine::new(marker)),
            Format::Auto => Machine::Auto(Box::default()),
        };
        Self { machine }
    }

    /// A detector of one JSON value for which a raw control character makes it malformed, as where lines are read one by one.
    pub fn for_strict_json() -> Self {
        let mut detector = Self::new(&Format::Json);
        detector.refuse_control_characters();
        detector
    }

    /// From here on a raw control character in a JSON string makes the text malformed. Those that came before stay accepted.
    pub fn refuse_control_characters(&mut self) {
        if let Machine::Json(machine) = &mut self.machine {
            machine.refuse_control_characters();
        }
    }

    /// The same, unless the text has such a character already: who writes one into a string writes more.
    pub fn refuse_new_control_characters(&mut self) {
        if self.control_character().is_none() {
            self.refuse_control_characters();
        }
    }

    /// Reads the text's next bytes; they may begin and end anywhere, also inside a character.
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

    /// The answer as if the text ended here.
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

    /// The answer of [`detect_strict`] as if the text ended here.
    pub fn strict_detection(&self) -> Detection {
        let detection = self.detection();
        let Some(index) = self.control_character() else { return detection };
        let verdict = Verdict::Malformed { index, reason: CONTROL_CHARACTER.to_owned() };
        Detection { verdict, hint: None, ..detection }
    }

    /// Where the first raw control character is in a JSON string: what strict JSON does not allow.
    pub fn control_character(&self) -> Option<usize> {
        match &self.machine {
            Machine::Json(machine) => machine.control_character(),
            Machine::Auto(machine) => machine.control_character(),
            Machine::Markdown(_) | Machine::Tags(_) | Machine::Text(_) | Machine::Marker(_) => None,
        }
    }

    /// The verdict as if the text ended here.
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

    /// The format that it was made for.
    pub fn format(&self) -> Format {
        match &self.machine {
            Machine::Json(machine) if machine.values() == Values::One => Format::Json,
            Machine::Json(_) => Format::Jsonl,
            Machine::Markdown(_) => Format::Markdown,
            Machine::Tags(_) => Format::Tags,
            Machine::Text(_) => Format::Text,
            Machine::Marker(machine) => Format::Marker(machine.marker()),
            Machine::Auto(_) => Format::Auto,
        }
    }

    /// Whether this one and another take whatever follows alike, though they may stand at different places of their
    /// texts. False where that is not sure.
    pub fn behaves_like(&self, other: &Self) -> bool {
        match (&self.machine, &other.machine) {
            (Machine::Json(this), Machine::Json(that)) => this.behaves_like(that),
            _ => false,
        }
    }

    /// Bytes read so far.
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

    /// Whether no continuation could make the text valid: once true it stays so. Costs nothing.
    ///
    /// The verdict is malformed just then, but for one text: a byte order mark and nothing else, which is
    /// malformed as it is, although a value may follow.
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

    /// Whether the text would be whole if it ended here. Costs nothing, unlike the full answer.
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
