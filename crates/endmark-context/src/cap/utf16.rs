//! Decodes UTF-16 that begins with a byte order mark, in chunks.

/// A decoder of UTF-16. It buffers at most three bytes.
#[derive(Debug)]
pub(super) struct Utf16Decoder {
    is_little_endian: bool,
    is_after_mark: bool,
    pending_byte: Option<u8>,
    pending_surrogate: Option<u16>,
}

impl Utf16Decoder {
    /// Returns a decoder if the value begins with a byte order mark of UTF-16. Otherwise returns `None`.
    pub(super) fn from_mark(beginning: &[u8]) -> Option<Self> {
        let is_little_endian = match beginning {
            // UTF-32 has a byte order mark with the same first bytes.
            [0xFF, 0xFE, 0, 0, ..] => return None,
            [0xFF, 0xFE, ..] => true,
            [0xFE, 0xFF, ..] => false,
            _ => return None,
        };
        Some(Self { is_little_endian, is_after_mark: false, pending_byte: None, pending_surrogate: None })
    }

    /// Decodes the next chunk. Replaces invalid units by U+FFFD.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> String {
        let mut units: Vec<u16> = self.pending_surrogate.take().into_iter().collect();
        for byte in bytes {
            let Some(first) = self.pending_byte.take() else {
                self.pending_byte = Some(*byte);
                continue;
            };
            let pair = [first, *byte];
            let unit =
                if self.is_little_endian { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) };
            if std::mem::replace(&mut self.is_after_mark, true) {
                units.push(unit);
            }
        }
        // The second half of the surrogate pair may follow in the next chunk.
        self.pending_surrogate = units.pop_if(|unit| (0xD800..0xDC00).contains(unit));
        String::from_utf16_lossy(&units)
    }

    /// Returns U+FFFD if the value ended inside a character, otherwise an empty text.
    pub(super) fn finish(&mut self) -> String {
        let is_left = self.pending_byte.take().is_some() | self.pending_surrogate.take().is_some();
        if is_left { "\u{FFFD}".to_owned() } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_any_size_decode_to_the_same_text() {
        let text = "dépôt 🙂 漢\r\n".repeat(9);
        for is_little_endian in [true, false] {
            let to_bytes = |unit: u16| if is_little_endian { unit.to_le_bytes() } else { unit.to_be_bytes() };
            let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
            let bytes: Vec<u8> = units.flat_map(to_bytes).collect();
            for size in [1, 2, 3, 7, 1_000] {
                let mut utf16 = Utf16Decoder::from_mark(&bytes).unwrap();
                let mut decoded: String = bytes.chunks(size).map(|chunk| utf16.decode(chunk)).collect();
                decoded.push_str(&utf16.finish());
                assert_eq!(decoded, text, "{size}");
            }
            let mut utf16 = Utf16Decoder::from_mark(&bytes).unwrap();
            let cut = utf16.decode(&bytes[..15]) + &utf16.finish();
            assert_eq!(cut, "dépôt \u{FFFD}");
        }
        assert!(
            Utf16Decoder::from_mark(b"\xFF\xFE\0\0a\0\0\0").is_none()
                && Utf16Decoder::from_mark(b"a").is_none()
        );
    }
}
