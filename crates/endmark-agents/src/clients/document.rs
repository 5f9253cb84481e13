//! Edits a configuration file in place. Comments, order, spelling and unknown content stay.

mod dotenv;
mod jsonc;
mod lists;
mod toml;

#[cfg(test)]
mod tests;

use dotenv::Dotenv;
use jsonc::Jsonc;
pub use lists::Removal;
use toml::Toml;

/// The syntax of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// JSON with comments and trailing commas, which are preserved.
    Jsonc,
    /// TOML.
    Toml,
    /// Lines `NAME=value`.
    Dotenv,
}

impl Syntax {
    /// Returns the syntax's name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonc => "JSON",
            Self::Toml => "TOML",
            Self::Dotenv => "lines of NAME=value",
        }
    }
}

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A table, which stays if it exists.
    Table,
}

/// Why a file cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitFile {
    /// The file is not valid in its syntax.
    #[error("{0}")]
    Unreadable(String),
    /// A table is needed, but the file has another value.
    #[error("`{0}` is not a table in it")]
    NoTable(String),
    /// A value is needed, but the file has a table. Its content would be lost.
    #[error("`{0}` is a table in it")]
    IsTable(String),
    /// A list is needed, but the file has another value.
    #[error("`{0}` is not a list in it")]
    NoList(String),
    /// Writing the file back would change more than requested.
    #[error("it cannot be written back without other changes")]
    Unfaithful,
}

/// A parsed file, ready to be changed.
pub struct Document {
    inner: ParsedDocument,
    has_mark: bool,
    /// Whether all lines end in CR LF.
    has_carriage_returns: bool,
}

enum ParsedDocument {
    Jsonc(Jsonc),
    Toml(Box<Toml>),
    Dotenv(Dotenv),
}

/// Returns the full name of a key below another one.
fn below(name: &str, key: &str) -> String {
    if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") }
}

const MARK: char = '\u{feff}';

impl Document {
    /// Parses the text. Rejects a file that could not be written back unchanged.
    pub fn parse(syntax: Syntax, text: &str) -> Result<Self, UnfitFile> {
        let body = text.strip_prefix(MARK);
        let has_mark = body.is_some();
        let body = body.unwrap_or(text);
        let has_carriage_returns =
            body.contains("\r\n") && body.matches('\n').count() == body.matches("\r\n").count();
        let lines = if has_carriage_returns { body.replace("\r\n", "\n") } else { body.to_owned() };
        let inner = match syntax {
            Syntax::Jsonc => ParsedDocument::Jsonc(Jsonc::parse(&lines)?),
            Syntax::Toml => ParsedDocument::Toml(Box::new(Toml::parse(&lines)?)),
            Syntax::Dotenv => ParsedDocument::Dotenv(Dotenv::parse(&lines)?),
        };
        let document = Self { inner, has_mark, has_carriage_returns };
        if document.text() == text { Ok(document) } else { Err(UnfitFile::Unfaithful) }
    }

    /// Returns the current text.
    pub fn text(&self) -> String {
        let text = match &self.inner {
            ParsedDocument::Jsonc(inner) => inner.text(),
            ParsedDocument::Toml(inner) => inner.text(),
            ParsedDocument::Dotenv(inner) => inner.text(),
        };
        let text = if self.has_carriage_returns { text.replace('\n', "\r\n") } else { text };
        if self.has_mark { format!("{MARK}{text}") } else { text }
    }

    /// Returns the value of a key, without quotes, or `None` if the key is missing.
    pub fn value(&self, path: &[&str]) -> Option<String> {
        match &self.inner {
            ParsedDocument::Jsonc(inner) => inner.value(path),
            ParsedDocument::Toml(inner) => inner.value(path),
            ParsedDocument::Dotenv(inner) => inner.value(path),
        }
    }

    /// Returns all values in a table, with their dotted names. `None` if the path is not a table.
    pub fn leaves(&self, path: &[&str]) -> Option<Vec<(String, String)>> {
        match &self.inner {
            ParsedDocument::Jsonc(inner) => inner.leaves(path),
            ParsedDocument::Toml(inner) => inner.leaves(path),
            ParsedDocument::Dotenv(_) => None,
        }
    }

    /// Sets a key, and creates its parent tables.
    pub fn set(&mut self, path: &[&str], value: &Value) -> Result<(), UnfitFile> {
        match &mut self.inner {
            ParsedDocument::Jsonc(inner) => inner.set(path, value),
            ParsedDocument::Toml(inner) => inner.set(path, value),
            ParsedDocument::Dotenv(inner) => {
                inner.set(path, value);
                Ok(())
            }
        }
    }

    /// Returns the elements of a list, or `None` if it is not a list.
    pub fn list(&self, path: &[&str]) -> Option<Vec<serde_json::Value>> {
        match &self.inner {
            ParsedDocument::Jsonc(inner) => inner.list(path),
            ParsedDocument::Toml(_) | ParsedDocument::Dotenv(_) => None,
        }
    }

    /// Appends an element to a list, and creates its parent tables.
    pub fn append(&mut self, path: &[&str], element: &serde_json::Value) -> Result<(), UnfitFile> {
        match &mut self.inner {
            ParsedDocument::Jsonc(inner) => inner.append(path, element),
            ParsedDocument::Toml(_) | ParsedDocument::Dotenv(_) => Err(UnfitFile::NoList(path.join("."))),
        }
    }

    /// Removes elements from the lists in a list.
    pub fn remove_elements(&mut self, path: &[&str], removal: &Removal<'_>) {
        match &mut self.inner {
            ParsedDocument::Jsonc(inner) => inner.remove_elements(path, removal),
            ParsedDocument::Toml(_) | ParsedDocument::Dotenv(_) => {}
        }
    }

    /// Copies a key and everything below it from another document of the same syntax.
    ///
    /// Tables that become empty are removed, unless the other document has them.
    pub fn copy_from(&mut self, other: &Self, path: &[&str]) -> Result<(), UnfitFile> {
        match (&mut self.inner, &other.inner) {
            (ParsedDocument::Jsonc(inner), ParsedDocument::Jsonc(other)) => inner.copy_from(other, path),
            (ParsedDocument::Toml(inner), ParsedDocument::Toml(other)) => inner.copy_from(other, path),
            (ParsedDocument::Dotenv(inner), ParsedDocument::Dotenv(other)) => {
                inner.copy_from(other, path);
                Ok(())
            }
            _ => Err(UnfitFile::Unfaithful),
        }
    }
}
