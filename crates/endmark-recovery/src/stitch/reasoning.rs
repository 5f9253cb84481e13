//! Detects reasoning that a model writes into its text if the server does not remove it. It is removed at the
//! beginning of a continuation. Anywhere else, it makes the seam doubtful (PC-4).
//!
//! A seam is never settled if the continuation contains a sign of reasoning, such as `<think>`, or part of
//! one. The exception is a sign that the text or the request also contains: a text about `<think>` may repeat
//! it.

use std::sync::LazyLock;

use super::register::is_code_character;

/// The beginnings and ends of reasoning, one kind per line. Signs without an end are complete by themselves.
const SIGNS: &str = include_str!("reasoning/signs.txt");

/// Minimum length, in bytes, of the end of a text that may be part of a sign. No HTML tag begins with these
/// bytes.
pub(super) const MIN_PARTIAL_BYTES: usize = 4;

/// The beginning and the end of a kind of reasoning.
type ReasoningKind = (&'static str, Option<&'static str>);

fn kinds() -> impl Iterator<Item = ReasoningKind> {
    static KINDS: LazyLock<Vec<ReasoningKind>> = LazyLock::new(|| {
        let lines = SIGNS.lines().filter(|line| !line.starts_with("# "));
        let words = lines.filter_map(|line| line.split_once(' '));
        words.map(|(begin, end)| (begin, Some(end).filter(|end| *end != "-"))).collect()
    });
    KINDS.iter().copied()
}

/// The signs of reasoning that a text contains, such as `<think>` (PC-4).
///
/// ```
/// use endmark_recovery::stitch::ReasoningSigns;
/// assert_ne!(ReasoningSigns::from_text("Explain `<think>`."), ReasoningSigns::default());
/// assert_eq!(ReasoningSigns::from_text("Explain thinking."), ReasoningSigns::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ReasoningSigns(u32);

impl ReasoningSigns {
    /// Returns the signs in a text.
    pub fn from_text(text: &str) -> Self {
        let openings = possible_sign_positions(text).filter_map(|place| text.get(place..));
        let kinds_of = |text| kinds().enumerate().filter(move |(_, kind)| kind_begins(*kind, text));
        Self(openings.flat_map(kinds_of).fold(0, |signs, (kind, _)| signs | 1 << kind))
    }

    /// Returns the signs in a JSON document, including escaped ones in its strings.
    ///
    /// ```
    /// use endmark_recovery::stitch::ReasoningSigns;
    /// let request = br#"{"content": "Explain \u003Cthink\u003E."}"#;
    /// assert_eq!(ReasoningSigns::from_json(request), ReasoningSigns::from_text("<think>"));
    /// ```
    pub fn from_json(document: &[u8]) -> Self {
        const ESCAPES: [(&str, &str); 8] = [
            ("\\u003c", "<"),
            ("\\u003C", "<"),
            ("\\u003e", ">"),
            ("\\u003E", ">"),
            ("\\u25c1", "\u{25c1}"),
            ("\\u25C1", "\u{25c1}"),
            ("\\u25b7", "\u{25b7}"),
            ("\\u25B7", "\u{25b7}"),
        ];
        let mut text = String::from_utf8_lossy(document);
        for (escape, sign) in ESCAPES {
            if text.contains(escape) {
                text = text.replace(escape, sign).into();
            }
        }
        Self::from_text(&text)
    }

    /// Returns the signs of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, kind: usize) -> bool {
        self.0 & 1 << kind != 0
    }
}

/// What a continuation begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContinuationBeginning {
    /// Text without reasoning.
    Nothing,
    /// Reasoning and the line breaks after it, with this total length in bytes.
    Reasoning(usize),
    /// Unfinished reasoning, or text that may become reasoning.
    Unfinished,
}

impl ContinuationBeginning {
    /// Returns the number of bytes to remove, or `None` if more text must arrive first.
    pub(super) fn length(self) -> Option<usize> {
        match self {
            Self::Nothing => Some(0),
            Self::Reasoning(length) => Some(length),
            Self::Unfinished => None,
        }
    }
}

