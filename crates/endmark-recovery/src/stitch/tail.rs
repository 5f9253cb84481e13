//! Reads the text after a settled seam, and determines how much of it certainly belongs to the text. A
//! closing fence or a remark at the end does not (PC-9).

use endmark_text::Format;
use endmark_text::detect::Detector;

use super::plain;

/// Maximum number of bytes of remarks at the end of a text without a defined end.
const MAX_REMARK_BYTES: usize = plain::MAX_REMOVED_REMARK_BYTES;

/// Number of bytes that are held back for the line break, indentation and characters of a closing fence.
const HELD_FENCE_BYTES: usize = 64;

/// Number of bytes after which a value can be distinguished from a remark in brackets. Literals are shorter.
const MIN_VALUE_BYTES: usize = 6;

/// Reads the text after the seam, and determines how much of it is certain.
#[derive(Debug, Clone)]
pub(super) struct Tail {
    rule: EndRule,
    /// Number of bytes that were read.
    read: usize,
    certain: usize,
}

#[derive(Debug, Clone)]
enum EndRule {
    /// The grammar defines where the text ends. Nothing after that end is certain.
    Ends(Detector),
    /// The text is whole after each value or element. It is certain up to the end of a value once the next
    /// value has begun.
    MayEnd {
        detector: Detector,
        /// The last part of the text.
        last: LastPart,
    },
    /// There is no grammar. The last paragraphs may be remarks, and the last fence may close a wrapper.
    Prose {
        fenced: bool,
        /// Position of the last line that may close the wrapper.
        closing: Option<usize>,
        /// Length of the text so far, without whitespace at the end.
        end: usize,
    },
}

/// The last part of a text with values of a grammar that does not define the end.
#[derive(Debug, Clone, Copy)]
enum LastPart {
    /// Text that cannot be a value.
    NoValue,
    /// A value, or the beginning of one.
    Value,
    /// A bracket at this byte, which begins an array or a remark.
    Bracket(usize),
}

impl Tail {
    /// Starts after a seam. `state` is the detector there, and `fenced` is whether a fence around the text
    /// was removed.
    pub(super) fn new(format: &Format, state: Detector, fenced: bool) -> Self {
        let rule = match format {
            Format::Json => EndRule::Ends(state),
            Format::Jsonl | Format::Tags => {
                let last = if state.is_whole() { LastPart::NoValue } else { LastPart::Value };
                EndRule::MayEnd { last, detector: state }
            }
            Format::Text | Format::Markdown | Format::Marker(_) | Format::Auto => {
                EndRule::Prose { fenced, closing: None, end: 0 }
            }
        };
        Self { rule, read: 0, certain: 0 }
    }

    /// Starts like `new`, for a text without a grammar that may be a JSON document. A closing remark may
    /// follow such a document.
    pub(super) fn for_text(format: &Format, state: Detector, opened: Option<Detector>, fenced: bool) -> Self {
        match opened {
            Some(opened) => Self::new(&Format::Json, opened, fenced),
            None => Self::new(format, state, fenced),
        }
    }

    /// Returns how many of the read bytes are certain.
    pub(super) fn certain(&self) -> usize {
        self.certain
    }

    /// Reads all text after the seam, which must begin with the text of the last call.
    pub(super) fn read(&mut self, rest: &str) {
        let fresh = rest.get(self.read..).unwrap_or_default();
        match &mut self.rule {
            EndRule::Ends(detector) => {
                for (at, character) in fresh.char_indices() {
                    if detector.is_whole() || detector.is_malformed() {
                        break;
                    }
                    push(detector, character);
                    if !detector.is_malformed() {
                        self.certain = self.read + at + character.len_utf8();
                    }
                }
            }
            EndRule::MayEnd { detector, last } => {
                for (at, character) in fresh.char_indices() {
                    if detector.is_malformed() {
                        break;
                    }
                    let was_whole = detector.is_whole();
                    push(detector, character);
                    let here = self.read + at;
                    if !character.is_whitespace() && was_whole {
                        *last = match character {
                            '{' | '"' | '<' => LastPart::Value,
                            '[' => LastPart::Bracket(here),
                            _ => LastPart::NoValue,
                        };
                    }
                    // After a value, only the beginning of another value is certainly not a remark. `[End of
                    // output]` is recognised as a remark after its first word.
                    let is_told = match *last {
                        LastPart::NoValue => false,
                        LastPart::Value => true,
                        LastPart::Bracket(opened) => here - opened >= MIN_VALUE_BYTES || detector.is_whole(),
                    };
                    let is_of_value = is_told && (!detector.is_whole() || !character.is_whitespace());
                    if is_of_value && !detector.is_malformed() {
                        self.certain = self.read + at + character.len_utf8();
                    }
                }
            }
            EndRule::Prose { fenced, closing, end } => {
                if *fenced {
                    let from = rest.floor_char_boundary(self.read.saturating_sub(HELD_FENCE_BYTES));
                    *closing = last_fence(&rest[from..]).map(|at| from + at).or(*closing);
                }
                if !fresh.trim_end().is_empty() {
                    *end = self.read + fresh.trim_end().len();
                }
                let certain = length_before_last_lines(&rest[..*end]).min(closing.unwrap_or(rest.len()));
                self.certain = self.certain.max(certain);
            }
        }
        self.read = rest.len();
    }
}

fn push(detector: &mut Detector, character: char) {
    detector.push(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Returns the position of the line break before the last line that begins like a fence.
fn last_fence(text: &str) -> Option<usize> {
    let breaks = text.rmatch_indices('\n').map(|(at, _)| at);
    breaks.into_iter().find(|at| text[at + 1..].trim_start_matches([' ', '\t']).starts_with(['`', '~']))
}

/// Returns the length of a text without its last lines, which may be remarks. A remark begins a line and has
/// a limited length.
fn length_before_last_lines(text: &str) -> usize {
    let least = text.floor_char_boundary(text.len().saturating_sub(MAX_REMARK_BYTES));
    text[least..].find('\n').map_or(text.len(), |at| least + at)
}

#[cfg(test)]
mod tests;
