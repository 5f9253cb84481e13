//! Classifies a line by itself, regardless of its context. (AR-1)

use endmark_text::CodeFence;

use super::checkpoint;
use super::key::Key;
use crate::vocabulary::{contains, find_list, fold};
use crate::{Cwe, FindingId};

/// The meaning of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineEvent<'a> {
    Blank,
    /// The start marker.
    Start,
    /// The end marker.
    End,
    Checkpoint,
    /// The beginning or end of a conversation turn.
    Turn,
    /// The first line of a finding: its id and title.
    Head(FindingId, &'a str),
    /// One field, or several separated by `|`.
    Fields(Vec<NamedValue<'a>>),
    /// A field that is not part of the format, or another label.
    Other,
    /// A separator line: `---`.
    Rule,
    Fence(CodeFence),
    Text,
}

/// A known field name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedValue<'a> {
    pub(super) key: Key,
    pub(super) value: &'a str,
}

/// The marker before a result.
pub(crate) const START: &str = "===AGENT_RESULT===";
/// The marker after a result.
pub(crate) const END: &str = "===AGENT_RESULT_END===";

/// Characters for emphasis or code.
const EMPHASIS_CHARS: [char; 3] = ['*', '_', '`'];

/// The maximum length of a field name, in bytes.
const MAX_NAME_BYTES: usize = 40;

/// Returns the meaning of a line, independent of the lines before it.
pub(super) fn classify_line(text: &str) -> LineEvent<'_> {
    let text = text.trim();
    if text.is_empty() {
        return LineEvent::Blank;
    }
    if let Some(fence) = CodeFence::parse(text) {
        return LineEvent::Fence(fence);
    }
    match text.trim_matches(EMPHASIS_CHARS) {
        START => return LineEvent::Start,
        END => return LineEvent::End,
        _ if checkpoint::is_checkpoint(text) => return LineEvent::Checkpoint,
        _ if is_turn(text) => return LineEvent::Turn,
        _ => {}
    }
    if text.len() >= 3 && text.chars().all(|ch| "-*_ ".contains(ch)) {
        return LineEvent::Rule;
    }
    let (inner, is_heading) = strip_line_prefix(text);
    if let Some((id, title)) = parse_head(inner, is_heading) {
        return LineEvent::Head(id, title);
    }
    // A line with one `#` may be a comment in code.
    parse_fields(inner, is_heading && text.starts_with("##"))
}

/// Returns the text after a speaker's name in a line: `Assistant: ===AGENT_RESULT===`.
pub(super) fn rest_after_speaker(text: &str) -> Option<&str> {
    let (speaker, tail) = text.trim_start_matches(['#', ' ', '*']).split_once(':')?;
    let list = find_list("speaker", &speaker.trim().to_lowercase());
    (list == Some("turn")).then(|| tail.trim_matches(['*', ' ']))
}

/// Whether a turn of the conversation begins or ends: `Human: go on`, `### User`, `<|im_start|>assistant`.
fn is_turn(text: &str) -> bool {
    let is_token = text.strip_prefix("<|").is_some_and(|inner| inner.contains("|>"));
    let is_heading = || {
        let words = text.trim_start_matches('#');
        words.len() < text.len() && contains("speaker", words.trim())
    };
    is_token || rest_after_speaker(text).is_some() || is_heading()
}

/// Strips heading and list markers from a line, and returns whether it is a heading.
fn strip_line_prefix(text: &str) -> (&str, bool) {
    let (mut rest, mut is_heading) = (text, false);
    // At most three markers: `- ### 1. x`.
    for _ in 0..3 {
        let hashes = rest.trim_start_matches('#');
        let digits = rest.trim_start_matches(|ch: char| ch.is_ascii_digit());
        let tail = match rest.len() - hashes.len() {
            1..=6 => hashes,
            _ if (1..=3).contains(&(rest.len() - digits.len())) => {
                digits.strip_prefix(['.', ')']).unwrap_or(rest)
            }
            _ => rest.strip_prefix(['-', '*', '+', '•']).unwrap_or(rest),
        };
        let inner = tail.trim_start();
        // `*emphasis*` and `-1` are not list items.
        if inner.len() == tail.len() {
            break;
        }
        is_heading |= rest.starts_with('#');
        rest = inner;
    }
    (rest, is_heading)
}

