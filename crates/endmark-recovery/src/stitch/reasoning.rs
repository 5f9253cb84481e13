//! Detects reasoning that a model writes into its text if the server does not remove it. At the beginning of a
//! continuation it is removed. Anywhere else it makes the seam doubtful (PC-4).
//!
//! A seam is never settled if the continuation contains a sign of reasoning or part of one, unless the text or the
//! request also contains that sign. A text about `<think>` may repeat it.

use std::sync::LazyLock;

use super::register::is_code_character;

/// The beginnings and ends of reasoning, by kind of sign. Signs without an end are complete by themselves.
const SIGNS: &str = include_str!("reasoning/signs.txt");

/// Minimum number of bytes at the end of a text that may be part of a sign. No HTML tag begins like this.
pub(super) const MIN_PARTIAL_BYTES: usize = 4;

/// How a kind of reasoning begins and ends.
type Kind = (&'static str, Option<&'static str>);

fn kinds() -> impl Iterator<Item = Kind> {
    static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
        let lines = SIGNS.lines().filter(|line| !line.starts_with("# "));
        let words = lines.filter_map(|line| line.split_once(' '));
        words.map(|(begin, end)| (begin, Some(end).filter(|end| *end != "-"))).collect()
    });
    KINDS.iter().copied()
}

/// Which signs of reasoning a text has (PC-4).
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
        let openings = places(text).filter_map(|place| text.get(place..));
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

    /// Returns these signs and others.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, kind: usize) -> bool {
        self.0 & 1 << kind != 0
    }
}

/// How a continuation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lead {
    /// No reasoning.
    Nothing,
    /// This many bytes of reasoning and of the line breaks after it.
    Reasoning(usize),
    /// Unfinished reasoning, or text that may become reasoning.
    Unfinished,
}

impl Lead {
    /// Returns the number of bytes to remove. Returns `None` if more has to arrive first.
    pub(super) fn length(self) -> Option<usize> {
        match self {
            Self::Nothing => Some(0),
            Self::Reasoning(length) => Some(length),
            Self::Unfinished => None,
        }
    }
}

/// Returns how a continuation of `initial` begins, if the request or the text has these signs. A partial sign of at
/// least `least` bytes at the end may become a sign.
pub(super) fn lead(initial: &str, continuation: &str, known: ReasoningSigns, least: usize) -> Lead {
    let text = initial.trim_start();
    // If a first part begins with reasoning, its server does not remove it.
    let signs: Vec<Kind> = kinds()
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
                _ if is_part => Lead::Unfinished,
                0 => Lead::Nothing,
                _ => Lead::Reasoning(length),
            };
        };
        let behind = match end {
            None => Some(begin.len()),
            Some(end) => position(body, end).map(|at| at + end.len()),
        };
        let Some(behind) = behind else { return Lead::Unfinished };
        // One empty line separates reasoning from the text. Further line breaks belong to the text.
        let blank = blank_lines(body.get(behind..).unwrap_or_default());
        length += rest.len() - body.len() + behind + blank;
    }
}

/// Returns the length of at most two line ends at the beginning of a text, with the blanks before them.
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

/// Whether a text continues after the line breaks that follow reasoning, so that these do not belong to the text.
/// This is so in the middle of a sentence, or after a line end.
pub(super) fn is_in_sentence(initial: &str, rest: &str) -> bool {
    let last_line = initial.rsplit('\n').next().unwrap_or_default();
    let is_open =
        initial.ends_with(|sign: char| sign.is_alphanumeric() || matches!(sign, ',' | '-' | ' ' | '\''));
    let is_longer_name = rest.starts_with(|sign: char| {
        sign.is_alphabetic() && !sign.is_uppercase()
            || matches!(sign, '.' | ',' | ';' | ':' | '!' | '?' | ')' | ' ')
    });
    last_line.is_empty() || is_open && is_longer_name && !last_line.contains(is_code_character)
}

