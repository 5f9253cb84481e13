//! Tracks whether tags are correctly nested, and how a seam affects this.

use endmark_text::Format;
use memchr::memchr;

use crate::stitch::candidate::Candidate;
use crate::stitch::joint::Joint;

/// Number of bytes after a seam that are examined.
const READ_BYTES: usize = 4_096;
/// Penalty for each nesting fault at a seam, in bits, and maximum number of counted faults.
const FAULT_BITS: f64 = 8.0;
const MAX_FAULTS: u32 = 4;

/// The open elements and the number of faults so far.
#[derive(Debug, Clone, Default)]
pub(super) struct TagNesting {
    /// Number of open elements that are not in `open`, because they enclose all others.
    outer_depth: usize,
    open: Vec<Box<str>>,
    /// The unfinished tag, from its `<` on.
    tag: String,
    /// Whether the root element is closed.
    follows_root: bool,
    faults: u32,
}

impl TagNesting {
    /// Returns the state after the first part, or `None` if its tags are not correctly nested or do not
    /// enclose all its text.
    pub(super) fn from_joint(joint: &Joint<'_>) -> Option<Self> {
        let begins = joint.format == Format::Tags && joint.initial.trim_start().starts_with('<');
        let mut nesting = Self::default();
        begins.then(|| nesting.read(joint.initial))?;
        (nesting.faults == 0).then_some(nesting)
    }

    /// Returns the penalty for the seam of a candidate, in bits.
    pub(super) fn bits(&self, joint: &Joint<'_>, candidate: &Candidate) -> f64 {
        let part = candidate.added_text(joint);
        let near = &part[..part.floor_char_boundary(READ_BYTES)];
        let mut nesting = self.with_closable_elements();
        nesting.read(candidate.glue);
        nesting.read(near);
        let is_open = nesting.is_open() || !nesting.tag.is_empty();
        let faults = nesting.faults
            + u32::from(near.len() == part.len() && is_open)
            + u32::from(breaks_entity(joint.initial, candidate.glue, part))
            + 3 * u32::from(self.breaks_tag(candidate.glue, part));
        FAULT_BITS * f64::from(faults.min(MAX_FAULTS))
    }

    /// Returns a copy with only as many element names as the rest can close, because each candidate needs a
    /// copy.
    fn with_closable_elements(&self) -> Self {
        let outer = self.open.len().saturating_sub(READ_BYTES);
        let open = self.open[outer..].to_vec();
        Self { outer_depth: self.outer_depth + outer, open, tag: self.tag.clone(), ..*self }
    }

    fn is_open(&self) -> bool {
        self.outer_depth > 0 || !self.open.is_empty()
    }

    /// Whether whitespace, an ellipsis or a sentence is where the name of a tag must begin, or a tag begins
    /// within an open attribute value.
    fn breaks_tag(&self, glue: &str, part: &str) -> bool {
        let is_nameless = matches!(self.tag.as_str(), "<" | "</");
        let begins_tag = |character: char| character.is_alphabetic() || character == '/';
        let is_tag = part.strip_prefix('<').is_some_and(|name| name.starts_with(begins_tag));
        let begins_name =
            |character: char| character.is_alphabetic() || matches!(character, '_' | '/' | '!' | '?' | '>');
        let is_other = !part.is_empty() && !part.starts_with(begins_name)
            || tag_name(part).contains(FULL_WIDTH_PUNCTUATION);
        is_nameless && (!glue.is_empty() || is_other)
            || is_tag && !self.tag.matches('"').count().is_multiple_of(2)
    }

    fn read(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.tag.is_empty() {
                let length = memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
                if !self.is_open() && self.follows_root && !rest[..length].trim().is_empty() {
                    self.faults += 1;
                    self.follows_root = false;
                }
                rest = &rest[length..];
                if let Some(behind) = rest.strip_prefix('<') {
                    self.tag.push('<');
                    rest = behind;
                }
                continue;
            }
            let length = memchr(b'>', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
            self.tag.push_str(&rest[..length]);
            rest = &rest[length..];
            self.end_tag();
        }
    }

    /// Processes the tag that was read, if it is complete.
    fn end_tag(&mut self) {
        let body = &self.tag[1..];
        // A tag cannot begin within another tag.
        let unquoted = |text: &str| text.split('"').step_by(2).any(|part| part.contains('<'));
        self.faults += u32::from(!body.starts_with(['!', '?']) && unquoted(body));
        let is_named = |text: &str| {
            text.starts_with(|character: char| character.is_alphabetic() || character == '_')
                && !tag_name(text).contains(FULL_WIDTH_PUNCTUATION)
        };
        let ends = match body.as_bytes() {
            [b'!', b'-', b'-', ..] => body.len() > 5 && body.ends_with("-->"),
            [b'!', b'[', ..] => body.ends_with("]]>"),
            [b'!' | b'?', ..] => body.ends_with('>'),
            [] | [b'/'] => false,
            _ if !is_named(body.trim_start_matches('/')) => {
                self.faults += 1;
                true
            }
            // A `>` within a quoted value does not end the tag.
            _ => body.ends_with('>') && body.matches('"').count().is_multiple_of(2),
        };
        if !ends {
            return;
        }
        let tag = std::mem::take(&mut self.tag);
        let body = tag[1..].trim_end_matches('>');
        if let Some(closing) = body.strip_prefix('/') {
            if self.open.last().map(AsRef::as_ref) == Some(tag_name(closing)) {
                self.open.pop();
            } else {
                self.faults += 1;
            }
        } else if is_named(body) && !body.ends_with('/') {
            self.open.push(tag_name(body).into());
        }
        self.follows_root = !self.is_open();
    }
}

