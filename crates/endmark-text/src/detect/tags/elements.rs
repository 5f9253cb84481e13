//! The open elements of a text.

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of open elements, because each needs memory for its name. XML parsers stop at 256, HTML parsers at
/// 512.
pub(super) const MAX_OPEN_ELEMENTS: usize = 1 << 17;

/// The fault of an element beyond [`MAX_OPEN_ELEMENTS`].
pub(super) const TOO_DEEP: &str = "more than 131,072 elements are open";

/// The names of the open elements as written, outermost first, and how often each is open, ignoring case. Each
/// lower-case name is stored once, so that a copy costs only its levels.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Box<str>>", into = "Vec<Box<str>>")]
pub(super) struct Elements {
    names: Vec<Arc<str>>,
    counts: BTreeMap<Arc<str>, usize>,
}

impl From<Vec<Box<str>>> for Elements {
    fn from(names: Vec<Box<str>>) -> Self {
        let mut elements = Self::default();
        for name in names {
            elements.push(&name);
        }
        elements
    }
}

impl From<Elements> for Vec<Box<str>> {
    fn from(elements: Elements) -> Self {
        elements.names.iter().map(|name| Box::from(&**name)).collect()
    }
}

impl Elements {
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

    /// Whether this state is reachable.
    pub(super) fn is_consistent(&self) -> bool {
        self.names.len() <= MAX_OPEN_ELEMENTS
    }

    /// The name of the innermost element in lower case.
    pub(super) fn last(&self) -> Option<String> {
        self.names.last().map(|name| name.to_ascii_lowercase())
    }

    /// Whether an element of this name in lower case is open.
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

    /// Closes the innermost element, and returns its name in lower case.
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

    /// Closes the innermost element with this lower-case name, if any, and all elements within it.
    pub(super) fn close(&mut self, name: &str) -> bool {
        let is_open = self.contains(name);
        while is_open && self.pop().is_some_and(|last| last != name) {}
        is_open
    }
}