/// Returns what a continuation of `initial` begins with. Signs in `known` or in `initial` do not count. At
/// least `least` bytes of a sign at the end may become a sign.
pub(super) fn continuation_beginning(
    initial: &str,
    continuation: &str,
    known: ReasoningSigns,
    least: usize,
) -> ContinuationBeginning {
    let text = initial.trim_start();
    // If the first part begins with reasoning, the server does not remove it from the rest either.
    let signs: Vec<ReasoningKind> = kinds()
        .enumerate()
        .filter(|(kind, (begin, _))| !known.has(*kind) || starts_with(text, begin))
        .map(|(_, sign)| sign)
        .collect();
    let mut length = 0;
    loop {
        let rest = continuation.get(length..).unwrap_or_default();
        let body = rest.trim_start();
        let Some((begin, end)) = signs.iter().find(|sign| kind_begins(**sign, body)) else {
            let is_part = body.len() >= least && signs.iter().any(|(begin, _)| is_proper_prefix(body, begin));
            return match length {
                _ if is_part => ContinuationBeginning::Unfinished,
                0 => ContinuationBeginning::Nothing,
                _ => ContinuationBeginning::Reasoning(length),
            };
        };
        let behind = match end {
            None => Some(begin.len()),
            Some(end) => sign_position(body, end).map(|at| at + end.len()),
        };
        let Some(behind) = behind else { return ContinuationBeginning::Unfinished };
        // One empty line separates reasoning from the text. Further line breaks belong to the text.
        let blank = blank_lines(body.get(behind..).unwrap_or_default());
        length += rest.len() - body.len() + behind + blank;
    }
}

/// Returns the length of the first line ends of a text, at most two, with the blanks before them.
fn blank_lines(text: &str) -> usize {
    let mut length = 0;
    for _ in 0..2 {
        let rest = text.get(length..).unwrap_or_default();
        let line = rest.trim_start_matches([' ', '\t', '\r']);
        match line.strip_prefix('\n') {
            Some(_) => length += rest.len() - line.len() + 1,
            None => break,
        }
    }
    length
}

/// Whether the text continues a sentence or follows a line end, so that the line breaks after the reasoning
/// do not belong to it.
pub(super) fn is_in_sentence(initial: &str, rest: &str) -> bool {
    let last_line = initial.rsplit('\n').next().unwrap_or_default();
    let is_open = initial.ends_with(|character: char| {
        character.is_alphanumeric() || matches!(character, ',' | '-' | ' ' | '\'')
    });
    let is_longer_name = rest.starts_with(|character: char| {
        character.is_alphabetic() && !character.is_uppercase()
            || matches!(character, '.' | ',' | ';' | ':' | '!' | '?' | ')' | ' ')
    });
    last_line.is_empty() || is_open && is_longer_name && !last_line.contains(is_code_character)
}

/// Returns the start of the first unknown sign in a text. Part of a sign at the end also counts if it has at
/// least `least` bytes.
fn first_sign(text: &str, known: ReasoningSigns, least: usize) -> Option<usize> {
    possible_sign_positions(text).find(|place| {
        let rest = text.get(*place..).unwrap_or_default();
        kinds().enumerate().any(|(kind, (begin, end))| {
            let is_here =
                |sign: &str| starts_with(rest, sign) || rest.len() >= least && is_proper_prefix(rest, sign);
            !known.has(kind) && [Some(begin), end].into_iter().flatten().any(is_here)
        })
    })
}

/// Returns the positions of all complete unknown signs in a text, in order.
pub(super) fn sign_places(text: &str, known: ReasoningSigns) -> Vec<usize> {
    let is_here = |place: &usize| {
        let rest = text.get(*place..).unwrap_or_default();
        kinds().enumerate().any(|(kind, sign)| !known.has(kind) && kind_begins(sign, rest))
    };
    possible_sign_positions(text).filter(is_here).collect()
}

/// Whether `text[start..end]` contains an unknown sign or ends in part of one. `places` must come from
/// [`sign_places`] for the whole text, so that only the end must be read.
pub(super) fn has_sign_within(
    text: &str,
    (start, end): (usize, usize),
    known: ReasoningSigns,
    places: &[usize],
) -> bool {
    let near_end = text.floor_char_boundary(end.saturating_sub(LONGEST_SIGN_BYTES)).max(start);
    let next = places.get(places.partition_point(|place| *place < start));
    next.is_some_and(|place| *place < near_end)
        || has_sign(text.get(near_end..end).unwrap_or_default(), known)
}

