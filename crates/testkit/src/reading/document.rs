//! The document that the model knows, and its continuation in a given style.

use std::ops::Range;

use super::behaviour::{ContinuationStart, ContinuationStyle, SeamDeviation};

/// A text, and the byte at which the model's first reply is cut.
pub(super) struct Document {
    pub(super) text: String,
    pub(super) cut: usize,
}

impl Document {
    pub(super) fn new(text: &str, cut: usize) -> Self {
        Self { text: text.to_owned(), cut }
    }

    /// Returns a continuation. The tuple contains the start of the anchor, the end of the shown part, and the
    /// end of the part that the model has written.
    pub(super) fn continuation(
        &self,
        style: &ContinuationStyle,
        (anchor, shown, reached): (usize, usize, usize),
    ) -> String {
        let rewritten;
        let text = match style.seam {
            SeamDeviation::OtherWord => {
                rewritten = self.with_another_word();
                &rewritten
            }
            SeamDeviation::NoDeviation | SeamDeviation::MissingSpace | SeamDeviation::AddedSpace(_) => {
                &self.text
            }
        };
        // A rewritten word does not change the position of the text before it.
        let (start, seam) = match style.start {
            ContinuationStart::Anchor => (anchor, shown),
            ContinuationStart::Shown => (shown, shown),
            ContinuationStart::Cut => (reached, reached),
            ContinuationStart::Document => (0, shown),
        };
        let last_common =
            if style.seam == SeamDeviation::OtherWord { self.word_at_cut().start } else { text.len() };
        let (start, seam) = (start.min(last_common), seam.min(last_common));
        let (repeated, rest) = (&text[start..seam], &text[seam..]);
        let body = match style.seam {
            SeamDeviation::NoDeviation | SeamDeviation::OtherWord => format!("{repeated}{rest}"),
            SeamDeviation::MissingSpace => format!("{}{}", repeated.trim_end(), rest.trim_start()),
            SeamDeviation::AddedSpace(space) => format!("{repeated}{space}{rest}"),
        };
        let fenced = match style.fence {
            None => body,
            Some(language) => format!("```{language}\n{}\n```", body.trim_end_matches('\n')),
        };
        format!("{}{fenced}{}", style.prefix, style.suffix)
    }

    /// Returns the text with another word at the cut.
    pub(super) fn with_another_word(&self) -> String {
        let word = self.word_at_cut();
        let own = &self.text[word.clone()];
        let begins = |word: &str| word.chars().next();
        let words = self.text.split(|character: char| !character.is_alphabetic());
        let other = words
            .filter(|other| other.chars().count() > 2 && begins(other) != begins(own))
            .max_by_key(|other| other.len());
        format!("{}{}{}", &self.text[..word.start], other.unwrap_or("otherwise"), &self.text[word.end..])
    }

    /// Returns the range of the word at the cut, or of the next word if the cut is between words.
    fn word_at_cut(&self) -> Range<usize> {
        let is_word = |character: &char| character.is_alphanumeric();
        let length = |characters: &mut dyn Iterator<Item = char>| -> usize {
            characters.take_while(is_word).map(char::len_utf8).sum()
        };
        let (before, behind) = self.text.split_at(self.cut);
        let start = self.cut - length(&mut before.chars().rev());
        let skipped = if start < self.cut { 0 } else { behind.find(char::is_alphanumeric).unwrap_or(0) };
        let end = self.cut + skipped + length(&mut behind[skipped..].chars());
        (if start < self.cut { start } else { self.cut + skipped })..end
    }

    /// Returns the start of the last `bytes` bytes, or the nearest earlier character boundary.
    pub(super) fn tail_start(&self, bytes: usize) -> usize {
        let mut at = self.text.len().saturating_sub(bytes);
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn continuation(cut: usize, style: &ContinuationStyle) -> String {
        let text = "A first line.\nThe quick fox jumps.\n";
        Document::new(text, cut).continuation(style, (14, 18, cut))
    }

    #[test]
    fn a_continuation_begins_at_the_position_of_its_style() {
        let from =
            |begins| continuation(22, &ContinuationStyle { start: begins, ..ContinuationStyle::default() });
        assert_eq!(from(ContinuationStart::Anchor), "The quick fox jumps.\n");
        assert_eq!(from(ContinuationStart::Shown), "quick fox jumps.\n");
        assert_eq!(from(ContinuationStart::Cut), "k fox jumps.\n");
        assert!(from(ContinuationStart::Document).starts_with("A first"));
    }

    #[test]
    fn the_seam_and_its_surroundings_follow_the_style() {
        let with = |seam, begins| {
            continuation(22, &ContinuationStyle { start: begins, seam, ..ContinuationStyle::default() })
        };
        assert_eq!(with(SeamDeviation::MissingSpace, ContinuationStart::Anchor), "Thequick fox jumps.\n");
        assert_eq!(with(SeamDeviation::AddedSpace("\n"), ContinuationStart::Shown), "\nquick fox jumps.\n");
        assert_eq!(with(SeamDeviation::OtherWord, ContinuationStart::Shown), "jumps fox jumps.\n");
        assert_eq!(with(SeamDeviation::OtherWord, ContinuationStart::Cut), "jumps fox jumps.\n");
        let style = ContinuationStyle {
            prefix: "Here:\n",
            suffix: "\nDone.",
            fence: Some("text"),
            ..ContinuationStyle::default()
        };
        assert_eq!(continuation(22, &style), "Here:\n```text\nquick fox jumps.\n```\nDone.");
    }

    #[test]
    fn the_word_after_a_cut_between_words_is_replaced() {
        let document = Document::new("one two three", 4);
        assert_eq!(document.with_another_word(), "one one three");
        let document = Document::new("one two three", 3);
        assert_eq!(document.with_another_word(), "three two three");
    }
}
