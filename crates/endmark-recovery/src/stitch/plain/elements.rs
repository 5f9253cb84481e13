//! Examines elements of tags that contain only text: whether that text begins without white space, as in other
//! elements with the same name.

use endmark_text::Format;
use memchr::memmem;

use crate::stitch::joint::Joint;

/// Number of bytes on each side that are searched for elements of the same name, and maximum number of examined
/// elements.
const REACH: usize = 32_000;
const MOST: usize = 16;

/// Whether the text of an element begins at the cut, and other elements with its name have only one line of text that
/// begins without white space. In that case the first letter is a matter of chance.
pub(super) fn begin_at_cut(joint: &Joint<'_>) -> bool {
    let initial = joint.initial;
    let opened = initial.strip_suffix('>').filter(|_| joint.format == Format::Tags);
    let Some((before, tag)) = opened.and_then(|opened| opened.rsplit_once('<')) else { return false };
    let name = tag.split(char::is_whitespace).next().unwrap_or_default();
    if !name.starts_with(char::is_alphabetic) || tag.contains('>') || tag.ends_with('/') {
        return false;
    }
    let start = before.ceil_char_boundary(before.len().saturating_sub(REACH));
    let rest = &joint.continuation[..joint.continuation.floor_char_boundary(REACH)];
    let opening = format!("<{name}");
    let mut others =
        [&before[start..], rest].into_iter().flat_map(|side| texts(side, &opening)).take(MOST).peekable();
    others.peek().is_some()
        && others.all(|text| !text.contains('\n') && !text.starts_with(char::is_whitespace))
}

/// Returns the texts of the elements that begin with this tag and contain only text.
fn texts<'t>(side: &'t str, opening: &'t str) -> impl Iterator<Item = &'t str> {
    memmem::find_iter(side.as_bytes(), opening).filter_map(move |at| {
        let (attributes, rest) = side[at + opening.len()..].split_once('>')?;
        let is_name = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
        let (text, behind) = rest.split_once('<')?;
        (is_name && !attributes.ends_with('/') && behind.starts_with('/')).then_some(text)
    })
}
