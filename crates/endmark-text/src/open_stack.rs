//! The open constructs at a cut.

use crate::Open;
use crate::nesting::Nesting;

/// The open constructs at a cut, outermost first. A JSON bracket needs one bit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenStack {
    brackets: Nesting,
    inner: Vec<Open>,
}

impl OpenStack {
    pub(crate) fn from_json(brackets: &Nesting, in_string: bool) -> Self {
        Self { brackets: brackets.clone(), inner: in_string.then_some(Open::String).into_iter().collect() }
    }

    pub(crate) fn push(&mut self, open: Open) {
        self.inner.push(open);
    }

    /// Returns the number of open constructs.
    pub fn len(&self) -> usize {
        self.brackets.depth() + self.inner.len()
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the innermost construct, or `None` if nothing is open.
    pub fn last(&self) -> Option<Open> {
        self.iter().next_back()
    }

    /// Returns all constructs, outermost first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Open> + '_ {
        self.brackets.open().chain(self.inner.iter().cloned())
    }
}

impl FromIterator<Open> for OpenStack {
    fn from_iter<I: IntoIterator<Item = Open>>(open: I) -> Self {
        Self { brackets: Nesting::default(), inner: open.into_iter().collect() }
    }
}
