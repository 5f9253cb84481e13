//! Collects unknown fields, each name once, in the order of the text.

use std::collections::HashSet;

use crate::OtherField;

/// The unknown fields so far. The first value of a name counts.
#[derive(Debug, Default)]
pub(crate) struct OtherFields {
    fields: Vec<OtherField>,
    /// The names in `fields`. Each line of a text may be a field: a linear search took 4.5 s for 40,000 fields.
    names: HashSet<String>,
}

impl OtherFields {
    /// Adds a field that follows the known field `after`, unless its name is already present. Returns whether it was
    /// added.
    pub(crate) fn set(&mut self, name: &str, value: &str, after: &'static str) -> bool {
        let is_new = self.names.insert(name.to_owned());
        if is_new {
            self.fields.push(OtherField { name: name.to_owned(), value: value.to_owned(), after });
        }
        is_new
    }

    /// Appends a line to the value of the last field.
    pub(crate) fn append_line(&mut self, line: &str) {
        if let Some(last) = self.fields.last_mut() {
            last.value.push('\n');
            last.value.push_str(line);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(crate) fn into_fields(self) -> Vec<OtherField> {
        self.fields
    }
}
