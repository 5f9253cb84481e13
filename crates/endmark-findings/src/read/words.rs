//! What a line says: a marker, the beginning of a finding, a field. Markdown around it does not count.

use std::ops::Range;

use super::names::{Key, folded};
use super::tags;
use crate::Field;
use crate::narrow::{narrow, narrowed};

/// A line that stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Start,
    End,
}

/// A line of the form `name: value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said<'a> {
    /// The name as it is written.
    pub(super) name: &'a str,
    /// None if it is no name that is known.
    pub(super) key: Option<Key>,
    pub(super) value: &'a str,
    /// A colon or Markdown says that it is a field; `=` and a dash may as well be code or prose.
    pub(super) is_plain: bool,
    /// A colon follows the name, or the emphasis around it.
    pub(super) is_named: bool,
    /// The name is set apart by bold.
    pub(super) is_bold: bool,
}

/// Signs that emphasise, or show code.
pub(super) const EMPHASIS: [char; 3] = ['*', '_', '`'];

/// The marker that a line is, with a few words behind it at most: at least two `=` on each side, as many behind as before.
pub(super) fn marker(text: &str) -> Option<Marker> {
    if !text.contains(['=', '＝']) {
        return None;
    }
    let text = narrow(text);
    let text = tags::without_any(without_lead(&text).0);
    let text =
        text.trim_matches(|character: char| character.is_whitespace() || EMPHASIS.contains(&character));
    let inner = text.trim_start_matches('=');
    let before = text.len() - inner.len();
    if before < 2 {
        return None;
    }
    let (word, behind) = inner.split_at(inner.find("==")?);
    let note = behind.trim_start_matches('=');
    if behind.len() - note.len() < before || !is_note(note) {
        return None;
    }
    match folded(word).as_ref() {
        "agent_result" | "agent_result_start" | "agent_result_begin" | "start_agent_result" => {
            Some(Marker::Start)
        }
        "agent_result_end" | "end_agent_result" | "end_of_agent_result" => Some(Marker::End),
        _ => None,
    }
}

/// Whether what stands behind a marker is a note on it, as `(final)` is, and not the rest of a sentence or of code.
fn is_note(text: &str) -> bool {
    let text =
        text.trim_matches(|character: char| character.is_whitespace() || EMPHASIS.contains(&character));
    let is_word = |word: &str| word.chars().all(|sign| sign.is_alphanumeric() || "-_.#/".contains(sign));
    let is_between = [("(", ")"), ("[", "]"), ("<!--", "-->"), ("/*", "*/")].iter().any(|(open, close)| {
        text.strip_prefix(open)
            .and_then(|text| text.strip_suffix(close))
            .is_some_and(|inner| !inner.contains(close))
    });
    let named = text.strip_prefix(['-', '–', '—', ':', '#', '|']);
    let is_named = named.is_some_and(|words| {
        words.split_whitespace().count() <= 3
            && words.split_whitespace().all(is_word)
            && !words.ends_with('.')
    });
    text.is_empty() || is_between || is_named || is_word(text) && !text.ends_with('.')
}

/// The field that a line is about.
pub(super) fn said(text: &str) -> Option<Said<'_>> {
    if let Some(said) = row(text) {
        return Some(said);
    }
    let line = text;
    let (text, lead) = without_lead(line);
    let text = if lead.is_tagged && !text.contains(':') { tags::closed(text, line) } else { text };
    let inner = text.trim_start_matches(['*', '_', '`', '"', '\'']);
    let opened = &text[..text.len() - inner.len()];
    // `**🔴 Source:** x`
    let inner = without_picture(inner).filter(|_| !opened.is_empty()).unwrap_or(inner);
    let noted = noted(inner);
    let Some((at, sign)) = noted.map(|(_, at)| (at, ":")).or_else(|| separator(inner)) else {
        return label(inner, opened, lead);
    };
    let raw = if lead.is_tagged { tags::closed(&inner[..at], line) } else { &inner[..at] };
    let name =
        raw.trim_end_matches(|character: char| character.is_whitespace() || "*_`\"'".contains(character));
    let name = noted.map_or(name, |(name, _)| name);
    let is_closed_before = !opened.is_empty() && raw[name.len()..].contains(opened);
    let is_name = || name.chars().all(is_of_name) || Key::named(name) == Some(Key::Ends);
    if name.is_empty() || name.chars().count() > 40 || !is_name() {
        return None;
    }
    // `### Endpoint: POST /login` is what the findings below it are about.
    let key = Key::named(name).filter(|key| *key != Key::Part || lead.hashes == 0);
    let is_colon = matches!(sign, ":" | "：");
    if !is_colon && key.is_none() {
        return None;
    }
    let value = &inner[at + sign.len()..];
    let value = if lead.is_tagged { tags::closed(value, line) } else { value };
    let value = unwrapped(value, opened, is_closed_before);
    let is_plain = is_colon || !opened.is_empty() || lead.is_item();
    let is_bold = opened.contains("**") || opened.contains("__") || lead.is_bold;
    Some(Said { name, key, value, is_plain, is_named: is_colon, is_bold })
}