/// Full-width punctuation, which does not occur in names.
const FULL_WIDTH_PUNCTUATION: [char; 6] = ['：', '，', '、', '。', '！', '？'];

/// Returns the element name at the beginning of a tag.
fn tag_name(body: &str) -> &str {
    body.split(|character: char| matches!(character, '/' | '>') || character.is_whitespace())
        .next()
        .unwrap_or_default()
}

/// Returns the name of the root element, if the text begins with it. Declarations and comments may precede
/// it.
pub(super) fn root_name(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    loop {
        let end = match rest.strip_prefix('<')?.as_bytes() {
            [b'?', ..] => "?>",
            [b'!', b'-', b'-', ..] => "-->",
            [b'!', ..] if has_declarations(rest) => "]>",
            [b'!', ..] => ">",
            _ => break,
        };
        rest = rest[rest.find(end)? + end.len()..].trim_start();
    }
    let name = &rest[1..];
    let length =
        name.find(|character: char| !(character.is_alphanumeric() || matches!(character, '_' | '-' | ':')))?;
    Some(&name[..length]).filter(|name| !name.is_empty())
}

/// Whether the document type that begins here contains declarations.
fn has_declarations(text: &str) -> bool {
    text.split('>').next().is_some_and(|declared| declared.contains('['))
}

/// Maximum length of the name of an entity, in bytes.
const MAX_ENTITY_NAME_BYTES: usize = 12;

/// Whether the cut is in an entity, such as `&amp;`, and the seam does not complete it.
fn breaks_entity(initial: &str, glue: &str, part: &str) -> bool {
    let of_name = |character: char| character.is_ascii_alphanumeric() || character == '#';
    let name_start = initial.len() - initial.trim_end_matches(of_name).len();
    let (text, name) = initial.split_at(initial.len() - name_start);
    // A text with other bare ampersands does not use entities.
    let is_entity = |behind: &str| {
        let length = behind.len() - behind.trim_start_matches(of_name).len();
        (1..=MAX_ENTITY_NAME_BYTES).contains(&length) && behind[length..].starts_with(';')
    };
    let Some(text) = text.strip_suffix('&').filter(|_| name.len() <= MAX_ENTITY_NAME_BYTES) else {
        return false;
    };
    let near = &text[text.ceil_char_boundary(text.len().saturating_sub(READ_BYTES))..];
    let escapes = near.split('&').skip(1).all(is_entity);
    let behind = &part[..part.floor_char_boundary(MAX_ENTITY_NAME_BYTES + 1)];
    escapes && !is_entity(&[name, glue, behind].concat())
}

#[cfg(test)]
mod tests {
    use super::{READ_BYTES, TagNesting, root_name};

    fn faults(text: &str) -> (u32, usize) {
        let mut nesting = TagNesting::default();
        nesting.read(text);
        let mut by_pieces = TagNesting::default();
        text.char_indices().for_each(|(at, sign)| by_pieces.read(&text[at..at + sign.len_utf8()]));
        assert_eq!(by_pieces.open, nesting.open, "{text}");
        (nesting.faults, nesting.open.len())
    }

    #[test]
    fn well_nested_text_has_no_faults() {
        assert_eq!(faults("<a>\n <b at=\"x > y\"/>\n <!-- <c> --><c>d &lt; e</c></a>\n"), (0, 0));
        assert_eq!(faults("<a><b>c"), (0, 2));
        assert_eq!(faults("<a>b</a>\n<c>d</c>"), (0, 0));
    }

    #[test]
    fn a_candidate_copies_only_elements_that_it_can_close() {
        let mut nesting = TagNesting::default();
        nesting.read(&"<a>".repeat(100_000));
        let mut near = nesting.with_closable_elements();
        assert_eq!(near.open.len(), READ_BYTES);
        near.read(&"</a>".repeat(READ_BYTES));
        assert_eq!((near.faults, near.open.len(), near.is_open()), (0, 0, true));
        near.read("text");
        assert_eq!(near.faults, 0, "it is in the outer elements");
    }

    #[test]
    fn the_root_follows_declarations_and_comments() {
        assert_eq!(root_name("<feed>"), Some("feed"));
        let declared =
            "<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY b \"c\">]>\n<!-- > -->\n<x:a-b d=\"e\"";
        assert_eq!(root_name(declared), Some("x:a-b"));
        assert_eq!(root_name("<!DOCTYPE html>\n<html lang="), Some("html"));
        for none in ["", "text", "<", "<fee", "<?xml version", "<!-- a", "< a>", "</a>"] {
            assert_eq!(root_name(none), None, "{none}");
        }
    }

    #[test]
    fn unmatched_end_tags_and_outer_text_are_faults() {
        assert_eq!(faults("<a></b></a>"), (1, 0));
        assert_eq!(faults("<a>b</a>\n\nThat is all."), (1, 0));
        assert_eq!(faults("<a>< /a>").0, 1);
    }
}
