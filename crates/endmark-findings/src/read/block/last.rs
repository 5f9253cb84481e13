//! The field that came last, and which lines say more of it.

use crate::Field;

use super::super::lines::indent;
use super::super::names::Key;
use super::super::words::{self, Said, item};

/// The field that came last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    pub(super) key: Key,
    pub(super) name: Name,
    /// Nothing has been said of it yet, so that the next line says it, however far it is indented.
    pub(super) is_open: bool,
    /// What is said of it is a list, whose items may stand as deep as its name.
    pub(super) is_list: bool,
    /// It ends with a comma or an arrow, so that the next line goes on with it.
    pub(super) is_broken: bool,
}

impl Last {
    /// Whether a line that is no known field says more of this one: by how it stands beside the name.
    pub(super) fn goes_on_in(&self, text: &str, field: &str) -> bool {
        let depth = indent(text);
        if words::is_rule(text) || depth < self.name.indent && !self.is_open {
            return false;
        }
        if depth > self.name.indent {
            return true;
        }
        // The colon in `src/b.rs:20` makes no name of what stands before it.
        let is_labelled = words::is_labelled(field) && !words::said(field).is_some_and(is_place);
        if item(field).is_none() {
            let is_step = matches!(self.key, Key::Ends | Key::Of(Field::Flow))
                && STEPS.iter().any(|step| field.trim().starts_with(step));
            let is_beside = self.name.is_emphasised && words::has_emphasised_name(field);
            return (self.is_broken || is_step) && !is_labelled || self.is_open && !is_beside;
        }
        // Items of one list stand beside each other; a list below a line that is none may say more of it.
        let is_item_of_it = self.is_open || self.is_list;
        if is_labelled { is_item_of_it && !self.name.is_item } else { is_item_of_it || !self.name.is_item }
    }
}

/// How the name of a field stands in its line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) indent: usize,
    /// As an item of a list.
    pub(super) is_item: bool,
    /// In bold or italics.
    is_emphasised: bool,
}

impl Name {
    /// In the cell of a row.
    pub(super) const OF_CELL: Self = Self { indent: 0, is_item: false, is_emphasised: false };

    pub(super) fn of(text: &str) -> Self {
        let is_emphasised = words::has_emphasised_name(text);
        Self { indent: indent(text), is_item: item(text).is_some(), is_emphasised }
    }
}

/// Whether what looks like a name and its value is a file and a line of it.
pub(super) fn is_place(said: Said<'_>) -> bool {
    let file = said.name.rsplit(' ').next().unwrap_or(said.name);
    said.key.is_none() && file.contains('.') && said.value.starts_with(|sign: char| sign.is_ascii_digit())
}

/// What stands between the steps of a flow.
const STEPS: [&str; 4] = ["->", "→", "=>", "⇒"];

/// Whether a value goes on in the next line: a list or a flow that ends with what stands between its items.
pub(super) fn is_broken(value: &str) -> bool {
    let value = value.trim_end();
    value.ends_with([',', '，', '、', ';', '；']) || STEPS.iter().any(|step| value.ends_with(step))
}