/// Returns the content of a list item, or `None` if the line is not one.
pub(super) fn list_item(text: &str) -> Option<&str> {
    let text = text.trim();
    let (inner, is_heading) = strip_line_prefix(text);
    (!is_heading && inner.len() < text.len()).then_some(inner)
}

/// Parses the first line of a finding: `[F001] SQL`. Headings, bold text and ids with a colon need no brackets.
fn parse_head(text: &str, is_heading: bool) -> Option<(FindingId, &str)> {
    let inner = text.trim_start_matches(EMPHASIS_CHARS);
    let opened = &text[..text.len() - inner.len()];
    let (id, tail) = if let Some(inner) = inner.strip_prefix('[') {
        let (name, tail) = inner.split_once(']')?;
        (FindingId::read(name).or_else(|| parse_custom_id(name))?, tail)
    } else {
        let (id, tail) = split_id(inner)?;
        // `F1: x` may be code.
        let is_named = tail.starts_with(": ") && inner.len() - tail.len() > 2;
        let is_set_apart = is_heading || opened.contains("**") || is_named;
        (id, Some(tail).filter(|_| is_set_apart)?)
    };
    // A link does not begin a finding.
    if tail.starts_with('(') {
        return None;
    }
    let title = tail.trim();
    let title = if opened.is_empty() {
        title
    } else {
        title.strip_prefix(opened).or_else(|| title.strip_suffix(opened)).unwrap_or(title)
    };
    let title = if is_heading { title.trim_end_matches('#') } else { title };
    let is_between = |ch: char| ch.is_whitespace() || [':', '.', '-', '–', '—', ')'].contains(&ch);
    let title = title.trim_start_matches(is_between).trim_end();
    // This crate writes an id of another form before the title: `[F002] SQLI-1: SQL`.
    let other = title.split_once(": ").and_then(|(name, title)| Some((parse_custom_id(name)?, title)));
    Some(other.unwrap_or((id, title)))
}

/// Parses an id of another form, such as `SQLI-1`. A weakness such as `CWE-89` is not an id.
fn parse_custom_id(name: &str) -> Option<FindingId> {
    let digits = name.trim_end_matches(|ch: char| ch.is_ascii_digit());
    let is_part = |ch: char| ch.is_ascii_uppercase() || ch.is_ascii_digit() || "-_.".contains(ch);
    let is_id = digits.len() < name.len()
        && digits.ends_with(['-', '_', '.'])
        && digits.starts_with(|ch: char| ch.is_ascii_uppercase())
        && digits.chars().all(is_part)
        && !["CWE-", "CVE-"].iter().any(|prefix| digits.starts_with(prefix));
    FindingId::from_name(name).filter(|_| is_id)
}

/// Returns the id at the start of a text, up to its number, and the rest.
fn split_id(text: &str) -> Option<(FindingId, &str)> {
    let digits = text.find(|ch: char| ch.is_ascii_digit())?;
    let length = text[digits..].find(|ch: char| !ch.is_ascii_digit());
    let (name, tail) = text.split_at(length.map_or(text.len(), |length| digits + length));
    let id = FindingId::read(name).filter(|_| name.starts_with(['F', 'f']))?;
    (!tail.starts_with(|ch: char| ch.is_alphanumeric() || ch == '_')).then_some((id, tail))
}

/// Returns the id of a finding in a JSON line: `"id": "F001"`.
pub(super) fn id_in_json(text: &str) -> Option<FindingId> {
    let (_, tail) = text.split_once("\"id\"")?;
    let value = tail.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    FindingId::read(value.split('"').next()?)
}

/// Returns the id at the start of a line that cannot be parsed, after any punctuation or tags: `| F001 | SQL`,
/// `<h3>F001: SQL`.
pub(super) fn mentioned_id(text: &str) -> Option<FindingId> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|ch: char| !ch.is_alphanumeric() && ch != '<');
        match rest.strip_prefix('<').and_then(|inner| inner.split_once('>')) {
            Some((_, tail)) => rest = tail,
            None => return split_id(strip_line_prefix(rest).0).map(|(id, _)| id),
        }
    }
}

