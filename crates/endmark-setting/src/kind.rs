//! The kinds of values that settings have.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Expected, Given};

/// How a value of the type `T` is read, shown and described.
pub trait Kind<T> {
    /// Reads a value.
    ///
    /// # Errors
    ///
    /// Says what the value has to be, as the end of "… must be …".
    fn read(&self, given: &Given) -> Result<T, Expected>;

    /// Shows a value; null if nothing is set.
    fn show(&self, value: &T) -> Value;

    /// The values that it accepts, in a few words.
    fn accepts(&self) -> String;

    /// Makes a relative path one in this folder.
    fn place_below(&self, _value: &mut T, _folder: &Path) {}
}

/// A whole number, or a time in whole seconds, from this one on. A number that its type cannot hold becomes the type's largest.
#[derive(Debug, Clone, Copy)]
pub struct AtLeast(pub u64);

impl AtLeast {
    fn described(self) -> String {
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
                self.described()
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
        self.described()
    }
}

/// Yes or no.
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

/// One word out of a few, each with its meaning.
#[derive(Debug, Clone, Copy)]
pub struct OneOf<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> OneOf<T> {
    /// The meaning of a word.
    ///
    /// # Errors
    ///
    /// Lists the known words.
    pub fn meaning(&self, given: &Given) -> Result<T, Expected> {
        self.of_word(&given.text().unwrap_or_default()).ok_or_else(|| match self.0 {
            [(one, _)] => format!("`{one}`"),
            _ => format!("one of {}", self.words()),
        })
    }

    /// The meaning of a word, if it is one of them; white space around it does not count.
    pub fn of_word(&self, word: &str) -> Option<T> {
        self.0.iter().find(|(known, _)| *known == word.trim()).map(|(_, value)| *value)
    }

    /// The word for a value; empty if no word means it.
    pub fn word(&self, value: T) -> &'static str {
        self.0.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
    }

    fn words(&self) -> String {
        self.0.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    }
}

impl<T: Copy + PartialEq> Kind<T> for OneOf<T> {
    fn read(&self, given: &Given) -> Result<T, Expected> {
        self.meaning(given)
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
        self.meaning(given).map(Some)
    }

    fn show(&self, value: &Option<T>) -> Value {
        json!(value.map(|value| self.word(value)))
    }

    fn accepts(&self) -> String {
        self.words()
    }
}

/// A text; an empty one counts as not set.
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

/// The path of a file; an empty one counts as not set.
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

/// Names, each of which has to fit; `*` means all.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// Whether a name fits.
    pub fits: fn(&str) -> bool,
    /// The names that are accepted, as the end of "… must be …".
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
