//! Finds comments in lines of any common language.

use std::ops::Range;

/// A comment in one line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comment {
    /// The text of the comment, without its delimiters.
    pub(crate) content: Range<usize>,
    /// The line that contains the comment, without its line ending.
    pub(crate) line: Range<usize>,
    /// Whether the line contains only the comment.
    pub(crate) is_whole_line: bool,
    /// Whether its delimiter begins a comment even in prose, unlike `#` and `-`.
    pub(crate) is_certain: bool,
}

/// Delimiters that begin a comment at the start of a line, longer ones first.
const COMMENT_OPENERS: &[&str] = &[
    "<!--", "{/*", "/**", "/*", "///", "//!", "//", "{{!--", "{{!", "{{/*", "<%--", "<%#", "--[[", "--",
    "(*", "{-", "{#", "@*", "\"\"\"", "'''", ";;;", ";;", ";", "%%", "%", "##", "#", "REM ", "rem ", "dnl ",
    "*",
];

/// Delimiters that also occur at the start of lines of prose or Markdown.
const AMBIGUOUS_OPENERS: &[&str] = &["--", "##", "#", "%", "%%", ";", "*", "\"\"\"", "'''", "(*"];

/// Delimiters that end a comment.
const COMMENT_CLOSERS: &[&str] =
    &["-->", "*/}", "*/", "--}}", "}}", "--%>", "%>", "]]", "*)", "-}", "#}", "*@", "\"\"\"", "'''"];

/// Delimiters that begin a comment after code, if white space precedes them.
const TRAILING_COMMENT_OPENERS: &[&str] = &["//", "#", "/*", "<!--", "{/*", "--", ";", "%"];

/// Returns the comment in a line, if there is one.
pub(crate) fn find_comment(text: &str, line: Range<usize>) -> Option<Comment> {
    let whole = &text[line.clone()];
    let indented = whole.trim_start();
    // The `+` or `-` of a diff line is not part of the code.
    let code = match indented.strip_prefix(['+', '-']) {
        Some(rest) if !rest.starts_with(['-', '+']) => rest.trim_start(),
        _ => indented,
    };
    // Dots instead of code count as a comment without a delimiter.
    if ["...", "…", "(...", "[...", "<...", "(…", "[…"].iter().any(|dots| code.starts_with(dots)) {
        let content = content(text, line.start + (whole.len() - code.len())..line.end)?;
        return Some(Comment { content, line, is_whole_line: true, is_certain: false });
    }
    // A Rust attribute or a shebang line is not a comment.
    let is_attribute = ["#[", "#!"].iter().any(|begin| code.starts_with(begin));
    let at_start = COMMENT_OPENERS.iter().find(|opener| code.starts_with(**opener) && !is_attribute);
    if let Some(opener) = at_start {
        let start = line.start + (whole.len() - code.len()) + opener.len();
        let content = content(text, start..line.end)?;
        return Some(Comment {
            content,
            line,
            is_whole_line: true,
            is_certain: !AMBIGUOUS_OPENERS.contains(opener),
        });
    }
    let (at, sign) = trailing_opener(whole)?;
    let content = content(text, line.start + at + sign.len()..line.end)?;
    Some(Comment { content, line, is_whole_line: false, is_certain: !AMBIGUOUS_OPENERS.contains(&sign) })
}

/// Returns the first comment delimiter after code that has white space before it and a plausible comment
/// after it.
fn trailing_opener(line: &str) -> Option<(usize, &'static str)> {
    let bytes = line.as_bytes();
    let behind_space = (1..bytes.len())
        .filter(|&at| matches!(bytes[at - 1], b' ' | b'\t') && b"/#<{-;%".contains(&bytes[at]));
    behind_space.filter_map(|at| line.get(at..).map(|rest| (at, rest))).find_map(|(at, rest)| {
        let sign = TRAILING_COMMENT_OPENERS
            .iter()
            .find(|sign| rest.strip_prefix(**sign).is_some_and(follows_space))?;
        Some((at, *sign))
    })
}

fn follows_space(rest: &str) -> bool {
    rest.starts_with([' ', '\t', '.', '…', '('])
}

/// Returns the content of a comment without delimiters and white space, or `None` if nothing is left.
fn content(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let mut content = text[range.clone()].trim_end();
    for closer in COMMENT_CLOSERS {
        if let Some(before) = content.strip_suffix(closer) {
            content = before.trim_end();
            break;
        }
    }
    let inner_text = content
        .trim_start_matches(|character: char| character.is_whitespace() || "/#*-;%!=".contains(character));
    let said_start = range.start + (content.len() - inner_text.len());
    let inner_text = inner_text
        .trim_end_matches(|character: char| character.is_whitespace() || "/#*-;%=".contains(character));
    (!inner_text.is_empty()).then(|| said_start..said_start + inner_text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment_text(line: &str) -> Option<(&str, bool)> {
        find_comment(line, 0..line.len()).map(|comment| (&line[comment.content], comment.is_whole_line))
    }

    #[test]
    fn comments_of_many_languages_are_parsed() {
        for line in [
            "// rest",
            "  # rest",
            "/* rest */",
            " * rest",
            "<!-- rest -->",
            "{/* rest */}",
            "-- rest",
            "; rest",
            "% rest",
            "(* rest *)",
            "{- rest -}",
            "{# rest #}",
            "\"\"\" rest \"\"\"",
            "+ // rest",
            "- # rest",
            "### rest ###",
            "REM rest",
            "{{!-- rest --}}",
            "--[[ rest ]]",
            "//rest",
        ] {
            assert_eq!(comment_text(line), Some(("rest", true)), "{line}");
        }
        assert_eq!(comment_text("  ... rest ..."), Some(("... rest ...", true)));
        assert_eq!(comment_text("x = 1  # rest"), Some(("rest", false)));
        assert_eq!(comment_text("call(); // ... rest"), Some(("... rest", false)));
        for line in ["let url = \"http://rest\";", "rest", "", "//", "# ###", "a-- b", "#[rest]", "#!rest"] {
            assert_eq!(comment_text(line), None, "{line}");
        }
    }
}
