//! What a line says: a marker, the beginning of a finding, a field. Markdown around it does not count.

use crate::findings::{Field, FindingId};

/// A line that stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Start,
    End,
}

/// What a field can be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    AgentId,
    Dimensions,
    Declared,
    /// Lines of the file that `location` names.
    Lines,
    Of(Field),
}

impl Key {
    /// Whether it stands before the findings.
    pub(super) fn is_of_header(self) -> bool {
        matches!(self, Self::AgentId | Self::Dimensions | Self::Declared)
    }
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
}

/// Signs that emphasise, or show code.
const EMPHASIS: [char; 3] = ['*', '_', '`'];

/// The marker that a line is, if it is nothing else: at least two `=` on each side, as many behind as before.
pub(super) fn marker(text: &str) -> Option<Marker> {
    let text = without_lead(text).0;
    let text =
        text.trim_matches(|character: char| character.is_whitespace() || EMPHASIS.contains(&character));
    let inner = text.trim_start_matches('=');
    let before = text.len() - inner.len();
    let word = inner.trim_end_matches('=');
    if before < 2 || inner.len() - word.len() < before {
        return None;
    }
    match folded(word).as_str() {
        "agent_result" | "agent_result_start" | "agent_result_begin" | "start_agent_result" => {
            Some(Marker::Start)
        }
        "agent_result_end" | "end_agent_result" | "end_of_agent_result" => Some(Marker::End),
        _ => None,
    }
}

/// The beginning of a finding: its id and its title.
pub(super) fn head(text: &str) -> Option<(FindingId, &str)> {
    let (text, lead) = without_lead(text);
    let inner = text.trim_start_matches(EMPHASIS);
    let opened = &text[..text.len() - inner.len()];
    if let Some(rest) = inner.strip_prefix(['[', '【', '［', '〔']) {
        let end = rest.find([']', '】', '］', '〕'])?;
        let id = FindingId::read(rest[..end].trim_matches(EMPHASIS))?;
        let behind = &rest[end..];
        let behind = &behind[behind.chars().next().map_or(0, char::len_utf8)..];
        // A link, an index and a word that goes on are none.
        if behind.starts_with(|character: char| {
            character == '(' || character == '[' || character.is_ascii_alphanumeric()
        }) {
            return None;
        }
        return Some((id, title(behind, opened)));
    }
    // Without brackets only where the line is a heading or bold, or a colon follows.
    let end = inner.find([':', '：', '*', '—', '–']).unwrap_or(inner.len());
    let (name, behind) = inner.split_at(end);
    let (name, behind) = match name.split_once(" - ") {
        Some((name, _)) => (name, &inner[name.len()..]),
        None => (name, behind),
    };
    let id = FindingId::read(name.trim_end_matches('.'))?;
    let is_plain_name = id.as_str() == FindingId::numbered(id.number()?).as_str();
    let is_shown = lead.is_heading || opened.contains("**") || behind.starts_with([':', '：']);
    (is_plain_name && is_shown).then(|| (id, title(behind, opened)))
}

fn title<'a>(behind: &'a str, opened: &str) -> &'a str {
    let mut rest = behind;
    if !opened.is_empty() {
        rest = rest.trim_start().strip_prefix(opened).unwrap_or(rest);
    }
    // A sign between id and title stands at the id, or alone; `.env` and `-x` are words of the title.
    let is_between = |character: char| ":：-–—|.".contains(character);
    rest = match rest.strip_prefix([':', '：']) {
        Some(title) => title.trim_start(),
        None => match rest.trim_start().strip_prefix(is_between) {
            Some(title) if title.is_empty() || title.starts_with(char::is_whitespace) => title.trim_start(),
            _ => rest.trim_start(),
        },
    };
    let rest = rest.trim_end();
    match opened {
        "" => rest,
        // `**[F001] Title**`
        opened if rest.matches(opened).count() % 2 == 1 => {
            rest.strip_suffix(opened).unwrap_or(rest).trim_end()
        }
        _ => rest,
    }
}

/// The field that a line is about.
pub(super) fn said(text: &str) -> Option<Said<'_>> {
    if let Some(said) = row(text) {
        return Some(said);
    }
    let (text, lead) = without_lead(text);
    let inner = text.trim_start_matches(['*', '_', '`', '"', '\'']);
    let opened = &text[..text.len() - inner.len()];
    let (at, sign) = separator(inner)?;
    let raw = &inner[..at];
    let name =
        raw.trim_end_matches(|character: char| character.is_whitespace() || "*_`\"'".contains(character));
    let is_closed_before = !opened.is_empty() && raw[name.len()..].contains(opened);
    if name.is_empty() || name.chars().count() > 40 || !name.chars().all(is_of_name) {
        return None;
    }
    let key = key(name);
    let is_colon = matches!(sign, ":" | "：");
    if !is_colon && key.is_none() {
        return None;
    }
    let value = unwrapped(&inner[at + sign.len()..], opened, is_closed_before);
    let is_plain = is_colon || !opened.is_empty() || lead.is_item;
    Some(Said { name, key, value, is_plain })
}

