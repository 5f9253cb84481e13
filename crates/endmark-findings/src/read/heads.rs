//! The beginning of a finding: `[F001] What is wrong`, and how else models write it.

mod inner_id;

use std::borrow::Cow;

use crate::FindingId;

use super::words::{EMPHASIS, Lead, said, without_lead};

/// The beginning of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head<'a> {
    /// None if the line says none.
    pub(super) id: Option<FindingId>,
    pub(super) title: Cow<'a, str>,
    pub(super) shape: Shape,
}

impl Head<'_> {
    /// Whether nothing stands behind its id, so that where the text stops the id may go on.
    pub(super) fn ends_with_id(&self, text: &str) -> bool {
        self.title.is_empty() && text.ends_with(char::is_alphanumeric)
    }
}

/// How a beginning looks: in one result, all look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape {
    hashes: usize,
    item: Item,
    is_bold: bool,
    is_bracket: bool,
}

/// The sign of a list before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Item {
    #[default]
    None,
    Bullet,
    Number,
}

impl Shape {
    /// Whether the line is set apart from others: a heading, or bold.
    pub(super) fn is_set_apart(self) -> bool {
        self.hashes > 0 || self.is_bold
    }

    /// How many `#` of a heading.
    pub(super) fn hashes(self) -> usize {
        self.hashes
    }

    /// Whether the id stands in brackets, as the form has it.
    pub(super) fn is_bracket(self) -> bool {
        self.is_bracket
    }

    fn of(lead: Lead, opened: &str, is_bracket: bool) -> Self {
        Self {
            hashes: lead.hashes,
            item: match lead {
                Lead { number: Some(_), .. } => Item::Number,
                Lead { is_bullet: true, .. } => Item::Bullet,
                _ => Item::None,
            },
            is_bold: lead.is_bold || opened.contains("**") || opened.contains("__"),
            is_bracket,
        }
    }
}

/// A line without what stands before its own words, the emphasis that they begin with, and what stood before.
fn opened(text: &str) -> (&str, &str, Lead) {
    let (text, mut lead) = without_lead(text);
    let inner = text.trim_start_matches(EMPHASIS);
    let opened = &text[..text.len() - inner.len()];
    // `**1. [F001] SQL**`
    let (rest, within) = without_lead(inner);
    if opened.is_empty() || within.number.is_none() {
        return (inner, opened, lead);
    }
    lead.number = within.number;
    (rest, opened, lead)
}

/// The beginning of a finding that its id gives away.
pub(super) fn head(text: &str) -> Option<Head<'_>> {
    let (inner, opened, lead) = opened(text);
    if let Some((name, behind)) = bracketed(inner) {
        let id = FindingId::read(name.trim_matches(EMPHASIS))?;
        let title = title(behind, opened);
        return is_title(behind, &title).then_some(Head {
            id: Some(id),
            title,
            shape: Shape::of(lead, opened, true),
        });
    }
    // Without brackets only where the line is a heading or bold, or a colon follows.
    let (id, behind) = unbracketed(inner)?;
    let is_shown = lead.hashes > 0 || opened.contains("**") || behind.starts_with([':', '：']);
    is_shown.then(|| Head {
        id: Some(id),
        title: title(behind, opened),
        shape: Shape::of(lead, opened, false),
    })
}

