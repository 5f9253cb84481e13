//! Examines tagged elements that contain only text: whether their text begins without whitespace.

use endmark_text::Format;
use memchr::memmem;

use crate::stitch::joint::Joint;

/// Number of bytes on each side that are searched for elements with the same name, and maximum number of
/// examined elements.
const SEARCHED_BYTES: usize = 32_000;
const MAX_ELEMENTS: usize = 16;

/// Whether the text of an element begins at the cut, and all other elements with its name contain a single
/// line that begins without whitespace. Then any first letter is plausible.
pub(super) fn text_begins_at_cut(joint: &Joint<'_>) -> bool {
    let initial = joint.initial;
    let opened = initial.strip_suffix('>').filter(|_| joint.format == Format::Tags);
    let Some((before, tag)) = opened.and_then(|opened| opened.rsplit_once('<')) else { return false };
    let name = tag.split(char::is_whitespace).next().unwrap_or_default();
    if !name.starts_with(char::is_alphabetic) || tag.contains('>') || tag.ends_with('/') {
        return false;
    }
    let start = before.ceil_char_boundary(before.len().saturating_sub(SEARCHED_BYTES));
    let rest = &joint.continuation[..joint.continuation.floor_char_boundary(SEARCHED_BYTES)];
    let opening = format!("<{name}");
    let mut others = [&before[start..], rest]
        .into_iter()
        .flat_map(|side| element_texts(side, &opening))
        .take(MAX_ELEMENTS)
        .peekable();
    others.peek().is_some()
        && others.all(|text| !text.contains('\n') && !text.starts_with(char::is_whitespace))
}

/// Returns the texts of the elements that begin with the tag `opening` and contain only text.
fn element_texts<'t>(side: &'t str, opening: &'t str) -> impl Iterator<Item = &'t str> {
    memmem::find_iter(side.as_bytes(), opening).filter_map(move |at| {
        let (attributes, rest) = side[at + opening.len()..].split_once('>')?;
        let is_name = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
        let (text, behind) = rest.split_once('<')?;
        (is_name && !attributes.ends_with('/') && behind.starts_with('/')).then_some(text)
    })
}