/// Returns the text after the reasoning that follows a whole document. Such reasoning does not belong to the
/// document.
pub(super) fn rest_after_reasoning(rest: &str, known: ReasoningSigns) -> &str {
    let body = rest.trim_start();
    match continuation_beginning("", body, known, MIN_PARTIAL_BYTES) {
        ContinuationBeginning::Reasoning(length) => body.get(length..).unwrap_or_default(),
        ContinuationBeginning::Nothing | ContinuationBeginning::Unfinished => rest,
    }
}

/// Whether a text contains an unknown sign, or ends in part of one.
pub(super) fn has_sign(text: &str, known: ReasoningSigns) -> bool {
    first_sign(text, known, MIN_PARTIAL_BYTES).is_some()
}

/// Tracks up to where a growing text contains no sign of reasoning (PC-9).
#[derive(Debug, Clone)]
pub struct SignWatch {
    known_signs: ReasoningSigns,
    clear_bytes: usize,
    is_over: bool,
}

impl SignWatch {
    /// Starts with an empty text. The signs in `known` are permitted.
    pub fn new(known: ReasoningSigns) -> Self {
        Self { known_signs: known, clear_bytes: 0, is_over: false }
    }

    /// Returns the number of bytes before the first sign or possible beginning of a sign.
    pub fn clear(&self) -> usize {
        self.clear_bytes
    }

    /// Reads all text received so far, which must begin with the text of the last call. Returns the number of
    /// bytes before the first sign or possible beginning of a sign.
    pub fn read(&mut self, text: &str) -> usize {
        if !self.is_over {
            let rest = text.get(self.clear_bytes..).unwrap_or_default();
            let found = first_sign(rest, self.known_signs, 1);
            self.clear_bytes += found.unwrap_or(rest.len());
            // After a complete sign, the result no longer changes.
            let rest = text.get(self.clear_bytes..).unwrap_or_default();
            self.is_over = !rest.is_empty() && rest.len() >= LONGEST_SIGN_BYTES;
        }
        self.clear_bytes
    }
}

/// Length of the longest sign, in bytes.
const LONGEST_SIGN_BYTES: usize = 32;

/// Returns the positions of a text at which a sign may begin. It compares two bytes, because brackets are
/// frequent and signs are rare.
fn possible_sign_positions(text: &str) -> impl Iterator<Item = usize> {
    static SECOND_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let signs = kinds().flat_map(|(begin, end)| [Some(begin), end]).flatten();
        let mut bytes: Vec<u8> =
            signs.filter_map(|sign| sign.as_bytes().get(1)).map(u8::to_ascii_lowercase).collect();
        bytes.sort_unstable();
        bytes.dedup();
        bytes
    });
    let second_bytes = &*SECOND_BYTES;
    memchr::memchr3_iter(b'<', b'[', "\u{25c1}".as_bytes()[0], text.as_bytes()).filter(move |place| {
        let second = text.as_bytes().get(place + 1);
        second.is_none_or(|byte| second_bytes.contains(&byte.to_ascii_lowercase()))
    })
}

/// Whether a text begins with the beginning or the end of this kind of reasoning.
fn kind_begins((begin, end): ReasoningKind, text: &str) -> bool {
    starts_with(text, begin) || end.is_some_and(|end| starts_with(text, end))
}

fn starts_with(text: &str, sign: &str) -> bool {
    text.get(..sign.len()).is_some_and(|head| head.eq_ignore_ascii_case(sign))
}

/// Whether a text is a proper prefix of a sign.
fn is_proper_prefix(text: &str, sign: &str) -> bool {
    text.len() < sign.len() && sign.get(..text.len()).is_some_and(|head| head.eq_ignore_ascii_case(text))
}

fn sign_position(text: &str, sign: &str) -> Option<usize> {
    possible_sign_positions(text).find(|place| text.get(*place..).is_some_and(|rest| starts_with(rest, sign)))
}
