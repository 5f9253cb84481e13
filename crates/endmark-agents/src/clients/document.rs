//! Edits a configuration file in place. Comments, order, spelling and unknown content do not change.

mod dotenv;
mod jsonc;
mod lists;
mod toml;

#[cfg(test)]
mod tests;

use dotenv::Dotenv;
use jsonc::Jsonc;
pub use lists::InnerListRemoval;
use toml::Toml;

/// The syntax of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// JSON with comments and trailing commas. Edits preserve both.
    Jsonc,
    /// TOML.
    Toml,
    /// Lines `NAME=value`.
    Dotenv,
}

impl Syntax {
    /// Returns the syntax's name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonc => "JSON",
            Self::Toml => "TOML",
            Self::Dotenv => "lines of NAME=value",
        }
    }
}

/// The value that a key gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewValue {
    /// A text value.
    Text(String),
    /// A table. An existing table is kept.
    Table,
}

/// The reason why a file cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UneditableFile {
    /// The file is invalid in its syntax.
    #[error("{0}")]
    Unreadable(String),
    /// A table is needed here, but the file has another kind of value.
    #[error("`{0}` is not a table in it")]
    NotATable(String),
    /// A value is needed here, but the file has a table, and its content would be lost.
    #[error("`{0}` is a table in it")]
    IsTable(String),
    /// A list is needed here, but the file has another kind of value.
    #[error("`{0}` is not a list in it")]
    NotAList(String),
    /// The parser cannot write the file back without unrequested changes.
    #[error("it cannot be written back without other changes")]
    NotPreserved,
}

/// A parsed configuration file that can be edited.
pub struct ConfigDocument {
    inner: ParsedDocument,
    has_byte_order_mark: bool,
    /// Whether all lines end with CR LF.
    has_carriage_returns: bool,
}

enum ParsedDocument {
    Jsonc(Jsonc),
    Toml(Box<Toml>),
    Dotenv(Dotenv),
}

/// Returns the full name of a key within a table.
fn key_below(name: &str, key: &str) -> String {
    if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl ConfigDocument {
    /// Parses a file. Fails if it could not be written back unchanged.
    pub fn parse(syntax: Syntax, text: &str) -> Result<Self, UneditableFile> {
        let body = text.strip_prefix(BYTE_ORDER_MARK);
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
        let document = Self { inner, has_byte_order_mark: has_mark, has_carriage_returns };
        if document.text() == text { Ok(document) } else { Err(UneditableFile::NotPreserved) }
    }

    /// Returns the text with all edits.
    pub fn text(&self) -> String {
        let text = match &self.inner {
            ParsedDocument::Jsonc(inner) => inner.text(),
            ParsedDocument::Toml(inner) => inner.text(),
            ParsedDocument::Dotenv(inner) => inner.text(),
        };
        let text = if self.has_carriage_returns { text.replace('\n', "\r\n") } else { text };
        if self.has_byte_order_mark { format!("{BYTE_ORDER_MARK}{text}") } else { text }
    }

    /// Returns the value of a key without quotation marks. Returns `None` if the key does not exist.
    pub fn value(&self, path: &[&str]) -> Option<String> {
        match &self.inner {
            ParsedDocument::Jsonc(inner) => inner.value(path),
            ParsedDocument::Toml(inner) => inner.value(path),
            ParsedDocument::Dotenv(inner) => inner.value(path),
        }
    }

    /// Returns all values in a table with their dotted names. Returns `None` if the path is not a table.
    pub fn leaves(&self, path: &[&str]) -> Option<Vec<(String, String)>> {
        match &self.inner {
            ParsedDocument::Jsonc(inner) => inner.leaves(path),
            ParsedDocument::Toml(inner) => inner.leaves(path),
            ParsedDocument::Dotenv(_) => None,
        }
    }

    /// Sets a key. Creates missing parent tables.
    pub fn set(&mut self, path: &[&str], value: &NewValue) -> Result<(), UneditableFile> {
        match &mut self.inner {
            ParsedDocument::Jsonc(inner) => inner.set(path, value),
            ParsedDocument::Toml(inner) => inner.set(path, value),
            ParsedDocument::Dotenv(inner) => {
                inner.set(path, value);
                Ok(())
            }
        }
    }

    /// Returns the elements of a list. Returns `None` if the path is not a list.
    pub fn list(&self, path: &[&str]) -> Option<Vec<serde_json::Value>> {
        match &self.inner {
            ParsedDocument::Jsonc(inner) => inner.list(path),
            ParsedDocument::Toml(_) | ParsedDocument::Dotenv(_) => None,
        }
    }

    /// Appends an element to a list. Creates the list and its parent tables if they are missing.
    pub fn append(&mut self, path: &[&str], element: &serde_json::Value) -> Result<(), UneditableFile> {
        match &mut self.inner {
            ParsedDocument::Jsonc(inner) => inner.append(path, element),
            ParsedDocument::Toml(_) | ParsedDocument::Dotenv(_) => {
                Err(UneditableFile::NotAList(path.join(".")))
            }
        }
    }

    /// Removes elements from the inner lists of a list.
    pub fn remove_elements(&mut self, path: &[&str], removal: &InnerListRemoval<'_>) {
        match &mut self.inner {
            ParsedDocument::Jsonc(inner) => inner.remove_elements(path, removal),
            ParsedDocument::Toml(_) | ParsedDocument::Dotenv(_) => {}
        }
    }

    /// Copies a key and everything below it from another document with the same syntax.
    ///
    /// Tables that become empty are removed, unless the other document contains them.
    pub fn copy_from(&mut self, other: &Self, path: &[&str]) -> Result<(), UneditableFile> {
        match (&mut self.inner, &other.inner) {
            (ParsedDocument::Jsonc(inner), ParsedDocument::Jsonc(other)) => inner.copy_from(other, path),
            (ParsedDocument::Toml(inner), ParsedDocument::Toml(other)) => inner.copy_from(other, path),
            (ParsedDocument::Dotenv(inner), ParsedDocument::Dotenv(other)) => {
                inner.copy_from(other, path);
                Ok(())
            }
            _ => Err(UneditableFile::NotPreserved),
        }
    }
}