/// What may be the beginning of a finding if the fields of one follow: another id, or none.
pub(super) fn possible_head(text: &str) -> Option<Head<'_>> {
    if said(text).is_some_and(|said| said.key.is_some()) {
        return None;
    }
    let (inner, opened, lead) = opened(text);
    if inner.contains("](#")
        && let Some((id, title)) = inner_id::within(inner, opened)
    {
        let shape = Shape::of(lead, opened, false);
        return Some(Head { id: Some(id), title: Cow::Owned(title), shape });
    }
    if let Some((name, behind)) = bracketed(inner) {
        let title = title(behind, opened);
        let is_id = name.chars().count() <= 32 && name.chars().any(|character| character.is_ascii_digit());
        let id = FindingId::named(name.trim_matches(EMPHASIS))?;
        let shape = Shape::of(lead, opened, true);
        return (is_id && is_title(behind, &title)).then_some(Head { id: Some(id), title, shape });
    }
    let shape = Shape::of(lead, opened, false);
    if let Some((id, behind)) = unbracketed(inner.trim_start_matches('(')) {
        let behind = behind.strip_prefix(')').unwrap_or(behind);
        return Some(Head { id: Some(id), title: title(behind, opened), shape });
    }
    let is_bold = shape.is_bold && text.trim_end_matches([':', ' ']).ends_with(['*', '_']);
    let is_set_apart = lead.hashes > 0 || is_bold || lead.number.is_some();
    if is_set_apart && let Some((id, title)) = inner_id::within(inner, opened) {
        return Some(Head { id: Some(id), title: Cow::Owned(title), shape });
    }
    let title = title(inner, opened);
    (is_set_apart && !title.is_empty()).then(|| Head {
        id: lead.number.or_else(|| number_before_colon(inner)).map(FindingId::numbered),
        title,
        shape,
    })
}

/// What begins a finding only where the fields of another one follow: whatever is numbered, named or set apart.
pub(super) fn loose_head(text: &str) -> Option<Head<'_>> {
    if let Some(head) = head(text).or_else(|| possible_head(text)) {
        return Some(head);
    }
    if said(text).is_some_and(|said| said.key.is_some()) {
        return None;
    }
    let (inner, opened, lead) = opened(text);
    let shape = Shape::of(lead, opened, false);
    let inner = without_tags(inner).trim_start_matches(AROUND);
    let (id, behind) = match numbered(inner) {
        Some((id, behind)) => (Some(id), behind),
        None => (None, inner),
    };
    let is_set_apart = shape.is_set_apart() || text.trim_start().starts_with('<');
    let title = title(without_tags(behind), opened).trim_matches(AROUND).to_owned();
    (id.is_some() || is_set_apart && !title.is_empty()).then_some(Head {
        id,
        title: Cow::Owned(title),
        shape,
    })
}

/// The id of a finding that a line begins with, whatever follows: `F1; High; src/a.rs`.
pub(super) fn named(text: &str) -> Option<FindingId> {
    // `| F2 | SQL |` stands in no table that is known.
    let text = text.trim_start();
    let (inner, ..) = opened(text.strip_prefix('|').unwrap_or(text));
    let (name, _) = up_to_number(without_tags(inner).trim_start_matches(AROUND))?;
    FindingId::read(name).filter(|_| !name.starts_with(|sign: char| sign.is_ascii_digit()))
}

/// Signs that can stand around a heading.
const AROUND: [char; 12] = ['=', '-', '~', '(', ')', '{', '}', '"', '\'', '#', '<', ' '];

/// `<summary><b>[F2]</b> SQL` without the tags that it begins with.
fn without_tags(text: &str) -> &str {
    let mut rest = text;
    while let Some((_, behind)) = tag(rest) {
        rest = behind;
    }
    rest
}

/// The tag that a text begins with, and what stands behind it.
fn tag(text: &str) -> Option<(&str, &str)> {
    let is_of_tag = |sign: char| sign.is_ascii_alphanumeric() || "/ ".contains(sign);
    let inner = text.trim_start().strip_prefix('<').and_then(|inner| inner.split_once('>'));
    inner.filter(|(tag, _)| tag.chars().all(is_of_tag))
}

/// The number that a text begins with, behind a few words at most, and what stands behind it.
fn numbered(text: &str) -> Option<(FindingId, &str)> {
    let (name, behind) = up_to_number(text)?;
    if let Some(id) = FindingId::read(name) {
        return Some((id, behind));
    }
    let words = name.trim_end_matches(|sign: char| sign.is_ascii_digit());
    let is_word = |word: &str| word.chars().all(|sign| sign.is_alphabetic() || "[]#'°º№".contains(sign));
    let is_named = words.split_whitespace().count() <= 3 && words.split_whitespace().all(is_word);
    let number = name[words.len()..].parse().ok()?;
    is_named.then(|| (FindingId::numbered(number), behind))
}

