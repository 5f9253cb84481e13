//! Fields that are not known: each name once, in the order of the text.

use std::collections::HashSet;

use crate::OtherField;

/// Collects such fields. The first value of a name counts.
#[derive(Debug, Default)]
pub(crate) struct OtherFields {
    fields: Vec<OtherField>,
    /// A text may have as many fields as lines. To search the fields for each name took 4.5 s for 40,000.
    names: HashSet<String>,
}

impl OtherFields {
    pub(crate) fn new(fields: Vec<OtherField>) -> Self {
        let names = fields.iter().map(|field| field.name.clone()).collect();
        Self { fields, names }
    }

    /// Takes a field that follows the known field `after`.
    pub(crate) fn set(&mut self, name: &str, value: &str, after: &'static str) {
        if self.names.insert(name.to_owned()) {
            self.fields.push(OtherField { name: name.to_owned(), value: value.to_owned(), after });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(crate) fn into_fields(self) -> Vec<OtherField> {
        self.fields
    }
}
