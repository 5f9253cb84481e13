//! Detects a continuation that repeats itself endlessly (PC-9).

/// A text loops if it ends with this many repetitions of one part. Lists and tables may repeat a line a few times.
const MIN_REPETITIONS: usize = 6;
/// Minimum total size of the repeated parts in bytes. A rule, a row of zeros or an indentation is shorter.
const MIN_LOOP_BYTES: usize = 1_024;
/// Number of bytes at the end that are examined. The longest detectable part is a sixth of this.
const WINDOW_BYTES: usize = 8 * 1_024;
/// Number of new bytes before the end is examined again.
const STEP_BYTES: usize = 512;

/// Detects that a growing text repeats one part endlessly. The cost is linear in the text.
///
/// ```
/// use endmark_recovery::LoopDetector;
/// let mut detector = LoopDetector::default();
/// let mut text = "The harbour was quiet.".to_owned();
/// assert!(!detector.is_looping(&text));
/// text.push_str(&" And the sea was grey.".repeat(100));
/// assert!(detector.is_looping(&text));
/// ```
#[derive(Debug, Clone, Default)]
pub struct LoopDetector {
    checked_bytes: usize,
}

impl LoopDetector {
    /// Checks all text received so far. Each call must pass the text of the last call and what arrived since.
    pub fn is_looping(&mut self, text: &str) -> bool {
        if text.len() < self.checked_bytes.saturating_add(STEP_BYTES) {
            return false;
        }
        self.checked_bytes = text.len();
        ends_in_a_loop(text)
    }
}

/// Whether a text ends with many repetitions of one part.
pub fn ends_in_a_loop(text: &str) -> bool {
    let bytes = text.as_bytes();
    let backwards: Vec<u8> = bytes.iter().rev().take(WINDOW_BYTES).copied().collect();
    // For each prefix, the length of its longest border (Knuth, Morris, Pratt). The length without the border
    // is the shortest period.
    let mut borders = vec![0; backwards.len()];
    for end in 1..backwards.len() {
        let mut border = borders[end - 1];
        while border > 0 && backwards[end] != backwards[border] {
            border = borders[border - 1];
        }
        borders[end] = border + usize::from(backwards[end] == backwards[border]);
        let (length, period) = (end + 1, end + 1 - borders[end]);
        if length >= MIN_LOOP_BYTES && period * MIN_REPETITIONS <= length {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a loop is detected while a text arrives a few bytes at a time.
    fn detects_loop(text: &str) -> bool {
        let mut detector = LoopDetector::default();
        (0..=text.len()).step_by(7).any(|end| text.get(..end).is_some_and(|text| detector.is_looping(text)))
    }

    #[test]
    fn any_repeated_part_is_a_loop() {
        let paragraph = "The boats came in before the tide, and nobody was there to see them. ".repeat(9);
        for part in ["\n", "0, ", "und ", "海は静かだ。", r#"{"id": 1, "name": "x"}, "#, &paragraph] {
            let looping = format!("Before it: {}", part.repeat(12_000 / part.len()));
            assert!(detects_loop(&looping), "{part:.40}");
        }
    }

    #[test]
    fn few_repetitions_are_not_a_loop() {
        let rows: String = (0..900)
            .flat_map(|row| ["| ".to_owned(), row.to_string(), " | yes | no |\n".to_owned()])
            .collect();
        let zeros = format!("[{}1]", "0, ".repeat(200));
        let thrice = "A refrain of a song that has three verses and this refrain. ".repeat(5) + &rows;
        for text in [&rows, &zeros, &thrice, &"-".repeat(900)] {
            assert!(!detects_loop(text), "{text:.40}");
        }
    }
}
