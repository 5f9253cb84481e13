//! Encodes the position after a page as an opaque string. (EN-5)

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ErrorBody;
use crate::path::FieldPath;

/// The prefix of every cursor. It contains the product and the version.
const PREFIX: &str = "emc1_";

/// The prefix of cursors of any version.
const ANY_VERSION_PREFIX: &str = "emc";

/// The length of a checksum in bytes.
const CHECKSUM_BYTES: usize = 4;

/// The reason why a cursor cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// The text is not a cursor.
    #[error("the cursor was not made by this program")]
    NotACursor,
    /// The cursor has another version.
    #[error("the cursor is of another version of this program")]
    OtherVersion,
    /// The cursor was changed or cut.
    #[error("the cursor is damaged: it is not as it was given out")]
    Damaged,
    /// The cursor belongs to another list, or to the same list with other filters.
    #[error("the cursor belongs to another list, or to other filters")]
    OtherList,
}

impl From<CursorError> for ErrorBody {
    fn from(error: CursorError) -> Self {
        Self::new("INVALID_CURSOR", 2, error.to_string())
            .about(FieldPath::root().key("cursor"))
            .with_hint("Begin again without a cursor, and pass on `next_cursor` as it is.")
    }
}

/// Encodes the checksum of a list's name and filters, followed by the key.
pub(crate) fn encode(list: u32, key: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut content = list.to_be_bytes().to_vec();
    serde_json::to_writer(&mut content, key)?;
    let checksum = crc32fast::hash(&content);
    content.extend(checksum.to_be_bytes());
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(content)))
}

/// Returns the key in a cursor of this list.
pub(crate) fn decode<K: DeserializeOwned>(list: u32, cursor: &str) -> Result<K, CursorError> {
    let (of, key) = decode_parts(cursor)?;
    if of != list {
        return Err(CursorError::OtherList);
    }
    // The checksum is correct, so the cursor belongs to a list with this name but with another type of keys.
    serde_json::from_slice(&key).map_err(|_| CursorError::OtherList)
}

/// Returns whether a text is a cursor. A cursor must not be shortened.
pub(crate) fn is_cursor(text: &str) -> bool {
    text.starts_with(PREFIX) && decode_parts(text).is_ok()
}

/// Decodes the list's checksum and the key.
fn decode_parts(cursor: &str) -> Result<(u32, Vec<u8>), CursorError> {
    let Some(encoded) = cursor.strip_prefix(PREFIX) else {
        let version = cursor.strip_prefix(ANY_VERSION_PREFIX).and_then(|rest| rest.split_once('_'));
        let is_ours = version.is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        return Err(if is_ours { CursorError::OtherVersion } else { CursorError::NotACursor });
    };
    let mut content = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| CursorError::Damaged)?;
    let split = content.len().checked_sub(CHECKSUM_BYTES).ok_or(CursorError::Damaged)?;
    let checksum = content.split_off(split);
    if crc32fast::hash(&content).to_be_bytes() != checksum[..] || content.len() < CHECKSUM_BYTES {
        return Err(CursorError::Damaged);
    }
    let key = content.split_off(CHECKSUM_BYTES);
    let list = content.try_into().map(u32::from_be_bytes).map_err(|_| CursorError::Damaged)?;
    Ok((list, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cursor_fault_has_its_own_error() {
        let cursor = encode(7, &("2026", 3)).unwrap();
        assert_eq!(decode::<(String, u64)>(7, &cursor), Ok(("2026".to_owned(), 3)));
        let wrong = |list, cursor: &str| decode::<(String, u64)>(list, cursor).unwrap_err();
        assert_eq!(wrong(8, &cursor), CursorError::OtherList);
        assert_eq!(wrong(7, &cursor[..cursor.len() - 1]), CursorError::Damaged);
        assert_eq!(wrong(7, PREFIX), CursorError::Damaged);
        assert_eq!(wrong(7, &cursor.replacen("emc1_", "emc2_", 1)), CursorError::OtherVersion);
        assert_eq!(wrong(7, "CAUQAA"), CursorError::NotACursor);
        assert_eq!(wrong(7, ""), CursorError::NotACursor);
        assert_eq!(decode::<bool>(7, &cursor), Err(CursorError::OtherList));
    }

    #[test]
    fn any_changed_character_is_detected() {
        let cursor = encode(7, &"key").unwrap();
        for at in PREFIX.len()..cursor.len() {
            let mut changed = cursor.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(decode::<String>(7, &changed), Err(CursorError::Damaged), "{changed}");
        }
    }
}
