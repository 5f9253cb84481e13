//! Escapes agent text for Markdown, so that renderers show it literally. (AR-6)
//!
//! The code that an agent reads can make it write anything. Its text must not become a tag, a link or a heading here.

/// Escapes a text for a line of prose or a table cell, with a backslash before each markup character.
pub(super) fn prose(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 16);
    let mut before = None;
    for (at, sign) in text.char_indices() {
        let behind = &text[at + sign.len_utf8()..];
        if is_markup(before, sign, behind) || begins_address(&text[..at], sign, behind) {
            written.push('\\');
        }
        written.push(sign);
        before = Some(sign);
    }
    written
}

fn is_markup(before: Option<char>, sign: char, behind: &str) -> bool {
    let next = behind.chars().next();
    match sign {
        '\\' | '`' | '*' | '[' | ']' | '<' | '~' | '|' | '#' | '$' => true,
        // Within a word it is not emphasis: `find_user` stays readable.
        '_' => ![before, next].into_iter().all(|near| near.is_some_and(char::is_alphanumeric)),
        // `&lt;`, `&#60;`
        '&' => next.is_some_and(|next| next == '#' || next.is_ascii_alphanumeric()),
        _ => false,
    }
}

/// Whether this character makes an address of its surroundings, which some renderers turn into a link.
fn begins_address(before: &str, sign: char, behind: &str) -> bool {
    match sign {
        '@' => true,
        ':' => behind.starts_with("//"),
        '.' => before.to_ascii_lowercase().ends_with("www"),
        _ => false,
    }
}

/// Formats a text as inline code, which contains no markup. In a table, `|` would still end the cell.
pub(super) fn code(text: &str) -> String {
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let touches = text.starts_with('`') || text.ends_with('`');
    // Renderers strip one space from each end if both ends have one.
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
            assert_eq!(prose(text), written);
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
            assert_eq!(code(text), written);
        }
    }
}