/// A text up to the end of the first number in it, and what stands behind that.
fn up_to_number(text: &str) -> Option<(&str, &str)> {
    let begins = text.find(|sign: char| sign.is_ascii_digit()).filter(|at| *at <= 40)?;
    let digits = &text[begins..];
    let ends = begins + digits.len() - digits.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
    let behind = text[ends..].trim_start_matches([']', '}', '`', '*', '_']);
    let is_end = |sign: char| " :：.)-–—|,;/\t<".contains(sign);
    let name = text[..ends].trim_start_matches(['[', '`', '*', '_']);
    (behind.is_empty() || behind.starts_with(is_end)).then_some((name, behind))
}

/// The number of `Vulnerability 3: …` and `Issue #3 - …`.
fn number_before_colon(text: &str) -> Option<u32> {
    let end = text.find([':', '：', '—', '–']).or_else(|| text.find(" - "))?;
    let word = without_total(text[..end].trim()).split(' ').next_back()?;
    word.trim_start_matches('#').parse().ok()
}

/// `Finding 1` of `Finding 1 of 2` and of `Finding 1/2`.
fn without_total(name: &str) -> &str {
    let before = name.trim_end_matches(|sign: char| sign.is_ascii_digit());
    let counted = ["/", " of "].iter().find_map(|sign| {
        // The space is there once at least.
        let counted = before.trim_end().strip_suffix(sign.trim_end())?;
        (sign.len() == 1 || before.ends_with(' ')).then_some(counted)
    });
    let is_numbered = |counted: &&str| counted.trim_end().ends_with(|sign: char| sign.is_ascii_digit());
    counted.filter(|_| before.len() < name.len()).filter(is_numbered).map_or(name, str::trim_end)
}

/// What stands in the brackets that a line begins with, and what stands behind them.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix(['[', '【', '［', '〔'])?;
    let end = rest.find([']', '】', '］', '〕'])?;
    let behind = &rest[end..];
    Some((&rest[..end], &behind[behind.chars().next().map_or(0, char::len_utf8)..]))
}

/// An id without brackets, and what stands behind it.
fn unbracketed(text: &str) -> Option<(FindingId, &str)> {
    let end = text.find([':', '：', '*', '—', '–', ')']).unwrap_or(text.len());
    let (name, behind) = text.split_at(end);
    let (name, behind) = match name.split_once(" - ") {
        Some((name, _)) => (name, &text[name.len()..]),
        None => (name, behind),
    };
    let id = FindingId::read(without_total(name.trim().trim_end_matches('.')))?;
    (id.as_str() == FindingId::numbered(id.number()?).as_str()).then_some((id, behind))
}

/// Whether what stands behind an id is a title, and not the rest of a link, of code, or of a sentence about several.
fn is_title(behind: &str, title: &str) -> bool {
    let goes_on = behind
        .starts_with(|character: char| "([,;=".contains(character) || character.is_ascii_alphanumeric());
    let is_code = ["= ", "== ", "+= ", "-= ", ";", ",", ")"].iter().any(|sign| title.starts_with(sign));
    let is_mention = ["and [", "& [", "to [", "or [", "through ["].iter().any(|word| title.starts_with(word));
    !goes_on && !is_code && !is_mention
}

fn title<'a>(behind: &'a str, opened: &str) -> Cow<'a, str> {
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
    if opened.is_empty() || rest.matches(opened).count().is_multiple_of(2) {
        return Cow::Borrowed(rest);
    }
    // `**[F001] Title**`, `**Title** (confirmed)`
    match rest.strip_suffix(opened) {
        Some(title) => Cow::Borrowed(title.trim_end()),
        None => Cow::Owned(rest.replacen(opened, "", 1)),
    }
}
