//! A configuration key, which parses, displays and describes its value.

use std::path::Path;

use serde_json::Value;

use crate::{ExpectedValue, RawSetting, SettingKind};

type SetFn<S> = Box<dyn Fn(&mut S, &RawSetting) -> Result<(), ExpectedValue> + Send + Sync>;
type ShowFn<S> = Box<dyn Fn(&S) -> Value + Send + Sync>;
type ResolvePathFn<S> = Box<dyn Fn(&mut S, &Path) + Send + Sync>;

/// A configuration key of the settings `S`.
pub struct Key<S> {
    name: String,
    summary: &'static str,
    accepts: String,
    set: SetFn<S>,
    show: ShowFn<S>,
    place_below: ResolvePathFn<S>,
}

impl<S: 'static> Key<S> {
    /// Creates a key for a field. `get` and `get_mut` access the field.
    pub fn new<T: 'static>(
        name: &str,
        summary: &'static str,
        get: fn(&S) -> &T,
        get_mut: fn(&mut S) -> &mut T,
        kind: impl SettingKind<T> + Copy + Send + Sync + 'static,
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
            place_below: Box::new(move |settings, folder| kind.resolve_path(get_mut(settings), folder)),
        }
    }

    /// Returns the same key for settings that contain this section. The section's name becomes a prefix. A
    /// section without a name is at the top level of the file.
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

    /// Returns the environment variable of the key: `ENDMARK_`, the section and the key in capitals, joined
    /// by `_`.
    pub fn variable(&self) -> String {
        format!("ENDMARK_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Returns the one-sentence summary for users.
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// Returns the description of the accepted values for the reference.
    pub fn accepts(&self) -> &str {
        &self.accepts
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// Returns a description of the expected value, as the end of the sentence "… must be …".
    pub fn set(&self, settings: &mut S, given: &RawSetting) -> Result<(), ExpectedValue> {
        (self.set)(settings, given)
    }

    /// Returns the value for display. Null if it is not set, and `***` for a secret.
    pub fn value(&self, settings: &S) -> Value {
        (self.show)(settings)
    }

    /// Resolves a relative path in the value against this folder.
    pub fn resolve_path(&self, settings: &mut S, folder: &Path) {
        (self.place_below)(settings, folder);
    }
}
