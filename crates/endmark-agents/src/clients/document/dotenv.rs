//! Files with lines `NAME=value`, as shells and `.env` parsers read them.

use super::{NewValue, UneditableFile};

pub(super) struct Dotenv {
    /// The lines with their line breaks. A quoted value with several lines is a single entry.
    entries: Vec<String>,
}

/// Quotation marks in which a value may have several lines.
const QUOTES: [char; 3] = ['"', '\'', '`'];

impl Dotenv {
    pub(super) fn parse(text: &str) -> Result<Self, UneditableFile> {
        let mut entries = Vec::new();
        let mut lines = (1..).zip(text.split_inclusive('\n'));
        while let Some((number, line)) = lines.next() {
            let mut entry = line.to_owned();
            if let Some(quote) = unclosed_quote(line) {
                // Parsers disagree about where such a value ends.
                let unclear = || {
                    UneditableFile::Unreadable(format!(
                        "line {number}: the end of the value that begins with {quote} is unclear"
                    ))
                };
                loop {
                    let (_, next) = lines.next().ok_or_else(unclear)?;
                    entry.push_str(next);
                    match split_at_quote(next, quote) {
                        None => {}
                        Some((_, behind)) if is_comment(behind) => break,
                        Some(_) => return Err(unclear()),
                    }
                }
            }
            entries.push(entry);
        }
        Ok(Self { entries })
    }

    pub(super) fn text(&self) -> String {
        self.entries.concat()
    }

    pub(super) fn value(&self, path: &[&str]) -> Option<String> {
        Some(Assignment::parse(self.entry(path)?)?.value.to_owned())
    }

    /// Sets a name. Keeps the text before and after its value.
    pub(super) fn set(&mut self, path: &[&str], value: &NewValue) {
        let Some(name) = path.last() else { return };
        let text = match value {
            NewValue::Text(text) => text.as_str(),
            NewValue::Table => "",
        };
        let known = self.entry(path).and_then(Assignment::parse);
        let exported = if known.as_ref().is_some_and(|known| known.is_exported) { "export " } else { "" };
        let comment = known.map(|known| known.comment).unwrap_or_default();
        // A comment needs a space before it, otherwise an unquoted value would include it.
        let gap = if comment.starts_with('#') { " " } else { "" };
        let entry = format!("{exported}{name}={text}{gap}{comment}\n");
        self.put(path, entry);
    }

    pub(super) fn copy_from(&mut self, other: &Self, path: &[&str]) {
        match other.entry(path) {
            Some(entry) => self.put(path, entry.to_owned()),
            None => {
                if let Some(position) = self.position(path) {
                    self.entries.remove(position);
                }
            }
        }
    }

    fn put(&mut self, path: &[&str], mut entry: String) {
        let position = self.position(path).unwrap_or(self.entries.len());
        let is_last = position + 1 >= self.entries.len();
        if !is_last && !entry.ends_with('\n') {
            entry.push('\n');
        }
        if let Some(found) = self.entries.get_mut(position) {
            *found = entry;
            return;
        }
        if let Some(last) = self.entries.last_mut().filter(|last| !last.ends_with('\n')) {
            last.push('\n');
        }
        self.entries.push(entry);
    }

    fn entry(&self, path: &[&str]) -> Option<&str> {
        self.entries.get(self.position(path)?).map(String::as_str)
    }

    /// Returns the index of the last assignment of a name. Shells use the last one.
    fn position(&self, path: &[&str]) -> Option<usize> {
        let name = path.last()?;
        self.entries
            .iter()
            .rposition(|entry| Assignment::parse(entry).is_some_and(|setting| setting.name == *name))
    }
}

/// One assignment of a name.
struct Assignment<'a> {
    is_exported: bool,
    name: &'a str,
    /// The value without its quotation marks.
    value: &'a str,
    /// The text after the value, including the blanks before it.
    comment: &'a str,
}

impl<'a> Assignment<'a> {
    fn parse(entry: &'a str) -> Option<Self> {
        let (is_exported, name, text) = split(entry)?;
        let (value, comment) = parse_quoted(text).unwrap_or_else(|| parse_unquoted(text));
        Some(Self { is_exported, name, value, comment })
    }
}

/// Returns whether the name is exported, the name, and the text after the `=`.
fn split(entry: &str) -> Option<(bool, &str, &str)> {
    let line = entry.trim_start();
    let exported = line.strip_prefix("export ");
    let (name, text) = exported.unwrap_or(line).split_once('=')?;
    let name = name.trim();
    let is_name = name.chars().all(|sign| sign.is_alphanumeric() || matches!(sign, '_' | '.' | '-'));
    (is_name && !name.is_empty()).then_some((exported.is_some(), name, text.trim_end()))
}

/// Returns a quoted value and the comment after it. Returns `None` if the value is not quoted.
fn parse_quoted(text: &str) -> Option<(&str, &str)> {
    let (quote, inside) = opening_quote(text)?;
    let (value, behind) =
        split_at_quote(inside, quote).or_else(|| Some((inside.strip_suffix(quote)?, "")))?;
    is_comment(behind).then_some((value, behind))
}

/// Returns an unquoted value and the comment after it. The comment begins with a blank.
fn parse_unquoted(text: &str) -> (&str, &str) {
    let mut signs = text.match_indices('#').map(|(at, _)| text.split_at(at).0);
    let before = signs.find(|before| before.ends_with(char::is_whitespace)).unwrap_or(text);
    let (value, comment) = text.split_at(before.trim_end().len());
    (value.trim_start(), comment)
}

/// Returns the quotation mark that the line opens but does not close.
fn unclosed_quote(line: &str) -> Option<char> {
    let (quote, inside) = opening_quote(split(line)?.2)?;
    // A Windows path may end with a backslash, so the last quotation mark can look escaped.
    let is_closed = split_at_quote(inside, quote).is_some() || inside.ends_with(quote);
    (!is_closed).then_some(quote)
}

/// Returns the quotation mark at the beginning of a value, and the text after it.
fn opening_quote(text: &str) -> Option<(char, &str)> {
    let text = text.trim_start();
    QUOTES.into_iter().find_map(|quote| Some((quote, text.strip_prefix(quote)?)))
}

/// Returns the texts before and after the quotation mark that closes a value.
fn split_at_quote(text: &str, quote: char) -> Option<(&str, &str)> {
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        if sign == quote {
            return Some((text.get(..at)?, signs.as_str()));
        }
        if sign == '\\' && quote != '\'' {
            signs.next();
        }
    }
    None
}

/// Whether the text after a value is empty or a comment.
fn is_comment(behind: &str) -> bool {
    let behind = behind.trim_start();
    behind.is_empty() || behind.starts_with('#')
}