/// The name of a field behind which a note stands in brackets, and where the colon is: ``Evidence** (`a.rs:4`):``.
fn noted(inner: &str) -> Option<(&str, usize)> {
    let (name, rest) = inner.split_once('(').filter(|(name, _)| name.chars().count() <= 24)?;
    let name = name.trim_end_matches(|sign: char| sign.is_whitespace() || EMPHASIS.contains(&sign));
    let (note, behind) = rest.split_once(')')?;
    let colon = behind.trim_start_matches(EMPHASIS);
    let is_note = note.contains(':') && colon.starts_with(':') && !colon.starts_with("::");
    (is_note && Key::named(name).is_some()).then_some((name, inner.len() - colon.len()))
}

/// `### Evidence` and `**Evidence**`: the name of a field alone, and its value in the next lines.
fn label<'a>(inner: &'a str, opened: &str, lead: Lead) -> Option<Said<'a>> {
    let name =
        inner.trim_end_matches(|character: char| character.is_whitespace() || EMPHASIS.contains(&character));
    let is_closed = opened.contains("**") && inner[name.len()..].contains("**") || opened.contains("__");
    let key = Key::named(name).filter(|key| key.is_of_finding() || key.is_of_header());
    (key.is_some() && (lead.hashes > 0 || is_closed || lead.is_bold)).then_some(Said {
        name,
        key,
        value: "",
        is_plain: true,
        is_named: false,
        is_bold: is_closed,
    })
}

/// Whether a line begins with the name of something, known or not: `Impact: x`, `**Source → Sink:** x`, `*CVSS 3.1* — 9.8`.
pub(super) fn is_labelled(text: &str) -> bool {
    said(text).is_some() || has_emphasised_name(text)
}

/// Whether a line is nothing but such a name, and what is said of it comes in the next lines: `- **Impact:**`.
pub(super) fn is_label_alone(text: &str) -> bool {
    let ends = text.trim_end_matches(|sign: char| sign.is_whitespace() || EMPHASIS.contains(&sign));
    is_labelled(text) && ends.ends_with([':', '：'])
}

/// Whether a line begins with a name in emphasis, whatever its signs are.
pub(super) fn has_emphasised_name(text: &str) -> bool {
    let text = without_lead(text).0;
    let inner = text.trim_start_matches(['*', '_']);
    let opened = &text[..text.len() - inner.len()];
    let Some((name, behind)) = inner.split_once(opened).filter(|_| !opened.is_empty()) else { return false };
    let is_separated = name.ends_with([':', '：'])
        || behind.starts_with([':', '：'])
        || behind.starts_with(' ') && behind.trim_start().starts_with(['-', '–', '—']);
    is_separated && name.starts_with(char::is_alphanumeric)
}

/// Whether a line is nothing but signs, as what parts two findings: `* * *`, `---`.
pub(super) fn is_rule(text: &str) -> bool {
    text.trim().chars().all(|character| "-*_=|: ".contains(character)) || tags::are_all(text)
}

/// The fields of one line: `**Severity:** High | **CWE:** CWE-89`. Where the names are not bold, what is behind a severity or a
/// weakness is a field of its own whatever its name is; the others are texts with signs of all kinds, behind which a field
/// has the name that the form gives it.
pub(super) fn fields(text: &str) -> Vec<&str> {
    if let Some(fields) = header_fields(text) {
        return fields;
    }
    if let Some(lines) = lines_in_html(text) {
        return lines.into_iter().flat_map(fields).collect();
    }
    let mut fields = Vec::new();
    let mut rest = text;
    while let Some(first) =
        said(rest).filter(|_| fields.len() < MOST_FIELDS && !rest.trim_start().starts_with('|'))
    {
        let Some(at) = first.key.and_then(|key| next_field(rest, first, key)) else { break };
        let is_between = |character: char| character.is_whitespace() || "|·•,;→".contains(character);
        fields.push(rest[..at].trim_end_matches(is_between));
        rest = rest[at..].trim_start_matches(is_between);
    }
    fields.push(rest);
    fields
}

