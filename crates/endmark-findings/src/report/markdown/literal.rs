//! Escapes agent text for Markdown, so that renderers show it literally. (AR-6)
//!
//! An agent may write anything that the code it reads suggests. Its text must not become a tag, a link or a heading.

/// Escapes a text for a line of prose or a table cell, with a backslash before each markup character.
pub(super) fn escape_prose(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 16);
    let mut before = None;
    for (at, ch) in text.char_indices() {
        let tail = &text[at + ch.len_utf8()..];
        if is_markup(before, ch, tail) || is_part_of_address(&text[..at], ch, tail) {
            written.push('\\');
        }
        written.push(ch);
        before = Some(ch);
    }
    written
}

fn is_markup(before: Option<char>, ch: char, tail: &str) -> bool {
    let next = tail.chars().next();
    match ch {
        '\\' | '`' | '*' | '[' | ']' | '<' | '~' | '|' | '#' | '$' => true,
        // Inside a word, `_` is not emphasis, so `find_user` stays readable.
        '_' => ![before, next].into_iter().all(|near| near.is_some_and(char::is_alphanumeric)),
        // `&lt;`, `&#60;`
        '&' => next.is_some_and(|next| next == '#' || next.is_ascii_alphanumeric()),
        _ => false,
    }
}

/// Whether this character may be part of a URL or e-mail address, which some renderers turn into a link.
fn is_part_of_address(before: &str, ch: char, tail: &str) -> bool {
    match ch {
        '@' => true,
        ':' => tail.starts_with("//"),
        '.' => before.to_ascii_lowercase().ends_with("www"),
        _ => false,
    }
}

/// Formats a text as inline code, in which markup has no meaning. Not for tables, where `|` would still end the cell.
pub(super) fn code_span(text: &str) -> String {
    let longest = text.split(|ch| ch != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let touches = text.starts_with('`') || text.ends_with('`');
    // Renderers strip a space from each end if both ends have one.
    let is_stripped = text.starts_with(' ') && text.ends_with(' ') && !text.trim_matches(' ').is_empty();
    let space = if touches || is_stripped { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_characters_are_escaped() {
        for (text, written) in [
            ("SQL built from `name`", r"SQL built from \`name\`"),
            ("<img src=x onerror=alert(1)>", r"\<img src=x onerror=alert(1)>"),
            ("[link](javascript:alert(1)) ![x](y)", r"\[link\](javascript:alert(1)) !\[x\](y)"),
            ("find_user, __init__, a*b ~x~", r"find_user, \_\_init\_\_, a\*b \~x\~"),
            ("a|b \\| c", r"a\|b \\\| c"),
            ("&lt; && R&D &#60;", r"\&lt; && R\&D \&\#60;"),
            ("C # $x$", r"C \# \$x\$"),
            ("http://a.b www.c.d e@f.g", r"http\://a.b www\.c.d e\@f.g"),
            ("src/a.rs:3, größer → 宽", "src/a.rs:3, größer → 宽"),
        ] {
            assert_eq!(escape_prose(text), written);
        }
    }

    #[test]
    fn a_code_span_ends_only_at_its_own_delimiter() {
        for (text, written) in [
            ("<b>", "`<b>`"),
            ("`name` of q", "`` `name` of q ``"),
            ("a `b` c", "``a `b` c``"),
            ("a``b", "```a``b```"),
            ("`", "`` ` ``"),
            (" a ", "`  a  `"),
            (" ", "` `"),
        ] {
            assert_eq!(code_span(text), written);
        }
    }
}
