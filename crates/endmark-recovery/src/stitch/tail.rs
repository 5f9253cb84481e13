//! The end of what has come behind a settled seam: how much of it is certain to belong to the text, and is no
//! closing fence or remark (PC-9).

use endmark_text::Format;
use endmark_text::detect::Detector;

use super::plain;

/// Of a text without an end of its own, so many bytes at its end may be remarks.
const HELD: usize = plain::MOST_LEFT_OUT;

/// The line break, the indentation and the signs of a closing fence that came apart stand in so many bytes.
const FENCE: usize = 64;

/// Behind so many bytes a value is told from a remark in brackets: no literal is longer.
const WORD: usize = 6;

/// Reads on behind the seam, and knows how far the text is certain.
#[derive(Debug, Clone)]
pub(super) struct Tail {
    rule: Rule,
    /// Bytes that were read.
    read: usize,
    certain: usize,
}

#[derive(Debug, Clone)]
enum Rule {
    /// The grammar says where the text ends; behind that nothing is certain.
    Ends(Detector),
    /// Whole after every value or element: what follows one is certain when the next one has begun.
    EndsOften {
        detector: Detector,
        /// The value that came last.
        last: Last,
    },
    /// No grammar: the last paragraphs may be remarks, a last fence the end of a wrapper.
    Prose {
        fenced: bool,
        /// The last line so far that may close the wrapper.
        closing: Option<usize>,
        /// Where the text ends so far, the whitespace behind it left out.
        end: usize,
    },
}

/// What came last where the grammar does not say where the text ends.
#[derive(Debug, Clone, Copy)]
enum Last {
    /// Nothing that can be a value.
    NoValue,
    /// A value, or the beginning of one.
    Value,
    /// A bracket at this byte: the beginning of a list, or of a note.
    Bracket(usize),
}

impl Tail {
    /// Behind a seam at which the detector is in this state.
    pub(super) fn new(format: &Format, state: Detector, fenced: bool) -> Self {
        let rule = match format {
            Format::Json => Rule::Ends(state),
            Format::Jsonl | Format::Tags => {
                let last = if state.is_whole() { Last::NoValue } else { Last::Value };
                Rule::EndsOften { last, detector: state }
            }
            Format::Text | Format::Markdown | Format::Marker(_) | Format::Auto => {
                Rule::Prose { fenced, closing: None, end: 0 }
            }
        };
        Self { rule, read: 0, certain: 0 }
    }

    /// The same of a text without grammar that may be one document of JSON: behind its end leave may follow.
    pub(super) fn of_text(format: &Format, state: Detector, begun: Option<Detector>, fenced: bool) -> Self {
        match begun {
            Some(begun) => Self::new(&Format::Json, begun, fenced),
            None => Self::new(format, state, fenced),
        }
    }

    /// How many of the bytes that were read are certain.
    pub(super) fn certain(&self) -> usize {
        self.certain
    }

    /// Reads all that stands behind the seam so far; it must begin with what was read before.
    pub(super) fn read(&mut self, rest: &str) {
        let fresh = rest.get(self.read..).unwrap_or_default();
        match &mut self.rule {
            Rule::Ends(detector) => {
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
            Rule::EndsOften { detector, last } => {
                for (at, character) in fresh.char_indices() {
                    if detector.is_malformed() {
                        break;
                    }
                    let was_whole = detector.is_whole();
                    push(detector, character);
                    let here = self.read + at;
                    if !character.is_whitespace() && was_whole {
                        *last = match character {
                            '{' | '"' | '<' => Last::Value,
                            '[' => Last::Bracket(here),
                            _ => Last::NoValue,
                        };
                    }
                    // Behind a value only what begins another one is no remark, whatever its first letter: `[End of output]`
                    // is one, and read as no value once its first word is there.
                    let is_told = match *last {
                        Last::NoValue => false,
                        Last::Value => true,
                        Last::Bracket(begun) => here - begun >= WORD || detector.is_whole(),
                    };
                    let is_of_value = is_told && (!detector.is_whole() || !character.is_whitespace());
                    if is_of_value && !detector.is_malformed() {
                        self.certain = self.read + at + character.len_utf8();
                    }
                }
            }
            Rule::Prose { fenced, closing, end } => {
                if *fenced {
                    let from = rest.floor_char_boundary(self.read.saturating_sub(FENCE));
                    *closing = last_fence(&rest[from..]).map(|at| from + at).or(*closing);
                }
                if !fresh.trim_end().is_empty() {
                    *end = self.read + fresh.trim_end().len();
                }
                let certain = before_last_lines(&rest[..*end]).min(closing.unwrap_or(rest.len()));
                self.certain = self.certain.max(certain);
            }
        }
        self.read = rest.len();
    }
}

fn push(detector: &mut Detector, character: char) {
    detector.push(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Where the line break stands in front of the last line that begins as a fence does.
fn last_fence(text: &str) -> Option<usize> {
    let breaks = text.rmatch_indices('\n').map(|(at, _)| at);
    breaks.into_iter().find(|at| text[at + 1..].trim_start_matches([' ', '\t']).starts_with(['`', '~']))
}

/// The length of a text without its last lines, which may be remarks: one begins a line, and is not longer than those
/// are.
fn before_last_lines(text: &str) -> usize {
    let least = text.floor_char_boundary(text.len().saturating_sub(HELD));
    text[least..].find('\n').map_or(text.len(), |at| least + at)
}

#[cfg(test)]
mod tests;
