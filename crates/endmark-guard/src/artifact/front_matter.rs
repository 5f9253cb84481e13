//! Front matter: the block between two delimiter lines at the start of a Markdown file.

use super::byte_order_mark_length;

/// The language of front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// Between lines of `---`.
    Yaml,
    /// Between lines of `+++`.
    Toml,
}

/// The front matter of a text, and the offset of the text after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrontMatter<'t> {
    pub(crate) language: Language,
    pub(crate) source: &'t str,
    /// The byte offset of the text after the front matter.
    pub(crate) body: usize,
}

/// Returns the front matter at the start of a text. Dashes before a blank line are a thematic break, not
/// front matter.
pub(crate) fn front_matter(text: &str) -> Option<FrontMatter<'_>> {
    let begin = byte_order_mark_length(text);
    let (language, sign) = match text.get(begin..begin + 3)? {
        "---" => (Language::Yaml, "---"),
        "+++" => (Language::Toml, "+++"),
        _ => return None,
    };
    let mut lines = text[begin..].split_inclusive('\n');
    let first = lines.next().filter(|first| first.trim_end() == sign && first.ends_with('\n'))?;
    let start = begin + first.len();
    let mut at = start;
    for (index, line) in lines.enumerate() {
        let content = line.trim_end();
        if index == 0 && content.is_empty() {
            return None;
        }
        if content == sign || (language == Language::Yaml && content == "...") {
            return Some(FrontMatter { language, source: &text[start..at], body: at + line.len() });
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_delimited_by_its_markers() {
        let found = front_matter("\u{feff}---\r\na: 1\r\n---\r\nText").unwrap();
        assert_eq!((found.language, found.source, found.body), (Language::Yaml, "a: 1\r\n", 19));
        assert_eq!(front_matter("+++\na = 1\n+++\n").unwrap().source, "a = 1\n");
        for none in ["---\n\nA rule above\n\n---\n", "--- a\n---\n", "---\na: 1\n", "---", "text\n---\n", "ä"]
        {
            assert_eq!(front_matter(none), None, "{none}");
        }
    }
}
