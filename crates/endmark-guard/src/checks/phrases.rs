//! Finds candidates for phrases in one pass over the text, and forwards each to its check.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

use super::surroundings::{CommentWords, Sentence};
use super::{forbidden, handoff, omission, placeholder};
use crate::artifact::{Artifact, ArtifactKind};
use crate::finding::{Check, UnplacedFinding};
use crate::phrases::{BUILT_IN_PHRASES, PhraseKind, PhraseSet};

/// Detects handoffs (if they are forbidden), placeholders, omitted code and forbidden phrases.
pub(crate) fn check(artifact: &Artifact<'_>, forbidden: &PhraseSet, handoffs: bool) -> Vec<UnplacedFinding> {
    if artifact.kind() == ArtifactKind::Json {
        return Vec::new();
    }
    let mut found = find_phrases(artifact, &BUILT_IN_PHRASES, handoffs);
    found.extend(find_phrases(artifact, forbidden, true));
    drop_inner_findings(found)
}

fn find_phrases(artifact: &Artifact<'_>, bank: &PhraseSet, handoffs: bool) -> Vec<UnplacedFinding> {
    let text = artifact.text();
    let mut found: Vec<UnplacedFinding> = Vec::new();
    let mut sentence: Option<Sentence<'_>> = None;
    let mut line = AnchorLine { range: 0..0, remark: OnceCell::new() };
    // Check each phrase once per sentence or line, even if several of its anchors occur there.
    let mut tried_phrases = BTreeSet::new();
    for hit in bank.hits(text).filter(|hit| hit.position >= artifact.body_start()) {
        if !sentence.as_ref().is_some_and(|sentence| sentence.is_around(hit.position)) {
            sentence = None;
        }
        let is_new_line = line.move_to(text, hit.position);
        if is_new_line {
            tried_phrases.clear();
        }
        for (index, phrase) in hit.phrases() {
            let finding = match phrase.kind {
                PhraseKind::Omission => {
                    let Some(remark) = line.remark(text) else { continue };
                    if !remark.comment.content.contains(&hit.position) || !tried_phrases.insert(index) {
                        continue;
                    }
                    omission::check_comment(artifact, phrase, remark, hit.position)
                }
                PhraseKind::Handoff if !handoffs => None,
                sign => {
                    if sentence.is_none() {
                        sentence = Sentence::at_offset(artifact, hit.position);
                    }
                    let Some(sentence) = &sentence else { continue };
                    match sign {
                        PhraseKind::Handoff => {
                            handoff::check_sentence(artifact, phrase, sentence, hit.position)
                        }
                        PhraseKind::Placeholder => {
                            placeholder::check_sentence(artifact, phrase, sentence, hit.position)
                        }
                        _ => forbidden::check_sentence(artifact, phrase, sentence, hit.position),
                    }
                }
            };
            found.extend(finding);
        }
    }
    found
}

/// The line that contains the anchor, and its comment.
struct AnchorLine {
    range: Range<usize>,
    remark: OnceCell<Option<CommentWords>>,
}

impl AnchorLine {
    /// Moves to the line that contains an offset. Returns whether it differs from the last line.
    fn move_to(&mut self, text: &str, at: usize) -> bool {
        if self.range.contains(&at) {
            return false;
        }
        let bytes = text.as_bytes();
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(text.len(), |newline| at + newline);
        *self = Self { range: start..end, remark: OnceCell::new() };
        true
    }

    /// Returns the comment in the line. It is parsed on first use.
    fn remark(&self, text: &str) -> Option<&CommentWords> {
        self.remark.get_or_init(|| CommentWords::in_line(text, self.range.clone())).as_ref()
    }
}

/// Drops findings inside larger ones. If several findings are at the same position, only one remains.
fn drop_inner_findings(mut found: Vec<UnplacedFinding>) -> Vec<UnplacedFinding> {
    found.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end), found.check));
    let mut kept: Vec<UnplacedFinding> = Vec::with_capacity(found.len());
    for one in found {
        let is_inner = kept.iter().rev().take(2).any(|last| {
            last.range.start <= one.range.start
                && one.range.start < last.range.end
                && (last.check == one.check || one.check != Check::ForbiddenPhrase)
        });
        if !is_inner {
            kept.push(one);
        }
    }
    kept
}
