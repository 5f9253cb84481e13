//! One table of a manifest. Known keys are recorded while they are parsed, so that an unknown key can be
//! reported.

use endmark_failure::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ManifestError, ManifestProblem};

/// A table that is being parsed.
pub(super) struct Section<'a> {
    text: &'a str,
    /// The name of the table in errors. Empty for the root.
    name: String,
    /// The byte offset of the table in the manifest.
    start: usize,
    table: &'a DeTable<'a>,
    known_keys: Vec<&'static str>,
}

/// What a value must be, as the end of the sentence "… must be …".
pub(super) type ExpectedValue = String;

impl<'a> Section<'a> {
    pub(super) fn new(text: &'a str, name: &str, start: usize, table: &'a DeTable<'a>) -> Self {
        Self { text, name: name.to_owned(), start, table, known_keys: Vec::new() }
    }

    /// Parses the value of an optional key with `read`. Returns `None` if the key is missing.
    pub(super) fn take_optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a DeValue<'a>) -> Result<T, ExpectedValue>,
    ) -> Result<Option<T>, ManifestError> {
        self.known_keys.push(key);
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let (section, offset) = (self.name.clone(), value.span().start);
        read(value.get_ref()).map(Some).map_err(|expected| {
            self.error_at(offset, ManifestProblem::Value { key: key.to_owned(), section, expected })
        })
    }

    /// Parses the value of a required key with `read`.
    pub(super) fn take_required<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a DeValue<'a>) -> Result<T, ExpectedValue>,
    ) -> Result<T, ManifestError> {
        self.take_optional(key, read)?.ok_or_else(|| self.missing_key(key))
    }

    /// Returns the error of a missing key.
    pub(super) fn missing_key(&self, key: &'static str) -> ManifestError {
        self.error_at(self.start, ManifestProblem::Missing { key, section: self.name.clone() })
    }

    /// Returns the table at this key. Returns `None` if the key is missing.
    pub(super) fn take_section(&mut self, key: &'static str) -> Result<Option<Section<'a>>, ManifestError> {
        let table = self.take_optional(key, |value| value.as_table().ok_or_else(|| "a table".to_owned()))?;
        let start = self.table.get(key).map_or(self.start, |value| value.span().start);
        Ok(table.map(|table| Section::new(self.text, &self.name_below(key), start, table)))
    }

    /// Returns the list of tables at this key. Empty if the key is missing.
    pub(super) fn take_sections(&mut self, key: &'static str) -> Result<Vec<Section<'a>>, ManifestError> {
        let expected = || format!("a list of tables: write each under `[[{key}]]`");
        let list = self.take_optional(key, |value| {
            let items = value.as_array().ok_or_else(expected)?;
            items.iter().map(|item| as_table(item).ok_or_else(expected)).collect::<Result<Vec<_>, _>>()
        })?;
        let name = self.name_below(key);
        let section = |(start, table)| Section::new(self.text, &name, start, table);
        Ok(list.unwrap_or_default().into_iter().map(section).collect())
    }

    /// Returns all keys with their values. Used for a table with arbitrary keys.
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, &'a str, &'a Spanned<DeValue<'a>>)> {
        self.table.iter().map(|(key, value)| (key.span().start, key.get_ref().as_ref(), value))
    }

    /// Returns the name of a table inside this one.
    pub(super) fn name_below(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Returns an error at this byte offset.
    pub(super) fn error_at(&self, offset: usize, problem: ManifestProblem) -> ManifestError {
        ManifestError { line: line_number(self.text, offset), problem }
    }

    /// Returns the error that a value in this table is not as expected.
    pub(super) fn value_error(&self, key: &str, offset: usize, expected: ExpectedValue) -> ManifestError {
        let (key, section) = (key.to_owned(), self.name.clone());
        self.error_at(offset, ManifestProblem::Value { key, section, expected })
    }

    /// Returns the error that keys of this table contradict each other.
    pub(super) fn contradiction(&self, message: String) -> ManifestError {
        self.error_at(self.start, ManifestProblem::Contradiction(message))
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Fails if the table has a key that is not known.
    pub(super) fn finish(self) -> Result<(), ManifestError> {
        let unknown = |key: &str| !self.known_keys.contains(&key);
        let mut found: Vec<_> = self.entries().filter(|(_, key, _)| unknown(key)).collect();
        found.sort_by_key(|(offset, ..)| *offset);
        let Some((offset, key, _)) = found.first() else { return Ok(()) };
        let problem = ManifestProblem::UnknownKey {
            key: (*key).to_owned(),
            section: self.name.clone(),
            nearest: nearest(key, self.known_keys.iter().map(|known| (*known).to_owned())),
        };
        Err(self.error_at(*offset, problem))
    }
}

fn as_table<'a>(item: &'a Spanned<DeValue<'a>>) -> Option<(usize, &'a DeTable<'a>)> {
    Some((item.span().start, item.get_ref().as_table()?))
}

/// Returns the number of the line that contains a byte offset, counted from 1.
pub(super) fn line_number(text: &str, offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..offset.min(text.len())]).count() + 1
}