/// The fields of a line that HTML has several lines of; behind code only those whose names are bold. None if it has one, and
/// does not end in such a sign.
fn lines_in_html(text: &str) -> Option<Vec<&str>> {
    let key = said(text)?.key?;
    let is_code = key == Key::Of(Field::Evidence);
    let mut lines: Vec<Range<usize>> = Vec::new();
    let mut end = 0;
    for piece in tags::pieces(text) {
        let words = &text[piece.clone()];
        let is_field =
            said(words).is_some_and(|said| said.key.is_some() && said.is_named && (!is_code || said.is_bold));
        end = piece.end;
        match lines.last_mut() {
            Some(_) if !is_field && !is_code && words.trim().is_empty() => {}
            Some(last) if !is_field => last.end = piece.end,
            _ => lines.push(piece),
        }
    }
    let is_one = lines.len() == 1 && lines[0].end == end;
    (!is_one).then(|| lines.into_iter().filter_map(|range| text.get(range)).collect())
}

/// Where in a line another field begins behind this one.
fn next_field(text: &str, first: Said<'_>, key: Key) -> Option<usize> {
    let is_of_word = matches!(key, Key::Of(Field::Severity | Field::Cwe));
    let is_text = !is_of_word && !first.is_bold;
    // `flow: source: name; sink: execute`
    let is_of_several = is_text && (has_own_name(first.value) || key.is_of_header());
    if is_of_several || key == Key::Of(Field::Evidence) {
        return None;
    }
    let begins = text.find(first.name).map_or(0, |at| at + first.name.len());
    let value = begins + text[begins..].find(first.value).unwrap_or(0);
    let looked_at = text.get(..MOST_LOOKED_AT).unwrap_or(text);
    let is_in_code =
        |at: usize| ['`', '"'].iter().any(|sign| text[value.min(at)..at].matches(*sign).count() % 2 == 1);
    let is_field = |(at, sign): &(usize, &str)| {
        let behind = text[at + sign.len()..].trim_start();
        let is_bold = || {
            first.is_bold
                && behind.strip_prefix("**").is_some_and(|inner| inner.starts_with(char::is_alphanumeric))
        };
        let is_own = || is_text && has_own_name(behind) && !is_in_code(*at);
        let is_apart = match *sign {
            " " => is_bold(),
            "," => is_of_word || is_bold(),
            ";" | "\t" => is_of_word || is_bold() || is_own(),
            _ => !is_text || is_own(),
        };
        *at > begins && is_apart && said(behind).is_some_and(|said| said.key.is_some() && said.is_named)
    };
    looked_at.match_indices([' ', '|', '·', '•', ';', '\t', ',']).find(is_field).map(|(at, _)| at)
}

/// Whether a text is a field with the name that the form has for it, and with a value.
fn has_own_name(text: &str) -> bool {
    said(text).is_some_and(|said| {
        let is_own = match said.key {
            Some(Key::Of(field)) => [field.name(), "file"].contains(&folded(said.name).as_ref()),
            Some(Key::Lines | Key::LastLine) => true,
            _ => false,
        };
        is_own && said.is_named && !said.value.is_empty()
    })
}

/// The fields of a header that stand in one line: `agent_id: a-1 | dimensions: a, b | declared_findings: 3`. None if there is one at
/// most.
fn header_fields(text: &str) -> Option<Vec<&str>> {
    let is_header = |text: &str| said(text).is_some_and(|said| said.key.is_some_and(Key::is_of_header));
    let inner = text.trim();
    let mut rest = inner.strip_prefix('|').map_or(inner, |cells| cells.strip_suffix('|').unwrap_or(cells));
    if !is_header(rest) {
        return None;
    }
    let is_between = |sign: char| sign.is_whitespace() || "|·•,;-–—".contains(sign);
    let mut fields = Vec::new();
    while fields.len() < MOST_FIELDS {
        let looked_at = rest.get(..MOST_LOOKED_AT).unwrap_or(rest);
        let next = HEADER_NAMES.iter().filter_map(|name| begins_field(looked_at, name)).min();
        let Some(at) = next else { break };
        fields.push(rest[..at].trim_end_matches(is_between));
        rest = &rest[at..];
    }
    fields.push(rest.trim());
    (fields.len() > 1).then_some(fields)
}

