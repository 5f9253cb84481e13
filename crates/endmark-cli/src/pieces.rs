//! Joins pieces of a text that may be cut inside a character.

/// An invalid UTF-8 byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotUtf8 {
    /// Index of the piece, from 0.
    pub(crate) piece: usize,
    /// Byte offset in that piece.
    pub(crate) at: usize,
}

/// Reads pieces as text.
///
/// A character that is cut between two pieces becomes part of the second piece. Incomplete characters that the next
/// piece does not continue are dropped. Also returns the number of dropped bytes.
pub(crate) fn decode_pieces(pieces: Vec<Vec<u8>>) -> Result<(Vec<String>, usize), NotUtf8> {
    let mut texts = Vec::with_capacity(pieces.len());
    let mut dropped_bytes = 0;
    let mut carried = Vec::new();
    for (index, mut piece) in pieces.into_iter().enumerate() {
        let moved = carried.len();
        if piece.first().is_some_and(|byte| is_continuation(*byte)) {
            piece.splice(..0, carried.drain(..));
        }
        dropped_bytes += carried.len();
        carried.clear();
        if let Err(error) = std::str::from_utf8(&piece) {
            if error.error_len().is_some() {
                return Err(NotUtf8 { piece: index, at: error.valid_up_to().saturating_sub(moved) });
            }
            carried = piece.split_off(error.valid_up_to());
        }
        texts.push(String::from_utf8(piece).map_err(|_| NotUtf8 { piece: index, at: 0 })?);
    }
    Ok((texts, dropped_bytes + carried.len()))
}

/// Whether a byte can only occur inside a character.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_split_between_pieces_is_joined() {
        let whole = "añb".as_bytes();
        assert_eq!(
            decode_pieces(vec![whole[..2].into(), whole[2..].into()]),
            Ok((vec!["a".into(), "ñb".into()], 0))
        );
        assert_eq!(
            decode_pieces(vec![whole[..2].into(), b"nb".into()]),
            Ok((vec!["a".into(), "nb".into()], 1))
        );
        assert_eq!(decode_pieces(vec![whole[..2].into()]), Ok((vec!["a".into()], 1)));
        assert_eq!(decode_pieces(vec![b"ok".into(), b"a\xff".into()]), Err(NotUtf8 { piece: 1, at: 1 }));
    }
}
