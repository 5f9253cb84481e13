//! The outline of a code file. Its comments are the text for people.

use super::comment::find_comment;
use super::outline::{Block, BlockKind, Outline};

/// Returns an outline with each comment line as a separate block, and the remaining lines as code blocks.
pub(super) fn outline(text: &str, body: usize) -> Outline {
    let mut outline = Outline::default();
    let mut at = body;
    for line in text[body..].split_inclusive('\n') {
        let range = at..at + line.trim_end().len();
        at += line.len();
        if range.is_empty() {
            continue;
        }
        let comment = find_comment(text, range.clone()).filter(|comment| comment.is_whole_line);
        let (kind, range) = match comment {
            Some(comment) => (BlockKind::Comment, comment.content),
            None => (BlockKind::Code { is_closed: true, is_fenced: false }, range),
        };
        outline.push(Block { kind, range, is_quoted: false });
    }
    outline
}
