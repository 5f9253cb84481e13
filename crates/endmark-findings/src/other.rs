//! Unknown fields, each name once, in the order of the text.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::OtherField;

/// Collects unknown fields. The first value of a name counts.
#[derive(Debug, Default)]
pub(crate) struct OtherFields {
    fields: Vec<OtherField>,
    /// The index in `fields` for each name. A text may have as many fields as lines: a linear search took 4.5 s for
    /// 40,000.
    names: HashMap<String, usize>,
}

impl OtherFields {
    /// Adds a field that follows the known field `after`, unless its name is already present.
    pub(crate) fn set(&mut self, name: &str, value: &str, after: &'static str) -> bool {
        let Entry::Vacant(entry) = self.names.entry(name.to_owned()) else { return false };
        entry.insert(self.fields.len());
        self.fields.push(OtherField { name: name.to_owned(), value: value.to_owned(), after });
        true
    }

    /// Adds a line to the last field.
    pub(crate) fn go_on(&mut self, line: &str) {
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
