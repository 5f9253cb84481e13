//! The sentence and the comment around an anchor, computed once for all phrases with that anchor.

use std::ops::Range;

use crate::artifact::{
    Artifact, Block, BlockKind, Comment, find_comment, is_quoted, parts_around, sentence_at,
};
use crate::phrases::{Phrase, is_about, words};

/// The maximum length of a phrase after its anchor, in bytes.
const MAX_BYTES_AFTER_ANCHOR: usize = 200;

/// The maximum length of a phrase before its anchor, in words.
const MAX_WORDS_BEFORE_ANCHOR: usize = 24;

/// A sentence by the author, not a quotation.
#[derive(Debug)]
pub(crate) struct Sentence<'a> {
    pub(crate) text: &'a str,
    pub(crate) block: &'a Block,
    /// The index of the block in the outline.
    pub(crate) block_index: usize,
    pub(crate) range: Range<usize>,
    words: Vec<Range<usize>>,
}

impl<'a> Sentence<'a> {
    /// Returns the sentence at an offset, or `None` if there is no sentence by the author.
    pub(crate) fn at_offset(artifact: &'a Artifact<'_>, at: usize) -> Option<Self> {
        let (index, block) = artifact.outline().block_at(at)?;
        let is_read = block.kind.is_text() || block.kind == BlockKind::Comment;
        if !is_read || block.is_quoted {
            return None;
        }
        let text = artifact.text();
        let range = sentence_at(text, block.range.clone(), at);
        let words = find_words(text, &range);
        Some(Self { text, block, block_index: index, range, words })
    }

    /// Returns whether an anchor at this offset is in the sentence, and enough of the sentence follows it.
    pub(crate) fn is_around(&self, at: usize) -> bool {
        let is_near = at + MAX_BYTES_AFTER_ANCHOR < self.range.end
            || self.range.end - self.range.start < 2 * MAX_BYTES_AFTER_ANCHOR;
        self.range.contains(&at) && is_near
    }

    /// Returns whether the text at an offset is quoted.
    pub(crate) fn is_quoted_at(&self, at: usize) -> bool {
        is_quoted(self.text, self.range.clone(), at)
    }

    /// Returns the match of a phrase around an offset.
    pub(crate) fn find(&self, phrase: &Phrase, at: usize) -> Option<Range<usize>> {
        let end = self.words.partition_point(|word| word.start <= at);
        let found =
            phrase.find_from(self.text, &self.words, end.saturating_sub(MAX_WORDS_BEFORE_ANCHOR)..end)?;
        let (first, last) = (self.words.get(found.start)?, self.words.get(found.end.checked_sub(1)?)?);
        Some(first.start..last.end)
    }

    /// Returns the part of the sentence around an offset that a phrase covers completely.
    pub(crate) fn find_covered_part(&self, phrase: &Phrase, at: usize) -> Option<Range<usize>> {
        parts_around(self.text, self.range.clone(), at)
            .into_iter()
            .find(|part| self.is_covered_by(phrase, part))
    }

    /// Returns whether a phrase covers a part of the sentence completely.
    pub(crate) fn is_covered_by(&self, phrase: &Phrase, part: &Range<usize>) -> bool {
        phrase.covers_all(self.text, self.part_words(part))
    }

    /// Returns the words of a part of the sentence.
    pub(crate) fn part_words(&self, part: &Range<usize>) -> &[Range<usize>] {
        let first = self.words.partition_point(|word| word.start < part.start);
        let end = self.words.partition_point(|word| word.end <= part.end);
        self.words.get(first..end).unwrap_or_default()
    }

    /// Returns whether the words before an offset show that the sentence is about the phrase, or negates it.
    pub(crate) fn is_about(&self, at: usize) -> bool {
        is_about(self.text, self.part_words(&(self.range.start..at)))
    }
}

/// Returns the words of a range, with offsets in the whole text.
pub(crate) fn find_words(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let words = words(&text[range.clone()]);
    words.into_iter().map(|word| range.start + word.start..range.start + word.end).collect()
}

/// A comment and its words.
#[derive(Debug)]
pub(crate) struct CommentWords {
    pub(crate) comment: Comment,
    pub(crate) words: Vec<Range<usize>>,
}

impl CommentWords {
    /// Returns the comment in a line, or `None` if the line has no comment.
    pub(crate) fn in_line(text: &str, line: Range<usize>) -> Option<Self> {
        let comment = find_comment(text, line)?;
        let words = find_words(text, &comment.content);
        Some(Self { comment, words })
    }
}
