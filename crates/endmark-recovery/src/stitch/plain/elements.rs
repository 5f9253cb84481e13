//! Elements of tags that have nothing but text: whether it stands in one line, as in others of the same name.

use endmark_text::Format;
use memchr::memmem;

use crate::stitch::candidate::Candidate;
use crate::stitch::joint::Joint;

/// So much of each side is searched for elements of the same name, in bytes, and so many are looked at.
const REACH: usize = 32_000;
const MOST: usize = 16;
/// What one such element speaks against a line break where it has none, in bits, and how much each further one.
const FIRST: f64 = 6.0;
const FURTHER: f64 = 2.0;
const MOST_BITS: f64 = 10.0;

/// What speaks against a line break in the text of the element that the cut stands in, in bits, and whether it begins there
/// as that of the others does, without white space.
#[derive(Debug, Default)]
pub(super) struct Elements {
    broken: f64,
    begins: bool,
}

impl Elements {
    pub(super) fn of(joint: &Joint<'_>) -> Self {
        elements(joint).unwrap_or_default()
    }

    /// Whether the text of an element begins with a story as the texts of others do: with what letter is a matter of chance.
    pub(super) fn begins(&self, part: &str) -> bool {
        self.begins && !part.starts_with(['<', ' ', '\t', '\n', '\r'])
    }

    /// What speaks against a story, in bits.
    pub(super) fn bits(&self, joint: &Joint<'_>, story: &Candidate) -> f64 {
        let part = story.added(joint);
        let text = part.split('<').next().unwrap_or_default();
        let is_broken = text.len() < part.len() && (text.contains('\n') || story.glue.contains('\n'));
        if is_broken { self.broken } else { 0.0 }
    }
}

fn elements(joint: &Joint<'_>) -> Option<Elements> {
    let initial = joint.initial;
    let opened = initial.rfind('<').filter(|_| joint.format == Format::Tags)?;
    let tag = &initial[opened + 1..];
    let (tag, text) = tag.split_once('>')?;
    let name = tag.split(char::is_whitespace).next().unwrap_or_default();
    if !name.starts_with(char::is_alphabetic) || tag.ends_with('/') || text.contains('\n') {
        return None;
    }
    let start = initial.ceil_char_boundary(opened.saturating_sub(REACH));
    let rest = &joint.continuation[..joint.continuation.floor_char_boundary(REACH)];
    let opening = format!("<{name}");
    let texts = [&initial[start..opened], rest].into_iter().flat_map(|side| texts(side, &opening));
    let mut count = 0.0;
    let mut begins = text.is_empty();
    for other in texts.take(MOST) {
        if other.contains('\n') {
            return None;
        }
        begins &= !other.starts_with(char::is_whitespace);
        count += 1.0;
    }
    let broken = (FIRST + FURTHER * (count - 1.0)).min(MOST_BITS);
    (count > 0.0).then_some(Elements { broken, begins })
}

/// The texts of the elements that are opened so and have nothing else.
fn texts<'t>(side: &'t str, opening: &'t str) -> impl Iterator<Item = &'t str> {
    memmem::find_iter(side.as_bytes(), opening).filter_map(move |at| {
        let (attributes, rest) = side[at + opening.len()..].split_once('>')?;
        let is_name = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
        let (text, behind) = rest.split_once('<')?;
        (is_name && !attributes.ends_with('/') && behind.starts_with('/')).then_some(text)
    })
}
