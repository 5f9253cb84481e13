//! Serialises the missing part of a literal as text.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

const LITERALS: [&[u8]; 3] = [b"true", b"false", b"null"];

pub(super) fn serialize<S: Serializer>(missing: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    String::from_utf8_lossy(missing).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static [u8], D::Error> {
    let missing = String::deserialize(deserializer)?;
    LITERALS
        .iter()
        .find_map(|literal| {
            literal.ends_with(missing.as_bytes()).then(|| &literal[literal.len() - missing.len()..])
        })
        .ok_or_else(|| D::Error::custom("no literal ends so"))
}