/// The names at which a header in one line is taken apart: other spellings of them may be words of a dimension.
const HEADER_NAMES: [&str; 7] = [
    "agent_id",
    "agent id",
    "dimensions",
    "declared_findings",
    "declared findings",
    "total_findings",
    "total findings",
];

/// Where behind its beginning a text has a field of this name.
fn begins_field(text: &str, name: &str) -> Option<usize> {
    let is_between = |sign: char| sign.is_whitespace() || "|·•,;".contains(sign);
    let folded = text.to_ascii_lowercase();
    let mut found = folded.match_indices(name);
    let is_field = |(at, name): &(usize, &str)| {
        let emphasis = text[..*at].trim_end_matches(EMPHASIS);
        let behind = text[at + name.len()..].trim_start_matches(EMPHASIS).trim_start();
        !emphasis.trim().is_empty() && emphasis.ends_with(is_between) && behind.starts_with([':', '：', '='])
    };
    let at = found.find(is_field)?.0;
    Some(text[..at].trim_end_matches(EMPHASIS).len())
}

/// More fields in one line are not looked for.
const MOST_FIELDS: usize = 12;

/// So many bytes of a longer line are looked at for them, where these end with a character.
const MOST_LOOKED_AT: usize = 2_048;

/// `| Severity | High |`
fn row(text: &str) -> Option<Said<'_>> {
    let cells = text.trim().strip_prefix('|')?.strip_suffix('|')?;
    let (name, value) = cells.split_once('|')?;
    let is_ornament = |character: char| character.is_whitespace() || "*_`".contains(character);
    let name = name.trim_matches(is_ornament);
    let value = value.trim();
    let key = Key::named(name.trim_end_matches(':'))?;
    // A row of three cells is of another kind of table, unless it is code with a `|` that nobody has escaped.
    let is_code = || {
        matches!(key, Key::Ends | Key::Of(Field::Evidence | Field::Source | Field::Sink | Field::Flow))
            && value.split('|').all(|cell| Key::named(cell.trim().trim_end_matches(':')).is_none())
            && value.contains(['(', '=', ';', '`', '{', '"', '\'', '<'])
    };
    (!value.replace("\\|", "").contains('|') || is_code()).then_some(Said {
        name,
        key: Some(key),
        value,
        is_plain: true,
        is_named: false,
        is_bold: false,
    })
}

/// The first sign that can stand between a name and its value.
fn separator(text: &str) -> Option<(usize, &'static str)> {
    let mut before = ' ';
    for (at, character) in text.char_indices().take(64) {
        let rest = &text[at..];
        match character {
            ':' if !rest.starts_with("::") => return Some((at, ":")),
            '：' => return Some((at, "：")),
            '＝' => return Some((at, "＝")),
            '=' if !rest.starts_with("==") && !rest.starts_with("=>") => return Some((at, "=")),
            '-' | '–' | '—'
                if before.is_whitespace()
                    && (rest.len() == character.len_utf8()
                        || rest[character.len_utf8()..].starts_with(' ')) =>
            {
                return Some((
                    at,
                    match character {
                        '-' => "-",
                        '–' => "–",
                        _ => "—",
                    },
                ));
            }
            _ => before = character,
        }
    }
    None
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || " _-/().".contains(narrowed(character))
}

/// The value without the emphasis or the quotes that were opened before its name, or that close its name.
fn unwrapped<'a>(value: &'a str, opened: &str, is_closed_before: bool) -> &'a str {
    let value = value.trim();
    if opened.is_empty() {
        return value;
    }
    if opened.ends_with('"') {
        let value = value.trim_end_matches(',');
        return value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(value);
    }
    if is_closed_before {
        return value;
    }
    if let Some(rest) = value.strip_prefix(opened) {
        // `**Severity:** High`
        return rest.trim_start();
    }
    // `**Severity: High**`
    value.strip_suffix(opened).unwrap_or(value).trim_end()
}

/// More signs in front of a line are not looked at.
const MOST_SIGNS: usize = 6;

/// What opens to show more is a heading of this depth.
const HASHES_OF_SUMMARY: usize = 3;

/// What stood before a line's own words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lead {
    /// How many `#` of a heading.
    pub(super) hashes: usize,
    pub(super) is_bullet: bool,
    /// The number of a list's item.
    pub(super) number: Option<u32>,
    /// Tags of HTML stand there, and whether one of them is for bold.
    pub(super) is_tagged: bool,
    pub(super) is_bold: bool,
}

