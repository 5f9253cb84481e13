//! Collects anchors in text: the user's lines, the model's statements, and the output of tools.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::{Anchor, AnchorKind, AnchorSource, WordShape, is_unpronounceable, word_shape, words};

/// Maximum characters of a value. A longer value is cut.
pub(crate) const MAX_VALUE_CHARS: usize = 160;
/// Maximum characters of a user's line. A longer line is cut.
const MAX_USER_LINE_CHARS: usize = 400;
/// Maximum number of error lines from one output.
const MAX_ERRORS: usize = 8;

/// Words with which programs report errors.
const ERROR_WORDS: [&str; 12] = [
    "error",
    "failed",
    "failure",
    "exception",
    "panicked",
    "fatal",
    "traceback",
    "denied",
    "not found",
    "cannot",
    "invalid",
    "timed out",
];

/// Phrases with which a model begins to state a decision.
const DECISION_PHRASES: [&str; 10] = [
    "decision",
    "decided",
    "we decided",
    "i decided",
    "i will use",
    "i'll use",
    "let's use",
    "we will use",
    "the plan is",
    "i chose",
];

/// Prefixes of unfinished steps in a list.
const OPEN_STEP_PREFIXES: [&str; 3] = ["- [ ]", "* [ ]", "+ [ ]"];

/// Returns a text on one line. Runs of white space become single spaces.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Returns a text on one line. After `most` characters it is cut, with a mark at the end.
pub(crate) fn clip_line(text: &str, most: usize) -> Cow<'_, str> {
    // A text never has more characters than bytes.
    if text.len() <= most && is_one_line(text) {
        return Cow::Borrowed(text);
    }
    let mut line = one_line(text.get(..floor_char_boundary(text, most * 8)).unwrap_or(text));
    if let Some((at, _)) = line.char_indices().nth(most) {
        line.truncate(at);
        line.push('…');
    }
    Cow::Owned(line)
}

/// Whether [`one_line`] would not change the text. An empty text does not count.
fn is_one_line(text: &str) -> bool {
    let mut before = ' ';
    let is_inside = text.chars().all(|character| {
        let is_single = !character.is_whitespace() || (character == ' ' && before != ' ');
        before = character;
        is_single
    });
    is_inside && before != ' '
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Adds every line of the user's text, and the exact values in it.
pub(super) fn add_user_lines<'a>(text: &'a str, anchors: &mut Vec<Anchor<'a>>) {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !add_open_step(line, anchors) {
            let value = clip_line(line, MAX_USER_LINE_CHARS);
            anchors.push(Anchor {
                kind: AnchorKind::UserLine,
                key: Cow::default(),
                value,
                place: AnchorSource::User,
            });
        }
        add_exact_values(line, AnchorSource::User, anchors);
    }
}

/// Adds the model's decisions, its unfinished steps, and the exact values in its text.
pub(super) fn add_assistant_lines<'a>(text: &'a str, anchors: &mut Vec<Anchor<'a>>) {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !add_open_step(line, anchors) && is_decision(line) {
            let value = clip_line(line, MAX_VALUE_CHARS);
            let place = AnchorSource::Assistant;
            anchors.push(Anchor { kind: AnchorKind::Decision, key: Cow::default(), value, place });
        }
        add_exact_values(line, AnchorSource::Assistant, anchors);
    }
}

fn is_decision(line: &str) -> bool {
    let begins: String = line.trim_start_matches(['-', '*', '#', '_', ' ']).chars().take(16).collect();
    let begins = begins.to_lowercase();
    DECISION_PHRASES.iter().any(|beginning| begins.starts_with(beginning))
}

fn add_open_step<'a>(line: &'a str, anchors: &mut Vec<Anchor<'a>>) -> bool {
    let step = OPEN_STEP_PREFIXES.iter().find_map(|open| line.strip_prefix(open));
    let Some(step) = step.map(str::trim).filter(|step| !step.is_empty()) else { return false };
    let value = clip_line(step, MAX_VALUE_CHARS);
    anchors.push(Anchor {
        kind: AnchorKind::Todo,
        key: Cow::default(),
        value,
        place: AnchorSource::Assistant,
    });
    true
}

/// Adds the error lines of a tool's output, and the exact values in it. Returns the first error line.
pub(super) fn add_output_lines<'a>(
    text: &'a str,
    is_error: bool,
    anchors: &mut Vec<Anchor<'a>>,
) -> Option<&'a str> {
    let (mut errors, mut first_error) = (0, None);
    for line in text.lines() {
        if errors < MAX_ERRORS && is_error_line(line) {
            push_error(line, anchors);
            errors += 1;
            first_error = first_error.or(Some(line));
        }
        add_exact_values(line, AnchorSource::Result, anchors);
    }
    if is_error && errors == 0 {
        add_first_error(text, anchors);
    }
    first_error
}

/// Adds the first line of a result that is marked as an error.
pub(super) fn add_first_error<'a>(text: &'a str, anchors: &mut Vec<Anchor<'a>>) {
    if let Some(line) = text.lines().find(|line| !line.trim().is_empty()) {
        push_error(line, anchors);
    }
}

fn push_error<'a>(line: &'a str, anchors: &mut Vec<Anchor<'a>>) {
    let value = clip_line(line, MAX_VALUE_CHARS);
    anchors.push(Anchor { kind: AnchorKind::Error, key: Cow::default(), value, place: AnchorSource::Result });
}

/// Whether a line reports an error, because one of its words begins with an error word.
pub(crate) fn is_error_line(line: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(ERROR_WORDS).ok());
    let Some(words) = WORDS.as_ref() else { return false };
    let begins = |at: usize| at == 0 || !line.as_bytes()[at - 1].is_ascii_alphanumeric();
    words.find_iter(line).any(|found| begins(found.start()))
}

/// Adds the values of a line that are useful only if they are exact, such as ids and paths.
pub(crate) fn add_exact_values<'a>(line: &'a str, place: AnchorSource, anchors: &mut Vec<Anchor<'a>>) {
    for word in words(line) {
        let kind = match word_shape(word) {
            WordShape::Url => AnchorKind::Url,
            WordShape::File => AnchorKind::File,
            WordShape::Identifier | WordShape::Date => AnchorKind::Identifier,
            // A single digit is usually the number of a list item.
            WordShape::Number if word.len() > 1 => AnchorKind::Number,
            WordShape::Word if is_unpronounceable(word, 5) => AnchorKind::Identifier,
            WordShape::Number | WordShape::Word => continue,
        };
        anchors.push(Anchor { kind, key: Cow::default(), value: Cow::Borrowed(word), place });
    }
}
