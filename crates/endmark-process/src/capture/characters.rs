//! Counts the characters of bytes that arrive in arbitrary pieces.

/// Counts the characters of a stream. For invalid UTF-8, counts the replacement characters.
#[derive(Debug, Default)]
pub(super) struct CharacterCounter {
    total: u64,
    invalid: u64,
    /// The bytes of an incomplete character at the end, at most three.
    incomplete: Vec<u8>,
}

impl CharacterCounter {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.incomplete.is_empty() {
            let Some((next, after)) = rest.split_first() else { return };
            self.incomplete.push(*next);
            match str::from_utf8(&self.incomplete) {
                Ok(_) => {
                    self.total += 1;
                    self.incomplete.clear();
                    rest = after;
                }
                Err(error) if error.error_len().is_none() => rest = after,
                // The last byte does not belong to the character before it, so examine it again.
                Err(_) => {
                    self.count_invalid();
                    self.incomplete.clear();
                }
            }
        }
        while !rest.is_empty() {
            match str::from_utf8(rest) {
                Ok(valid) => {
                    self.total += super::as_u64(valid.chars().count());
                    return;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    // This part was already found to be valid, so nothing is replaced.
                    self.total += super::as_u64(String::from_utf8_lossy(valid).chars().count());
                    let Some(length) = error.error_len() else {
                        self.incomplete.extend_from_slice(after);
                        return;
                    };
                    self.count_invalid();
                    rest = &after[length..];
                }
            }
        }
    }

    /// Returns the number of characters, and the number of invalid sequences.
    pub(super) fn finish(mut self) -> (u64, u64) {
        if !self.incomplete.is_empty() {
            self.count_invalid();
        }
        (self.total, self.invalid)
    }

    fn count_invalid(&mut self) {
        self.total += 1;
        self.invalid += 1;
    }
}
