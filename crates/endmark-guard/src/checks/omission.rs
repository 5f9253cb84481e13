//! Checks whether a comment replaces code.

use super::surroundings::CommentWords;
use crate::artifact::{Artifact, ArtifactKind, BlockKind, Comment, find_comment};
use crate::finding::{Check, UnplacedFinding};
use crate::phrases::{Phrase, PhraseScope};

const WHY: &str = "this replaces code that is missing";
const FIX: &str = "Write the code that is left out here in full.";

/// How strongly the dots or brackets of a comment indicate an omission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EllipsisStrength {
    None,
    /// Dots at its end or brackets around it. They may have other reasons.
    Weak,
    /// Dots at its beginning.
    Strong,
}

/// Checks the comment around an anchor.
pub(crate) fn check_comment(
    artifact: &Artifact<'_>,
    phrase: &Phrase,
    remark: &CommentWords,
    at: usize,
) -> Option<UnplacedFinding> {
    let (text, outline, comment) = (artifact.text(), artifact.outline(), &remark.comment);
    if !phrase.covers_all(text, &remark.words) {
        return None;
    }
    let block = outline.block_at(at).map(|(_, block)| block);
    if block.is_some_and(|block| block.is_quoted) || outline.is_in_span(at) {
        return None;
    }
    let ellipsis = ellipsis(&text[comment.content.clone()]);
    let is_code = artifact.kind() == ArtifactKind::Code
        || block.is_some_and(|block| matches!(block.kind, BlockKind::Code { .. }));
    // Outside code, `#` begins a heading and `-` begins a list item.
    if !is_code && !comment.is_certain && ellipsis != EllipsisStrength::Strong {
        return None;
    }
    let is_without_code = || has_no_code_after(text, comment);
    let is_omission = match phrase.scope {
        _ if !comment.is_whole_line => ellipsis == EllipsisStrength::Strong,
        PhraseScope::Comment => ellipsis == EllipsisStrength::Strong || !has_neighbours(text, comment),
        PhraseScope::Dotted => ellipsis == EllipsisStrength::Strong,
        PhraseScope::Elliptical => {
            ellipsis == EllipsisStrength::Strong || (ellipsis == EllipsisStrength::Weak && is_without_code())
        }
        PhraseScope::WithoutCodeAfter => is_without_code(),
        PhraseScope::Code => artifact.kind() == ArtifactKind::Code && is_without_code(),
        _ => false,
    };
    let line = &text[comment.line.clone()];
    let indented = comment.line.start + line.len() - line.trim_start().len();
    let start = if comment.is_whole_line { indented } else { comment.content.start };
    is_omission.then(|| UnplacedFinding::new(Check::Omission, start..comment.line.end, WHY, FIX))
}

fn ellipsis(content: &str) -> EllipsisStrength {
    let brackets = [('(', ')'), ('[', ']'), ('<', '>'), ('（', '）')];
    let is_bracketed =
        brackets.iter().any(|(open, close)| content.starts_with(*open) && content.ends_with(*close));
    let bare = content.trim_start_matches(['(', '[', '<', '（', ' ']);
    let end = content.trim_end_matches([')', ']', '>', '）', ' ', '.', '…']);
    let ends = content[end.len()..].contains("...") || content[end.len()..].contains('…');
    if bare.starts_with("...") || bare.starts_with('…') {
        EllipsisStrength::Strong
    } else if ends || is_bracketed {
        EllipsisStrength::Weak
    } else {
        EllipsisStrength::None
    }
}

/// Returns whether the comment cannot describe code after it: the next line is missing, blank, closes a block
/// or is indented less.
fn has_no_code_after(text: &str, comment: &Comment) -> bool {
    if has_neighbours(text, comment) {
        return false;
    }
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let own = indentation(&text[comment.line.clone()]);
    let Some(next) = text[comment.line.end..].lines().nth(1) else { return true };
    let code = next.trim();
    let closes = ["</", "end", "...", "…", "pass", "return None", "raise NotImplementedError"];
    code.is_empty()
        || code.starts_with(['}', ')', ']', '`', '~'])
        || closes.iter().any(|begin| code.starts_with(begin))
        || indentation(next) < own
}

/// Returns whether neighbouring lines are comments, too. A comment of several lines is prose, and each line
/// is only a part of it.
fn has_neighbours(text: &str, comment: &Comment) -> bool {
    let is_comment = |line: &str| {
        let is_dots = line.trim_start().starts_with(['.', '…', '(', '[', '<']);
        !is_dots && find_comment(line, 0..line.len()).is_some_and(|comment| comment.is_whole_line)
    };
    let before = text[..comment.line.start].strip_suffix('\n').unwrap_or_default();
    let above = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
    let below = text[comment.line.end..].lines().nth(1).unwrap_or_default();
    is_comment(above) || is_comment(below)
}
