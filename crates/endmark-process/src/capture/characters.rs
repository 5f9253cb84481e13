//! Counts the characters of bytes that arrive in arbitrary pieces.

/// Counts the characters of a stream. Invalid UTF-8 counts as its replacement characters.
#[derive(Debug, Default)]
pub(super) struct Characters {
    total: u64,
    invalid: u64,
    /// An incomplete character: at most three bytes.
    begun: Vec<u8>,
}

impl Characters {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.begun.is_empty() {
            let Some((next, after)) = rest.split_first() else { return };
            self.begun.push(*next);
            match str::from_utf8(&self.begun) {
                Ok(_) => {
                    self.total += 1;
                    self.begun.clear();
                    rest = after;
                }
                Err(error) if error.error_len().is_none() => rest = after,
                // The last byte does not belong to the character before it, so it is examined again.
                Err(_) => {
                    self.refuse();
                    self.begun.clear();
                }
            }
        }
        while !rest.is_empty() {
            match str::from_utf8(rest) {
                Ok(valid) => {
                    self.total += super::count(valid.chars().count());
                    return;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    // This part was just found to be valid.
                    self.total += super::count(String::from_utf8_lossy(valid).chars().count());
                    let Some(length) = error.error_len() else {
                        self.begun.extend_from_slice(after);
                        return;
                    };
                    self.refuse();
                    rest = &after[length..];
                }
            }
        }
    }

    /// Returns the number of characters, and how many of them are invalid sequences.
    pub(super) fn finish(mut self) -> (u64, u64) {
        if !self.begun.is_empty() {
            self.refuse();
        }
        (self.total, self.invalid)
    }

    fn refuse(&mut self) {
        self.total += 1;
        self.invalid += 1;
    }
}
