//! The comparison of what was received with what an answer repeats of it.

/// A proof compares this many signs at most, and a few times the answer's length. No text whose places differ needs as many;
/// one that repeats itself would need the square of its length.
const MAX_COMPARED_SIGNS: usize = 1 << 19;

#[cfg(test)]
thread_local! {
    /// How many signs this thread has compared, for tests of the work that a text costs.
    pub(in crate::resume) static COMPARED_SIGNS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How far an answer goes along with what was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    /// To its end, up to this byte of the answer.
    ToTheEnd(usize),
    /// As far as the answer goes.
    SoFar,
    No,
    /// Too many signs were compared already.
    Unknown,
}

/// Compares an answer with the received text from one place after the other, for a bounded number of signs.
#[derive(Debug)]
pub(super) struct Walker {
    /// Whether quotation marks, dashes and signs of emphasis are compared alike.
    is_loose: bool,
    signs_left: usize,
}

impl Walker {
    pub(super) fn new(is_loose: bool, answer: &str) -> Self {
        Self { is_loose, signs_left: MAX_COMPARED_SIGNS.saturating_add(answer.len().saturating_mul(4)) }
    }

    /// How far `answer` goes along with `expected`. Where it is read loosely, signs of emphasis may be missing or added in the
    /// first `loose` bytes.
    pub(super) fn walk(&mut self, expected: &str, loose: usize, answer: &str) -> Along {
        let mut left = expected.char_indices().peekable();
        let mut right = answer.char_indices().peekable();
        loop {
            let Some(signs_left) = self.signs_left.checked_sub(1) else { return Along::Unknown };
            self.signs_left = signs_left;
            #[cfg(test)]
            COMPARED_SIGNS.set(COMPARED_SIGNS.get() + 1);
            let Some((at, wanted)) = left.peek().copied() else {
                return Along::ToTheEnd(right.peek().map_or(answer.len(), |(at, _)| *at));
            };
            let Some((_, given)) = right.peek().copied() else { return Along::SoFar };
            let may_differ = self.is_loose && at < loose;
            if wanted == given || self.is_loose && alike(wanted) == alike(given) {
                left.next();
                right.next();
            } else if wanted.is_whitespace() || may_differ && is_emphasis(wanted) {
                left.next();
            } else if given.is_whitespace() || may_differ && is_emphasis(given) {
                right.next();
            } else {
                return Along::No;
            }
        }
    }
}

/// Signs that models write one for the other.
fn alike(sign: char) -> char {
    match sign {
        '‘' | '’' | '‚' | '′' => '\'',
        '“' | '”' | '„' | '″' => '"',
        '‐' | '‑' | '–' | '—' | '−' => '-',
        '\u{a0}' => ' ',
        other => other,
    }
}

fn is_emphasis(sign: char) -> bool {
    matches!(sign, '*' | '_' | '`' | '#' | '>')
}
