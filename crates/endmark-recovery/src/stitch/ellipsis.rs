//! Finds an ellipsis at the beginning of a continuation: "...and so on".

/// Returns the possible positions after an ellipsis at the beginning of a text. Of four dots, the last one
/// may belong to the text.
pub(super) fn possible_ends(text: &str) -> impl Iterator<Item = usize> {
    let behind = end_position(text);
    let signs = behind.map_or("", |end| text[..end].trim_start());
    let three = behind.filter(|_| signs == "....").map(|end| end - 1);
    behind.into_iter().chain(three)
}

/// Returns the position after an ellipsis at the beginning of a text, or `None` without one.
pub(super) fn end_position(text: &str) -> Option<usize> {
    let rest = text.trim_start();
    let indent = text.len() - rest.len();
    if let Some(bracketed) =
        ["[...]", "(...)", "[\u{2026}]", "(\u{2026})"].iter().find(|sign| rest.starts_with(**sign))
    {
        return Some(indent + bracketed.len());
    }
    if rest.starts_with('\u{2026}') {
        return Some(indent + '\u{2026}'.len_utf8());
    }
    let dots = rest.len() - rest.trim_start_matches('.').len();
    (3..=6).contains(&dots).then_some(indent + dots)
}