/// Returns the start of an unknown sign of reasoning in a text, or of a part of a sign of at least `least` bytes at
/// its end.
fn first_sign(text: &str, known: ReasoningSigns, least: usize) -> Option<usize> {
    places(text).find(|place| {
        let rest = text.get(*place..).unwrap_or_default();
        kinds().enumerate().any(|(kind, (begin, end))| {
            let is_here =
                |sign: &str| starts_with(rest, sign) || rest.len() >= least && is_proper_prefix(rest, sign);
            !known.has(kind) && [Some(begin), end].into_iter().flatten().any(is_here)
        })
    })
}

/// Returns the positions of unknown whole signs of reasoning in a text, in order.
pub(super) fn sign_places(text: &str, known: ReasoningSigns) -> Vec<usize> {
    let is_here = |place: &usize| {
        let rest = text.get(*place..).unwrap_or_default();
        kinds().enumerate().any(|(kind, sign)| !known.has(kind) && kind_begins(sign, rest))
    };
    places(text).filter(is_here).collect()
}

/// Whether `text[start..end]` contains an unknown sign of reasoning or ends in part of one. `places` are those of
/// [`sign_places`] for the whole text, so that only the end of the part is read.
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

/// Returns the text after the reasoning that follows a finished document. It is not part of the document.
pub(super) fn rest_after_reasoning(rest: &str, known: ReasoningSigns) -> &str {
    let body = rest.trim_start();
    match lead("", body, known, MIN_PARTIAL_BYTES) {
        Lead::Reasoning(length) => body.get(length..).unwrap_or_default(),
        Lead::Nothing | Lead::Unfinished => rest,
    }
}

/// Whether a text contains an unknown sign of reasoning, or ends in part of one.
pub(super) fn has_sign(text: &str, known: ReasoningSigns) -> bool {
    first_sign(text, known, MIN_PARTIAL_BYTES).is_some()
}

/// Tracks how far a text that is still arriving contains no sign of reasoning (PC-9).
#[derive(Debug, Clone)]
pub struct SignWatch {
    known_signs: ReasoningSigns,
    clear_bytes: usize,
    is_over: bool,
}

impl SignWatch {
    /// Starts with an empty text that may have these signs.
    pub fn new(known: ReasoningSigns) -> Self {
        Self { known_signs: known, clear_bytes: 0, is_over: false }
    }

    /// Returns the number of bytes before the first sign or possible beginning of a sign.
    pub fn clear(&self) -> usize {
        self.clear_bytes
    }

    /// Reads the text received so far, which must begin with the text of the last call. Returns the number of bytes
    /// before the first sign or possible beginning of a sign.
    pub fn read(&mut self, text: &str) -> usize {
        if !self.is_over {
            let rest = text.get(self.clear_bytes..).unwrap_or_default();
            let found = first_sign(rest, self.known_signs, 1);
            self.clear_bytes += found.unwrap_or(rest.len());
            // A complete sign cannot change.
            let rest = text.get(self.clear_bytes..).unwrap_or_default();
            self.is_over = !rest.is_empty() && rest.len() >= LONGEST_SIGN_BYTES;
        }
        self.clear_bytes
    }
}

/// The longest sign, in bytes.
const LONGEST_SIGN_BYTES: usize = 32;

/// Returns the positions of a text at which a sign may begin, by their first two bytes, because brackets are frequent
/// and signs are rare.
fn places(text: &str) -> impl Iterator<Item = usize> {
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

/// Whether a text begins with a sign of this kind.
fn kind_begins((begin, end): Kind, text: &str) -> bool {
    starts_with(text, begin) || end.is_some_and(|end| starts_with(text, end))
}

fn starts_with(text: &str, sign: &str) -> bool {
    text.get(..sign.len()).is_some_and(|head| head.eq_ignore_ascii_case(sign))
}

/// Whether a text is a proper prefix of a sign.
fn is_proper_prefix(text: &str, sign: &str) -> bool {
    text.len() < sign.len() && sign.get(..text.len()).is_some_and(|head| head.eq_ignore_ascii_case(text))
}

fn position(text: &str, sign: &str) -> Option<usize> {
    places(text).find(|place| text.get(*place..).is_some_and(|rest| starts_with(rest, sign)))
}