/// `| Severity | High |`
fn row(text: &str) -> Option<Said<'_>> {
    let cells = text.trim().strip_prefix('|')?.strip_suffix('|')?;
    let (name, value) = cells.split_once('|')?;
    let is_ornament = |character: char| character.is_whitespace() || "*_`".contains(character);
    let name = name.trim_matches(is_ornament);
    let value = value.trim();
    let key = key(name.trim_end_matches(':'))?;
    // A row of three cells is of another kind of table.
    (!value.replace("\\|", "").contains('|')).then_some(Said { name, key: Some(key), value, is_plain: true })
}

/// The first sign that can stand between a name and its value.
fn separator(text: &str) -> Option<(usize, &'static str)> {
    let mut before = ' ';
    for (at, character) in text.char_indices().take(64) {
        let rest = &text[at..];
        match character {
            ':' if !rest.starts_with("::") => return Some((at, ":")),
            '：' => return Some((at, "：")),
            '=' if !rest.starts_with("==") && !rest.starts_with("=>") => return Some((at, "=")),
            '-' | '–' | '—' if before.is_whitespace() && rest[character.len_utf8()..].starts_with(' ') => {
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
    character.is_alphanumeric() || " _-/().".contains(character)
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

/// What stood before a line's own words.
#[derive(Debug, Clone, Copy, Default)]
struct Lead {
    is_heading: bool,
    is_item: bool,
}

/// A line without the signs of a list, of a heading, of a task before it.
fn without_lead(text: &str) -> (&str, Lead) {
    let mut lead = Lead::default();
    let mut rest = text.trim();
    // Each can stand in the other; more than a few are no list any more.
    for _ in 0..4 {
        let heading = rest.trim_start_matches('#');
        let hashes = rest.len() - heading.len();
        if (1..=6).contains(&hashes) && heading.starts_with([' ', '\t', '[']) {
            lead.is_heading = true;
            rest = heading.trim_start();
        } else if let Some(inner) = item(rest) {
            lead.is_item = true;
            rest = inner;
        } else {
            break;
        }
    }
    (rest, lead)
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

/// A name in small letters, with one `_` for whatever is between its words.
fn folded(name: &str) -> String {
    let words = name.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

fn key(name: &str) -> Option<Key> {
    Some(match folded(name).as_str() {
        "agent_id" | "agent" | "agent_name" | "agentid" => Key::AgentId,
        "dimensions" | "dimension" | "audit_dimensions" | "dimensions_audited" => Key::Dimensions,
        "declared_findings"
        | "declared"
        | "total_findings"
        | "findings_total"
        | "finding_count"
        | "findings_count"
        | "number_of_findings"
        | "declared_finding_count" => Key::Declared,
        "line" | "lines" | "line_number" | "line_numbers" | "line_range" => Key::Lines,
        "severity" | "severity_level" | "risk" | "risk_level" => Key::Of(Field::Severity),
        "cwe" | "cwes" | "cwe_id" | "cwe_ids" | "weakness" => Key::Of(Field::Cwe),
        "location" | "locations" | "file" | "files" | "file_path" | "filepath" | "affected_file"
        | "place" => Key::Of(Field::Location),
        "source" | "taint_source" | "input_source" | "source_of_taint" => Key::Of(Field::Source),
        "sink" | "taint_sink" | "dangerous_sink" => Key::Of(Field::Sink),
        "flow" | "data_flow" | "dataflow" | "taint_flow" | "flow_path" | "call_path" => Key::Of(Field::Flow),
        "evidence" | "code" | "code_snippet" | "snippet" | "vulnerable_code" | "code_evidence" | "proof" => {
            Key::Of(Field::Evidence)
        }
        "originally_truncated" => Key::Of(Field::OriginallyTruncated),
        _ => return None,
    })
}

/// Whether a text stands for what is to be written in its place: `<what is wrong>`, `{N}`, `…`.
pub(super) fn is_placeholder(text: &str) -> bool {
    let text =
        text.trim_matches(|character: char| character.is_whitespace() || EMPHASIS.contains(&character));
    let is_between = |open: char, close: char| {
        text.strip_prefix(open).and_then(|inner| inner.strip_suffix(close)).is_some_and(|inner| {
            // An arrow closes nothing: `<step -> step>`.
            !inner.is_empty() && !inner.replace("->", "").contains([open, close])
        })
    };
    matches!(text, "…" | "...") || is_between('<', '>') || is_between('{', '}')
}

/// Whether the last, cut line of a text may be the beginning of a marker, or of a finding.
pub(super) fn may_become_structure(text: &str) -> bool {
    let text = text.trim();
    let begins = |whole: &str| whole.starts_with(text);
    !text.is_empty()
        && (text.starts_with("==") || begins("===AGENT") || text == "[" || {
            let inner = text.strip_prefix('[').unwrap_or_default();
            inner.starts_with(['F', 'f']) && inner.len() <= 33 && !inner.contains(']')
        })
}
