//! The outline of a file of code: its comments are what people read in it.

use super::comment::comment_in;
use super::outline::{Block, BlockKind, Outline};

/// Every line that is a comment as a block of its own, and the rest as blocks of code.
pub(super) fn outline(text: &str, body: usize) -> Outline {
    let mut outline = Outline::default();
    let mut at = body;
    for line in text[body..].split_inclusive('\n') {
        let range = at..at + line.trim_end().len();
        at += line.len();
        if range.is_empty() {
            continue;
        }
        let comment = comment_in(text, range.clone()).filter(|comment| comment.is_all);
        let (kind, range) = match comment {
            Some(comment) => (BlockKind::Comment, comment.content),
            None => (BlockKind::Code { is_closed: true, is_fenced: false }, range),
        };
        outline.push(Block { kind, range, is_quoted: false });
    }
    outline
}
