//! Splits a byte stream into lines with bounded memory.

/// The maximum length of a line in bytes. A whole tool result may be in one. Longer lines are skipped and counted.
const LINE_LIMIT_BYTES: usize = 32 << 20;

/// Collects lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    /// Whether the current line is too long.
    is_skipping: bool,
    too_long: u64,
    /// Whether the lines are not needed.
    is_ignored: bool,
}

impl Lines {
    /// Creates a collector that drops all lines.
    pub(super) fn ignoring() -> Self {
        Self { is_ignored: true, ..Self::default() }
    }

    /// Adds the next bytes and forwards each line that ends in them, without its newline.
    pub(super) fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        if self.is_ignored {
            return;
        }
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (last, after) = rest.split_at(end);
            rest = &after[1..];
            if self.begun.is_empty() && !self.is_skipping {
                line(last);
                continue;
            }
            self.keep(last);
            self.end(&mut line);
        }
        self.keep(rest);
    }

    /// Passes on a last line without a newline, and returns the number of lines that were too long.
    pub(super) fn finish(&mut self, mut line: impl FnMut(&[u8])) -> u64 {
        if !self.begun.is_empty() || self.is_skipping {
            self.end(&mut line);
        }
        self.too_long
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.begun.len() + bytes.len() > LINE_LIMIT_BYTES {
            self.is_skipping = true;
            self.begun = Vec::new();
        }
        if !self.is_skipping {
            self.begun.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, line: &mut impl FnMut(&[u8])) {
        if std::mem::take(&mut self.is_skipping) {
            self.too_long += 1;
        } else {
            line(&self.begun);
        }
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect_lines(pieces: &[&[u8]]) -> (Vec<String>, u64) {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
        for piece in pieces {
            lines.push(piece, |line| found.push(text(line)));
        }
        let too_long = lines.finish(|line| found.push(text(line)));
        (found, too_long)
    }

    #[test]
    fn lines_do_not_depend_on_the_chunks() {
        let text = b"one\n\ntwo\nlast";
        let whole = collect_lines(&[text]);
        assert_eq!(whole, (["one", "", "two", "last"].map(str::to_owned).to_vec(), 0));
        for at in 0..text.len() {
            assert_eq!(collect_lines(&[&text[..at], &text[at..]]), whole);
        }
    }

    #[test]
    fn an_overlong_line_is_skipped_and_the_next_is_read() {
        let piece = vec![b'x'; LINE_LIMIT_BYTES / 2 + 1];
        assert_eq!(collect_lines(&[&piece, &piece, &piece, b"\nnext\n"]), (vec!["next".to_owned()], 1));
    }
}