fn parse_fields(text: &str, is_label: bool) -> LineEvent<'_> {
    let several: Option<Vec<NamedValue<'_>>> =
        text.split('|').map(|part| parse_known_field(part.trim())).collect();
    if let Some(several) = several.filter(|several| several.len() > 1) {
        return LineEvent::Fields(several);
    }
    match parse_field(text) {
        Some((name, value, is_set_apart)) => match Key::from_name(name) {
            Some(key) => LineEvent::Fields(vec![NamedValue { key, value }]),
            None if is_label || is_set_apart || contains("beside", &fold(name)) => LineEvent::Other,
            None => LineEvent::Text,
        },
        None if is_label || text.starts_with("**") || text.starts_with("__") => LineEvent::Other,
        None => LineEvent::Text,
    }
}

/// Returns the name and value of a field with a plain name, known or not: `confidence: high`. The next lines may
/// continue the value.
pub(super) fn parse_any_field(text: &str) -> Option<(&str, &str)> {
    let (name, value, _) = parse_field(strip_line_prefix(text.trim()).0)?;
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit());
    (is_plain || contains("beside", &fold(name))).then_some((name, value))
}

/// The parts of a finding's first line: `Critical | CWE-89 | Title`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Headline<'a> {
    pub(super) severity: Option<&'a str>,
    pub(super) cwe: Option<&'a str>,
    /// The other parts, joined by ` | `.
    pub(super) title: String,
}

/// Parses the parts of a first line. They are recognised by their content, because agents omit some.
pub(super) fn parse_headline(title: &str) -> Option<Headline<'_>> {
    let parts = title.split('|').map(str::trim).filter(|part| !part.is_empty());
    // `Critical | High | Medium` is a list of choices in a template.
    let (severities, parts): (Vec<_>, Vec<_>) = parts.partition(|part| is_severity(part));
    let (cwe, parts): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| is_weakness(part));
    let is_headed = title.contains('|') && severities.len() + cwe.len() > 0;
    (is_headed && severities.len() < 2 && cwe.len() < 2).then(|| Headline {
        severity: severities.first().copied(),
        cwe: cwe.first().copied(),
        title: parts.join(" | "),
    })
}

/// Whether a part is a severity: `High`, `**High**`, `High (8.1)`, but not `High entropy`.
fn is_severity(part: &str) -> bool {
    let label = part.split('(').next().unwrap_or(part);
    let label = label.trim_matches(|ch: char| !ch.is_alphanumeric());
    contains("severity", label)
}

fn is_weakness(part: &str) -> bool {
    part.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("cwe")) && !Cwe::read(part).is_empty()
}

fn parse_known_field(text: &str) -> Option<NamedValue<'_>> {
    let (name, value, _) = parse_field(text)?;
    Some(NamedValue { key: Key::from_name(name)?, value })
}

/// Parses a name and its value, and whether the name is emphasised: `severity: High`, `**Severity:** High`.
fn parse_field(text: &str) -> Option<(&str, &str, bool)> {
    let inner = text.trim_start_matches(EMPHASIS_CHARS);
    let opened = &text[..text.len() - inner.len()];
    let colon = inner.find(':').map(|at| (at, 1));
    let dash = || [" - ", " – ", " — "].iter().find_map(|dash| Some((inner.find(dash)?, dash.len())));
    let (at, length) = colon.or_else(|| dash().filter(|_| !opened.is_empty()))?;
    let (name, value) = (&inner[..at], inner[at + length..].trim());
    let bare = name.trim_end().trim_end_matches(EMPHASIS_CHARS);
    let is_name = |ch: char| ch.is_alphanumeric() || " _-/()".contains(ch);
    // `std::fmt` is not a field, but `flow: :42` is one.
    let is_path = inner[at + length..].starts_with(':');
    if bare.is_empty() || bare.len() > MAX_NAME_BYTES || !bare.chars().all(is_name) || is_path {
        return None;
    }
    let is_closed = bare.len() < name.trim_end().len();
    // `**Severity:*` was cut inside its emphasis markers.
    let value =
        if opened.is_empty() || !value.chars().all(|ch| EMPHASIS_CHARS.contains(&ch)) { value } else { "" };
    let value = if opened.is_empty() || is_closed {
        value
    } else {
        // `**Severity:** High`, `**Severity: High**`
        value.strip_prefix(opened).or_else(|| value.strip_suffix(opened)).unwrap_or(value).trim()
    };
    Some((bare, value, !opened.is_empty()))
}
