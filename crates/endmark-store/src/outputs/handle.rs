//! Handles of kept outputs.

use std::fmt;

use crate::fingerprint::sha256_hex;

/// Number of random bytes of a handle: 128 bits.
const HANDLE_RANDOM_BYTES: usize = 16;
/// First character of every handle.
const HANDLE_PREFIX: char = 'h';

/// The handle of a kept output: `h` and 32 hexadecimal digits. It cannot be guessed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle(String);

impl Handle {
    /// Returns a new random handle. If the system provides no random bytes, the error is its message.
    pub fn random() -> Result<Self, String> {
        let mut bytes = [0_u8; HANDLE_RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        let digits =
            |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0'));
        Ok(Self(std::iter::once(HANDLE_PREFIX).chain(bytes.into_iter().flat_map(digits)).collect()))
    }

    /// Returns the handle for an owner's value, which is the same on every gateway. `kind` separates the
    /// names of different kinds of values. Only the owner can read the value.
    pub fn derive(kind: &str, owner: &str, name: &str) -> Self {
        let digest = sha256_hex(format!("{kind}\n{owner}\n{name}").as_bytes());
        Self(std::iter::once(HANDLE_PREFIX).chain(digest.chars().take(2 * HANDLE_RANDOM_BYTES)).collect())
    }

    /// Parses a handle. Returns `None` if the text is not a handle.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(HANDLE_PREFIX)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (digits.len() == 2 * HANDLE_RANDOM_BYTES && digits.bytes().all(is_digit))
            .then(|| Self(text.to_owned()))
    }

    /// Returns the handle as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_round_trip_and_are_unique() {
        let (one, other) = (Handle::random().unwrap(), Handle::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(Handle::parse(one.as_str()), Some(one.clone()));
        let derived = Handle::derive("item", "client:a", "n");
        assert_eq!(Handle::parse(derived.as_str()), Some(derived.clone()));
        assert_ne!(Handle::derive("item", "client:b", "n"), derived);
        for text in ["", "h", "h0123", &one.as_str()[1..], &format!("{one}0"), &one.as_str().to_uppercase()] {
            assert_eq!(Handle::parse(text), None, "{text}");
        }
    }
}
