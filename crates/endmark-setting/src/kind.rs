//! The kinds of values of settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{ExpectedValue, RawSetting};

/// Parses, displays and describes values of type `T`.
pub trait SettingKind<T> {
    /// Parses a value.
    ///
    /// # Errors
    ///
    /// Returns a description of the expected value, as the end of the sentence "… must be …".
    fn read(&self, given: &RawSetting) -> Result<T, ExpectedValue>;

    /// Returns a value for display. Null if it is not set.
    fn show(&self, value: &T) -> Value;

    /// Returns a short description of the accepted values.
    fn accepts(&self) -> String;

    /// Resolves a relative path in the value against this folder.
    fn resolve_path(&self, _value: &mut T, _folder: &Path) {}
}

/// An integer, or a time in whole seconds, with this minimum. A number that is too large for its type becomes
/// the type's maximum.
#[derive(Debug, Clone, Copy)]
pub struct AtLeast(pub u64);

impl AtLeast {
    fn describe(self) -> String {
        format!("a number, at least {}", self.0)
    }
}

macro_rules! count {
    ($($type:ty),*) => {$(
        impl SettingKind<$type> for AtLeast {
            fn read(&self, given: &RawSetting) -> Result<$type, ExpectedValue> {
                Ok(<$type>::try_from(given.count(self.0)?).unwrap_or(<$type>::MAX))
            }

            fn show(&self, value: &$type) -> Value {
                json!(value)
            }

            fn accepts(&self) -> String {
                self.describe()
            }
        }
    )*};
}

count!(u32, u64, usize);

impl SettingKind<Duration> for AtLeast {
    fn read(&self, given: &RawSetting) -> Result<Duration, ExpectedValue> {
        given.count(self.0).map(Duration::from_secs)
    }

    fn show(&self, value: &Duration) -> Value {
        json!(value.as_secs())
    }

    fn accepts(&self) -> String {
        self.describe()
    }
}

/// A boolean: `true` or `false`, or in text also `yes` or `no`.
#[derive(Debug, Clone, Copy)]
pub struct Flag;

impl SettingKind<bool> for Flag {
    fn read(&self, given: &RawSetting) -> Result<bool, ExpectedValue> {
        given.flag()
    }

    fn show(&self, value: &bool) -> Value {
        json!(value)
    }

    fn accepts(&self) -> String {
        "`true`, `false`".to_owned()
    }
}

/// One of several words. Each word has a value.
#[derive(Debug, Clone, Copy)]
pub struct OneOf<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> OneOf<T> {
    /// Returns the value of a word.
    ///
    /// # Errors
    ///
    /// Returns the list of known words.
    pub fn parse(&self, given: &RawSetting) -> Result<T, ExpectedValue> {
        self.find(&given.text().unwrap_or_default()).ok_or_else(|| match self.0 {
            [(one, _)] => format!("`{one}`"),
            _ => format!("one of {}", self.words()),
        })
    }

    /// Returns the value of a word, or `None` if the word is unknown. Surrounding white space is ignored.
    pub fn find(&self, word: &str) -> Option<T> {
        self.0.iter().find(|(known, _)| *known == word.trim()).map(|(_, value)| *value)
    }

    /// Returns the word for a value, or an empty text if no word has this value.
    pub fn word(&self, value: T) -> &'static str {
        self.0.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
    }

    fn words(&self) -> String {
        self.0.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    }
}

impl<T: Copy + PartialEq> SettingKind<T> for OneOf<T> {
    fn read(&self, given: &RawSetting) -> Result<T, ExpectedValue> {
        self.parse(given)
    }

    fn show(&self, value: &T) -> Value {
        json!(self.word(*value))
    }

    fn accepts(&self) -> String {
        self.words()
    }
}

impl<T: Copy + PartialEq> SettingKind<Option<T>> for OneOf<T> {
    fn read(&self, given: &RawSetting) -> Result<Option<T>, ExpectedValue> {
        self.parse(given).map(Some)
    }

    fn show(&self, value: &Option<T>) -> Value {
        json!(value.map(|value| self.word(value)))
    }

    fn accepts(&self) -> String {
        self.words()
    }
}

/// A text. An empty text counts as unset.
#[derive(Debug, Clone, Copy)]
pub struct Text;

impl SettingKind<Option<String>> for Text {
    fn read(&self, given: &RawSetting) -> Result<Option<String>, ExpectedValue> {
        given.optional_text()
    }

    fn show(&self, value: &Option<String>) -> Value {
        json!(value)
    }

    fn accepts(&self) -> String {
        "text".to_owned()
    }
}

/// The path of a file. An empty path counts as unset.
#[derive(Debug, Clone, Copy)]
pub struct FilePath;

impl SettingKind<Option<PathBuf>> for FilePath {
    fn read(&self, given: &RawSetting) -> Result<Option<PathBuf>, ExpectedValue> {
        Ok(given.optional_text()?.map(PathBuf::from))
    }

    fn show(&self, value: &Option<PathBuf>) -> Value {
        json!(value)
    }

    fn accepts(&self) -> String {
        "a path".to_owned()
    }

    fn resolve_path(&self, value: &mut Option<PathBuf>, folder: &Path) {
        if let Some(path) = value {
            *path = folder.join(&path);
        }
    }
}

/// A list of names that `fits` accepts. `*` means all names.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// Returns whether a name is accepted.
    pub accepts_name: fn(&str) -> bool,
    /// A description of the accepted names, as the end of the sentence "… must be …".
    pub expected: &'static str,
}

impl SettingKind<Vec<String>> for Names {
    fn read(&self, given: &RawSetting) -> Result<Vec<String>, ExpectedValue> {
        let names = given.names()?;
        if names.iter().all(|name| name == "*" || (self.accepts_name)(name)) {
            Ok(names)
        } else {
            Err(self.expected.to_owned())
        }
    }

    fn show(&self, value: &Vec<String>) -> Value {
        json!(value)
    }

    fn accepts(&self) -> String {
        "a list of names".to_owned()
    }
}
