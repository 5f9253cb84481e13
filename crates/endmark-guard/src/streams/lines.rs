//! Splits a byte stream into lines with bounded memory.

/// The maximum length of a line in bytes. One line may contain a whole tool result. Longer lines are skipped
/// and counted.
const MAX_LINE_BYTES: usize = 32 << 20;

/// Collects the bytes of a stream into lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    partial_line: Vec<u8>,
    /// Whether the rest of the current line is skipped, because the line is too long.
    is_skipping: bool,
    skipped_lines: u64,
    /// Whether all lines are dropped.
    is_ignored: bool,
}

impl LineSplitter {
    /// Creates a collector that drops all lines.
    pub(super) fn ignoring() -> Self {
        Self { is_ignored: true, ..Self::default() }
    }

    /// Adds the next bytes, and forwards each complete line without its newline.
    pub(super) fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        if self.is_ignored {
            return;
        }
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (last, after) = rest.split_at(end);
            rest = &after[1..];
            if self.partial_line.is_empty() && !self.is_skipping {
                line(last);
                continue;
            }
            self.keep(last);
            self.end(&mut line);
        }
        self.keep(rest);
    }

    /// Forwards a last line without a newline, and returns the number of lines that were too long.
    pub(super) fn finish(&mut self, mut line: impl FnMut(&[u8])) -> u64 {
        if !self.partial_line.is_empty() || self.is_skipping {
            self.end(&mut line);
        }
        self.skipped_lines
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.partial_line.len() + bytes.len() > MAX_LINE_BYTES {
            self.is_skipping = true;
            self.partial_line = Vec::new();
        }
        if !self.is_skipping {
            self.partial_line.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, line: &mut impl FnMut(&[u8])) {
        if std::mem::take(&mut self.is_skipping) {
            self.skipped_lines += 1;
        } else {
            line(&self.partial_line);
        }
        self.partial_line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect_lines(pieces: &[&[u8]]) -> (Vec<String>, u64) {
        let (mut lines, mut found) = (LineSplitter::default(), Vec::new());
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
        let piece = vec![b'x'; MAX_LINE_BYTES / 2 + 1];
        assert_eq!(collect_lines(&[&piece, &piece, &piece, b"\nnext\n"]), (vec!["next".to_owned()], 1));
    }
}
