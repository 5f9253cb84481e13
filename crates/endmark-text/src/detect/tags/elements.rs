//! Tracks the open elements of a text.

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of open elements, because each one needs memory for its name. XML parsers stop at 256, HTML
/// parsers at 512.
pub(super) const MAX_OPEN_ELEMENTS: usize = 1 << 17;

/// The reason for rejecting an element beyond [`MAX_OPEN_ELEMENTS`].
pub(super) const TOO_MANY_ELEMENTS: &str = "more than 131,072 elements are open";

/// The names of the open elements as written, outermost first, and how often each lower-case name is open.
/// Each name is stored once, so a copy of this costs little per level.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Box<str>>", into = "Vec<Box<str>>")]
pub(super) struct OpenElements {
    names: Vec<Arc<str>>,
    counts: BTreeMap<Arc<str>, usize>,
}

impl From<Vec<Box<str>>> for OpenElements {
    fn from(names: Vec<Box<str>>) -> Self {
        let mut elements = Self::default();
        for name in names {
            elements.push(&name);
        }
        elements
    }
}

impl From<OpenElements> for Vec<Box<str>> {
    fn from(elements: OpenElements) -> Self {
        elements.names.iter().map(|name| Box::from(&**name)).collect()
    }
}

impl OpenElements {
    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether another element can be opened.
    pub(super) fn has_room(&self) -> bool {
        self.names.len() < MAX_OPEN_ELEMENTS
    }

    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        self.names.len() <= MAX_OPEN_ELEMENTS
    }

    /// Returns the lower-case name of the innermost element, or `None` if no element is open.
    pub(super) fn last(&self) -> Option<String> {
        self.names.last().map(|name| name.to_ascii_lowercase())
    }

    /// Whether an element with this lower-case name is open.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.counts.contains_key(name)
    }

    pub(super) fn push(&mut self, name: &str) {
        let lower = name.to_ascii_lowercase();
        let key: Arc<str> = match self.counts.get_key_value(lower.as_str()) {
            Some((key, _)) => Arc::clone(key),
            None => lower.into(),
        };
        self.names.push(if *key == *name { Arc::clone(&key) } else { name.into() });
        *self.counts.entry(key).or_default() += 1;
    }

    /// Closes the innermost element. Returns its lower-case name.
    pub(super) fn pop(&mut self) -> Option<String> {
        let name = self.names.pop()?.to_ascii_lowercase();
        if let Some(count) = self.counts.get_mut(name.as_str()) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(name.as_str());
            }
        }
        Some(name)
    }

    /// Closes the innermost element with this lower-case name, and all elements in it. Returns `false` if
    /// no such element is open.
    pub(super) fn close(&mut self, name: &str) -> bool {
        let is_open = self.contains(name);
        while is_open && self.pop().is_some_and(|last| last != name) {}
        is_open
    }
}
