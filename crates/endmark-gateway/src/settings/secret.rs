//! Credentials, as a type that cannot be printed.

use std::fmt;

use zeroize::Zeroizing;

/// A credential that can be sent but not printed. Its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a credential so that no formatter prints it.
    pub fn new(value: String) -> Self {
        Self(Zeroizing::new(value))
    }

    /// Returns the credential itself, for the code that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}