impl Lead {
    fn is_item(self) -> bool {
        self.is_bullet || self.number.is_some()
    }

    /// Takes a tag for the sign of Markdown that it stands for.
    fn tag(&mut self, name: &str) {
        self.is_tagged = true;
        match name.to_ascii_lowercase().as_str() {
            "li" | "dt" => self.is_bullet = true,
            "b" | "strong" => self.is_bold = true,
            "summary" => self.hashes = HASHES_OF_SUMMARY,
            name => {
                let digits = name.strip_prefix('h').and_then(|digits| digits.parse().ok());
                self.hashes = digits.unwrap_or(self.hashes);
            }
        }
    }
}

/// A line without the signs of a list, of a heading, of a task, and without pictures and tags before it.
pub(super) fn without_lead(text: &str) -> (&str, Lead) {
    let mut lead = Lead::default();
    let mut rest = text.trim();
    // Each can stand in the other; more than a few are no list any more.
    for _ in 0..MOST_SIGNS {
        let heading = rest.trim_start_matches('#');
        let hashes = rest.len() - heading.len();
        if (1..=6).contains(&hashes) && heading.starts_with([' ', '\t', '[']) {
            lead.hashes = hashes;
            rest = heading.trim_start();
        } else if let Some(inner) = item(rest) {
            let digits = rest.len() - rest.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
            lead.is_bullet |= digits == 0;
            lead.number = rest[..digits].parse().ok().or(lead.number);
            rest = inner;
        } else if let Some(inner) = task(rest).filter(|_| lead.is_item()) {
            rest = inner;
        } else if let Some(inner) = without_picture(rest) {
            rest = inner;
        } else if let Some(behind) = tags::behind_anchor(rest) {
            rest = behind;
        } else if let Some(tag) = tags::opening(rest) {
            lead.tag(tag.name);
            rest = tag.behind.trim_start();
        } else {
            break;
        }
    }
    (rest, lead)
}

/// What stands behind the box of a task: `[ ]`, `[x]`.
fn task(text: &str) -> Option<&str> {
    ["[ ] ", "[x] ", "[X] "].iter().find_map(|sign| text.strip_prefix(sign)).map(str::trim_start)
}

/// What stands behind a picture such as 🔴 or ⚠️.
fn without_picture(text: &str) -> Option<&str> {
    let is_of_picture = |character: char| matches!(u32::from(character), 0x2190..=0x21FF | 0x2300..=0x2BFF | 0xFE0F | 0x200D | 0x20E3 | 0x1_F000..=0x1_FAFF);
    let inner = text.trim_start_matches(is_of_picture);
    // `:pushpin: Source` names its picture; `»Source` points at what it stands before.
    let named = || {
        let (name, behind) = text.strip_prefix(':')?.split_once(": ")?;
        let is_name = !name.is_empty() && name.chars().all(|sign| sign.is_ascii_lowercase() || sign == '_');
        is_name.then_some(behind)
    };
    let pointed = || text.strip_prefix(['»', '›']).filter(|behind| !behind.contains(['«', '‹']));
    let exclaimed = || text.strip_prefix("(!) ").or_else(|| text.strip_prefix("[!] "));
    let behind =
        if inner.len() < text.len() { Some(inner) } else { named().or_else(pointed).or_else(exclaimed) };
    behind.map(str::trim_start)
}

/// What stands behind the sign of a list's item.
pub(super) fn item(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let behind = if let Some(behind) = text.strip_prefix(['-', '*', '+', '•', '‣', '◦', '–']) {
        behind
    } else {
        let digits = text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        if !(1..=3).contains(&digits) {
            return None;
        }
        text[digits..].strip_prefix(['.', ')'])?
    };
    let inner = behind.trim_start();
    // `*emphasis*` and `-1` are no items.
    (inner.len() < behind.len()).then_some(inner)
}

/// Whether the last, cut line of a text may be the beginning of a marker, or of a finding.
pub(super) fn may_become_structure(text: &str) -> bool {
    let text = narrow(text);
    let text = without_lead(&text).0.trim_matches(EMPHASIS);
    let begins = |whole: &str| whole.starts_with(text);
    let inner = text.strip_prefix('[').unwrap_or(text);
    text.is_empty()
        || text.starts_with("==")
        || begins("===AGENT")
        || inner.is_empty()
        || inner.starts_with(['F', 'f']) && inner.len() <= 33 && !inner.contains([']', '(', ';', '='])
}
