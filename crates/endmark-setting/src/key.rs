//! One key of the configuration: how its value is read, shown and described.

use std::path::Path;

use serde_json::Value;

use crate::{Expected, Given, Kind};

type Set<S> = Box<dyn Fn(&mut S, &Given) -> Result<(), Expected> + Send + Sync>;
type Show<S> = Box<dyn Fn(&S) -> Value + Send + Sync>;
type PlaceBelow<S> = Box<dyn Fn(&mut S, &Path) + Send + Sync>;

/// One key of the settings `S`.
pub struct Key<S> {
    name: String,
    summary: &'static str,
    accepts: String,
    set: Set<S>,
    show: Show<S>,
    place_below: PlaceBelow<S>,
}

impl<S: 'static> Key<S> {
    /// A key for the value that `get` and `get_mut` find.
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

    /// The same key as one of the settings around this section, below the section's name. A section without a name is the file's
    /// beginning.
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

    /// Section and key, joined by a dot.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The environment variable that sets it: `ENDMARK_`, the section and the key, joined by `_`, in capitals.
    pub fn variable(&self) -> String {
        format!("ENDMARK_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// The summary that users read: one sentence.
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// The values that it accepts, for the reference.
    pub fn accepts(&self) -> &str {
        &self.accepts
    }

    /// Sets it.
    ///
    /// # Errors
    ///
    /// Says what the value has to be, as the end of "… must be …".
    pub fn set(&self, settings: &mut S, given: &Given) -> Result<(), Expected> {
        (self.set)(settings, given)
    }

    /// Its value; null if nothing is set. A secret is `***`.
    pub fn value(&self, settings: &S) -> Value {
        (self.show)(settings)
    }

    /// Makes a relative path one in this folder.
    pub fn place_below(&self, settings: &mut S, folder: &Path) {
        (self.place_below)(settings, folder);
    }
}
