//! Size limits of input fields, checked before anything is written. (EN-4)

mod implementations;

use std::ops::Deref;

pub use implementations::{LimitedList, LimitedText};

use crate::detect::FieldRule;
use crate::error::ErrorBody;
use crate::path::{FieldPath, FieldPattern};
use crate::rules::FieldRules;

/// The limits of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Limit {
    /// Maximum UTF-8 bytes of a text, of each text in a list, or of each value of a map.
    pub max_bytes: Option<u64>,
    /// Maximum number of Unicode characters.
    pub max_chars: Option<u64>,
    /// Maximum number of items of a list or members of a map.
    pub max_items: Option<u64>,
}

/// A type whose fields have limits. `#[derive(Limits)]` reads them from `#[limits(…)]` (EN-4).
///
/// A field may have `max_bytes = N` and `max_chars = N` for text, also in options, lists and maps; `max_items
/// = N` for lists and maps; and `skip` for a field without limits. The type of any other field checks that
/// field, so that nested structs and fields that are not serialised cannot be forgotten. In a map, the values
/// and their number are limited, but not the keys. If the keys are user input, use a list of structs with a
/// name and a value.
///
/// ```
/// use endmark_envelope::{Checked, ErrorBody, Limits};
///
/// #[derive(Limits)]
/// struct NewIssue {
///     #[limits(max_bytes = 255)]
///     title: String,
///     #[limits(max_bytes = 50, max_items = 10)]
///     labels: Vec<String>,
///     author: Option<Person>,
/// }
///
/// #[derive(Limits)]
/// struct Person {
///     #[limits(max_chars = 40)]
///     name: String,
/// }
///
/// let person = Person { name: "n".repeat(41) };
/// let issue = NewIssue { title: "t".repeat(500), labels: vec!["bug".into()], author: Some(person) };
/// let error = ErrorBody::from(Checked::new(issue).err().unwrap());
/// assert_eq!((error.code.as_str(), error.exit_code), ("FIELD_TOO_LARGE", 2));
/// assert_eq!(error.field.unwrap().to_string(), "title");
/// assert_eq!((error.limit, error.actual), (Some(255), Some(500)));
/// assert_eq!(error.hint.unwrap(), "Shorten it; `author.name` has 41 characters, at most 40, too.");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not declare the limits of its fields",
    label = "has no limits",
    note = "derive `endmark_envelope::Limits` for `{Self}`, or write `#[limits(skip)]` on the field"
)]
pub trait Limits {
    /// Adds the rules of this type for the values at this path, which have this limit.
    fn declare(at: &FieldPattern, limit: Limit, into: &mut FieldRules);

    /// Adds the fields of the value at this path that exceed their limit.
    fn check_at(&self, at: &FieldPath, limit: Limit, found: &mut Vec<FieldTooLarge>);

    /// Returns an error if any field of the value exceeds its limit.
    fn check_limits(&self) -> Result<(), TooLarge> {
        let mut found = Vec::new();
        self.check_at(&FieldPath::root(), Limit::default(), &mut found);
        TooLarge::new(found).map_or(Ok(()), Err)
    }
}

/// Returns rules for the data of an envelope from the limits of `T`, because a backend keeps at most what may
/// be written.
pub fn declared<T: Limits + ?Sized>() -> FieldRules {
    let mut rules = FieldRules::default();
    T::declare(&FieldPattern::data(), Limit::default(), &mut rules);
    rules
}

/// A value within its limits. Functions that write require this type, so that the check cannot be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked<T>(T);

impl<T: Limits> Checked<T> {
    /// Checks the limits of a value. Returns an error if any field exceeds its limit (EN-4).
    pub fn new(value: T) -> Result<Self, TooLarge> {
        value.check_limits().map(|()| Self(value))
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A field that exceeds its limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` has {actual} {unit}, at most {limit}")]
pub struct FieldTooLarge {
    /// The path of the field in the input.
    pub field: FieldPath,
    /// The limit of the field.
    pub limit: u64,
    /// The actual size of the field.
    pub actual: u64,
    /// The unit: bytes, characters or items.
    pub unit: &'static str,
}

/// Error with the fields of one value that exceed their limits. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", ErrorBody::from(self.clone()).message)]
pub struct TooLarge(Vec<FieldTooLarge>);

impl TooLarge {
    /// Returns the error for these fields, or `None` if the list is empty.
    pub fn new(fields: Vec<FieldTooLarge>) -> Option<Self> {
        (!fields.is_empty()).then_some(Self(fields))
    }

    /// Returns the fields in the order of their declaration.
    pub fn fields(&self) -> &[FieldTooLarge] {
        &self.0
    }
}

/// Maximum number of additional fields that a hint names.
const MAX_FIELDS_IN_HINT: usize = 3;

impl From<TooLarge> for ErrorBody {
    fn from(TooLarge(fields): TooLarge) -> Self {
        let others: Vec<String> =
            fields.iter().skip(1).take(MAX_FIELDS_IN_HINT).map(ToString::to_string).collect();
        let more = match fields.len().saturating_sub(1 + MAX_FIELDS_IN_HINT) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let hint = match others.as_slice() {
            [] => "Shorten it; nothing was written.".to_owned(),
            others => format!("Shorten it; {}{more}, too.", others.join("; ")),
        };
        // The list always contains at least one field.
        let first = fields.into_iter().next().unwrap_or_default();
        Self::field_too_large(first.field, first.limit, first.actual, first.unit).with_hint(hint)
    }
}

impl Default for FieldTooLarge {
    fn default() -> Self {
        Self { field: FieldPath::root(), limit: 0, actual: 0, unit: "bytes" }
    }
}

impl Limit {
    /// Returns the rule for a value from a backend with this limit.
    pub(crate) fn rule(self) -> FieldRule {
        let Self { max_bytes, max_chars, max_items } = self;
        FieldRule { max_bytes, max_chars, max_items, ..FieldRule::default() }
    }
}

/// Compiles only for types with `max_bytes` and `max_chars`.
#[doc(hidden)]
pub fn is_text<T: LimitedText + ?Sized>() {}

/// Compiles only for types with `max_items`.
#[doc(hidden)]
pub fn is_list<T: LimitedList + ?Sized>() {}

#[cfg(test)]
mod tests;
