//! Tracks whether tags are well nested, and the effect of a seam on them.

use endmark_text::Format;
use memchr::memchr;

use crate::stitch::candidate::Candidate;
use crate::stitch::joint::Joint;

/// Bytes after a seam that are read.
const READ_BYTES: usize = 4_096;
/// Penalty for each nesting fault of a seam, in bits, and the most faults that count.
const FAULT_BITS: f64 = 8.0;
const MAX_FAULTS: u32 = 4;

/// The open elements, and faults of the tags so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Nesting {
    /// Number of open elements outside the named ones.
    outer_depth: usize,
    open: Vec<Box<str>>,
    /// The unfinished tag, from its bracket on.
    tag: String,
    /// Whether an element was closed and no element is open.
    follows_root: bool,
    faults: u32,
}

impl Nesting {
    /// Returns the tags of a first part, if they are well nested and enclose all its text.
    pub(super) fn from_joint(joint: &Joint<'_>) -> Option<Self> {
        let begins = joint.format == Format::Tags && joint.initial.trim_start().starts_with('<');
        let mut nesting = Self::default();
        begins.then(|| nesting.read(joint.initial))?;
        (nesting.faults == 0).then_some(nesting)
    }

    /// Returns the penalty of a story, in bits.
    pub(super) fn bits(&self, joint: &Joint<'_>, story: &Candidate) -> f64 {
        let part = story.added_text(joint);
        let near = &part[..part.floor_char_boundary(READ_BYTES)];
        let mut nesting = self.innermost();
        nesting.read(story.glue);
        nesting.read(near);
        let is_open = nesting.is_open() || !nesting.tag.is_empty();
        let faults = nesting.faults
            + u32::from(near.len() == part.len() && is_open)
            + u32::from(breaks_entity(joint.initial, story.glue, part))
            + 3 * u32::from(self.breaks_tag(story.glue, part));
        FAULT_BITS * f64::from(faults.min(MAX_FAULTS))
    }

    /// Returns a copy with only as many element names as the remaining text can close, because each story has a copy.
    fn innermost(&self) -> Self {
        let outer = self.open.len().saturating_sub(READ_BYTES);
        let open = self.open[outer..].to_vec();
        Self { outer_depth: self.outer_depth + outer, open, tag: self.tag.clone(), ..*self }
    }

    fn is_open(&self) -> bool {
        self.outer_depth > 0 || !self.open.is_empty()
    }

    /// Whether white space, dots or a sentence occur where the name of a tag begins, or a tag begins within an open
    /// value.
    fn breaks_tag(&self, glue: &str, part: &str) -> bool {
        let is_nameless = matches!(self.tag.as_str(), "<" | "</");
        let begins_tag = |sign: char| sign.is_alphabetic() || sign == '/';
        let is_tag = part.strip_prefix('<').is_some_and(|name| name.starts_with(begins_tag));
        let begins_name = |sign: char| sign.is_alphabetic() || matches!(sign, '_' | '/' | '!' | '?' | '>');
        let is_other =
            !part.is_empty() && !part.starts_with(begins_name) || tag_name(part).contains(FULL_WIDTH);
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
            text.starts_with(|sign: char| sign.is_alphabetic() || sign == '_')
                && !tag_name(text).contains(FULL_WIDTH)
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
            // A bracket in a quoted value does not end the tag.
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

/// Punctuation that never occurs in names.
const FULL_WIDTH: [char; 6] = ['：', '，', '、', '。', '！', '？'];

/// Returns the name at the beginning of a tag's body.
fn tag_name(body: &str) -> &str {
    body.split(|sign: char| matches!(sign, '/' | '>') || sign.is_whitespace()).next().unwrap_or_default()
}

/// Returns the name of the outermost element of a text, if that begins in it. Declarations and comments may precede
/// it.
pub(super) fn root(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    loop {
        let end = match rest.strip_prefix('<')?.as_bytes() {
            [b'?', ..] => "?>",
            [b'!', b'-', b'-', ..] => "-->",
            [b'!', ..] if has_subset(rest) => "]>",
            [b'!', ..] => ">",
            _ => break,
        };
        rest = rest[rest.find(end)? + end.len()..].trim_start();
    }
    let name = &rest[1..];
    let length = name.find(|sign: char| !(sign.is_alphanumeric() || matches!(sign, '_' | '-' | ':')))?;
    Some(&name[..length]).filter(|name| !name.is_empty())
}

/// Whether the document type that begins here has declarations of its own.
fn has_subset(text: &str) -> bool {
    text.split('>').next().is_some_and(|declared| declared.contains('['))
}

/// The longest name of an entity, in bytes.
const LONGEST_ENTITY: usize = 12;

/// Whether the cut goes through an entity, such as `&amp;`, and the seam leaves half of it.
fn breaks_entity(initial: &str, glue: &str, part: &str) -> bool {
    let of_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '#';
    let name_start = initial.len() - initial.trim_end_matches(of_name).len();
    let (text, name) = initial.split_at(initial.len() - name_start);
    // A text with other bare ampersands has no entities.
    let is_entity = |behind: &str| {
        let length = behind.len() - behind.trim_start_matches(of_name).len();
        (1..=LONGEST_ENTITY).contains(&length) && behind[length..].starts_with(';')
    };
    let Some(text) = text.strip_suffix('&').filter(|_| name.len() <= LONGEST_ENTITY) else { return false };
    let near = &text[text.ceil_char_boundary(text.len().saturating_sub(READ_BYTES))..];
    let escapes = near.split('&').skip(1).all(is_entity);
    let behind = &part[..part.floor_char_boundary(LONGEST_ENTITY + 1)];
    escapes && !is_entity(&[name, glue, behind].concat())
}

#[cfg(test)]
mod tests {
    use super::{Nesting, READ_BYTES, root};

    fn faults(text: &str) -> (u32, usize) {
        let mut nesting = Nesting::default();
        nesting.read(text);
        let mut by_pieces = Nesting::default();
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
        let mut nesting = Nesting::default();
        nesting.read(&"<a>".repeat(100_000));
        let mut near = nesting.innermost();
        assert_eq!(near.open.len(), READ_BYTES);
        near.read(&"</a>".repeat(READ_BYTES));
        assert_eq!((near.faults, near.open.len(), near.is_open()), (0, 0, true));
        near.read("text");
        assert_eq!(near.faults, 0, "it is in the outer elements");
    }

    #[test]
    fn the_root_follows_declarations_and_comments() {
        assert_eq!(root("<feed>"), Some("feed"));
        let declared =
            "<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY b \"c\">]>\n<!-- > -->\n<x:a-b d=\"e\"";
        assert_eq!(root(declared), Some("x:a-b"));
        assert_eq!(root("<!DOCTYPE html>\n<html lang="), Some("html"));
        for none in ["", "text", "<", "<fee", "<?xml version", "<!-- a", "< a>", "</a>"] {
            assert_eq!(root(none), None, "{none}");
        }
    }

    #[test]
    fn unmatched_end_tags_and_outer_text_are_faults() {
        assert_eq!(faults("<a></b></a>"), (1, 0));
        assert_eq!(faults("<a>b</a>\n\nThat is all."), (1, 0));
        assert_eq!(faults("<a>< /a>").0, 1);
    }
}
