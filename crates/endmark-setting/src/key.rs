//! A configuration key: how its value is parsed, displayed and described.

use std::path::Path;

use serde_json::Value;

use crate::{Expected, Given, Kind};

type Set<S> = Box<dyn Fn(&mut S, &Given) -> Result<(), Expected> + Send + Sync>;
type Show<S> = Box<dyn Fn(&S) -> Value + Send + Sync>;
type PlaceBelow<S> = Box<dyn Fn(&mut S, &Path) + Send + Sync>;

/// A key of the settings `S`.
pub struct Key<S> {
    name: String,
    summary: &'static str,
    accepts: String,
    set: Set<S>,
    show: Show<S>,
    place_below: PlaceBelow<S>,
}

impl<S: 'static> Key<S> {
    /// Creates a key for the field that `get` and `get_mut` access.
    pub fn new<T: 'static>(
        name: &str,
        summary: &'static str,
        get: fn(&S) -> &T,
        get_mut: fn(&mut S) -> &mut T,
        kind: impl Kind<T> + Copy + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            summary: summary.trim(),
            accepts: kind.accepts(),
            set: Box::new(move |settings, given| {
                *get_mut(settings) = kind.read(given)?;
                Ok(())
            }),
            show: Box::new(move |settings| kind.show(get(settings))),
            place_below: Box::new(move |settings, folder| kind.place_below(get_mut(settings), folder)),
        }
    }

    /// Returns the same key for the settings that contain this section, with the section's name as a prefix.
    /// A section without a name is at the top of the file.
    pub fn within<R: 'static>(
        self,
        section: &str,
        get: fn(&R) -> &S,
        get_mut: fn(&mut R) -> &mut S,
    ) -> Key<R> {
        let Self { name, summary, accepts, set, show, place_below } = self;
        Key {
            name: if section.is_empty() { name } else { format!("{section}.{name}") },
            summary,
            accepts,
            set: Box::new(move |settings, given| set(get_mut(settings), given)),
            show: Box::new(move |settings| show(get(settings))),
            place_below: Box::new(move |settings, folder| place_below(get_mut(settings), folder)),
        }
    }

    /// Returns the section and the key, joined by a dot.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the environment variable of the key: `ENDMARK_`, the section and the key, joined by `_`, in capitals.
    pub fn variable(&self) -> String {
        format!("ENDMARK_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Returns the summary for users: one sentence.
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// Returns a description of the accepted values for the reference.
    pub fn accepts(&self) -> &str {
        &self.accepts
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// Returns the expected value as the end of the sentence "… must be …".
    pub fn set(&self, settings: &mut S, given: &Given) -> Result<(), Expected> {
        (self.set)(settings, given)
    }

    /// Returns the value for display. Null if unset; a secret is `***`.
    pub fn value(&self, settings: &S) -> Value {
        (self.show)(settings)
    }

    /// Resolves a relative path against this folder.
    pub fn place_below(&self, settings: &mut S, folder: &Path) {
        (self.place_below)(settings, folder);
    }
}
