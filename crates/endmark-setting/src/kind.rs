//! The kinds of values that settings have.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Expected, Given};

/// How a value of the type `T` is parsed, displayed and described.
pub trait Kind<T> {
    /// Parses a value.
    ///
    /// # Errors
    ///
    /// Returns the expected value as the end of the sentence "… must be …".
    fn read(&self, given: &Given) -> Result<T, Expected>;

    /// Returns a value for display; null if unset.
    fn show(&self, value: &T) -> Value;

    /// Describes the accepted values in a few words.
    fn accepts(&self) -> String;

    /// Resolves a relative path against this folder.
    fn place_below(&self, _value: &mut T, _folder: &Path) {}
}

/// An integer, or a time in whole seconds, that is at least this one. A number too large for its type becomes
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
        impl Kind<$type> for AtLeast {
            fn read(&self, given: &Given) -> Result<$type, Expected> {
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

impl Kind<Duration> for AtLeast {
    fn read(&self, given: &Given) -> Result<Duration, Expected> {
        given.count(self.0).map(Duration::from_secs)
    }

    fn show(&self, value: &Duration) -> Value {
        json!(value.as_secs())
    }

    fn accepts(&self) -> String {
        self.describe()
    }
}

/// A boolean: true or false, yes or no.
#[derive(Debug, Clone, Copy)]
pub struct Flag;

impl Kind<bool> for Flag {
    fn read(&self, given: &Given) -> Result<bool, Expected> {
        given.flag()
    }

    fn show(&self, value: &bool) -> Value {
        json!(value)
    }

    fn accepts(&self) -> String {
        "`true`, `false`".to_owned()
    }
}

/// One of a few words, each with its value.
#[derive(Debug, Clone, Copy)]
pub struct OneOf<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> OneOf<T> {
    /// Returns the value of a word.
    ///
    /// # Errors
    ///
    /// Returns the list of known words.
    pub fn parse(&self, given: &Given) -> Result<T, Expected> {
        self.find(&given.text().unwrap_or_default()).ok_or_else(|| match self.0 {
            [(one, _)] => format!("`{one}`"),
            _ => format!("one of {}", self.words()),
        })
    }

    /// Returns the value of a word, or `None` if the word is unknown. White space around it is ignored.
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

impl<T: Copy + PartialEq> Kind<T> for OneOf<T> {
    fn read(&self, given: &Given) -> Result<T, Expected> {
        self.parse(given)
    }

    fn show(&self, value: &T) -> Value {
        json!(self.word(*value))
    }

    fn accepts(&self) -> String {
        self.words()
    }
}

impl<T: Copy + PartialEq> Kind<Option<T>> for OneOf<T> {
    fn read(&self, given: &Given) -> Result<Option<T>, Expected> {
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

impl Kind<Option<String>> for Text {
    fn read(&self, given: &Given) -> Result<Option<String>, Expected> {
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

impl Kind<Option<PathBuf>> for FilePath {
    fn read(&self, given: &Given) -> Result<Option<PathBuf>, Expected> {
        Ok(given.optional_text()?.map(PathBuf::from))
    }

    fn show(&self, value: &Option<PathBuf>) -> Value {
        json!(value)
    }

    fn accepts(&self) -> String {
        "a path".to_owned()
    }

    fn place_below(&self, value: &mut Option<PathBuf>, folder: &Path) {
        if let Some(path) = value {
            *path = folder.join(&path);
        }
    }
}

/// A list of names, each checked by `fits`. `*` means all names.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// Returns whether a name is accepted.
    pub fits: fn(&str) -> bool,
    /// The accepted names, as the end of the sentence "… must be …".
    pub expected: &'static str,
}

impl Kind<Vec<String>> for Names {
    fn read(&self, given: &Given) -> Result<Vec<String>, Expected> {
        let names = given.names()?;
        if names.iter().all(|name| name == "*" || (self.fits)(name)) {
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
