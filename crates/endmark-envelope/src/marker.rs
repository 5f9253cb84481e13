//! The marker at the end of a shortened value, and the markers of other programs. (EN-2, EN-3)

/// The end of a shortened value (EN-2).
pub const TRUNCATION_MARKER: &str = "…[truncated]";

/// Maximum number of bytes from the start of a marker to the end of the text.
const MAX_MARKER_BYTES: usize = 120;

/// Words that indicate an omission if they are in brackets.
const OMISSION_WORDS: [&str; 4] = ["truncated", "omitted", "shortened", "cut off"];

/// Returns whether a text ends in one of these markers or in a common one, such as `… (truncated)`, `[...]`,
/// `<output truncated>`, `... 12 more characters`.
pub(crate) fn ends_in_marker(text: &str, markers: &[String]) -> bool {
    let is_there = |marker: &String| !marker.is_empty() && text.ends_with(marker.as_str());
    if markers.iter().any(is_there) {
        return true;
    }
    let text = text.trim_end();
    let tail = &text[text.floor_char_boundary(text.len().saturating_sub(MAX_MARKER_BYTES))..];
    ends_in_brackets(tail) || ends_in_a_count(tail)
}

/// Returns the text before the ellipsis at its end. Returns `None` if the text has no ellipsis, or is nothing
/// else.
///
/// An ellipsis alone does not prove a cut: `Loading...` is whole.
pub(crate) fn before_ellipsis(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let before = text.strip_suffix("...").or_else(|| text.strip_suffix('…'))?.trim_end_matches(['.', '…']);
    Some(before).filter(|before| !before.is_empty())
}

/// Returns whether a text ends like `[truncated]`, `(… 12 more lines omitted)` or `[...]`.
fn ends_in_brackets(tail: &str) -> bool {
    let (open, close) = match tail.chars().next_back() {
        Some(')') => ('(', ')'),
        Some(']') => ('[', ']'),
        Some('>') => ('<', '>'),
        Some('}') => ('{', '}'),
        Some(_) | None => return false,
    };
    let Some(begin) = tail.rfind(open) else {
        return false;
    };
    let inside = tail[begin + 1..].trim_end_matches(close).trim().to_lowercase();
    inside == "..." || inside == "…" || OMISSION_WORDS.iter().any(|word| inside.contains(word))
}

/// Returns whether a text ends like `... 12 more characters` or `… 3 more items`.
fn ends_in_a_count(tail: &str) -> bool {
    let after = tail.rfind("...").map(|at| at + 3).max(tail.rfind('…').map(|at| at + '…'.len_utf8()));
    let Some(rest) = after.map(|at| &tail[at..]) else {
        return false;
    };
    let mut words = rest.split_whitespace();
    let has_count = words.next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    has_count && words.next() == Some("more") && words.count() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_distinguished_from_ordinary_endings() {
        for (text, is_marked) in [
            (TRUNCATION_MARKER, true),
            ("The harbour was…", false),
            ("The harbour was...  \n", false),
            ("The harbour [...]", true),
            ("The harbour was [truncated]", true),
            ("The harbour was (output truncated, 12 lines)", true),
            ("<truncated>", true),
            ("line\n... 900 more characters", true),
            ("[ 1, 2, … 3 more items", true),
            ("", false),
            ("...", false),
            ("…", false),
            ("The harbour was quiet.", false),
            ("see [the harbour]", false),
            ("f(x)", false),
            ("... 900 ships", false),
            ("Wait ... what?", false),
            ("truncated", false),
        ] {
            assert_eq!(ends_in_marker(text, &[]), is_marked, "{text}");
        }
        assert_eq!(before_ellipsis("The harbour was...  \n"), Some("The harbour was"));
        assert_eq!(["", "...", "…", "The end."].map(before_ellipsis), [None; 4]);
        let own = ["~~".to_owned(), String::new()];
        assert!(ends_in_marker("The harb~~", &own));
        assert!(!ends_in_marker("The harbour", &own));
    }
}
