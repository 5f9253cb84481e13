//! Finds phrases in one pass over the text, and passes each to its check.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

use super::surroundings::{Remark, Sentence};
use super::{forbidden, handoff, omission, placeholder};
use crate::artifact::{Artifact, Kind};
use crate::finding::{Check, UnplacedFinding};
use crate::phrases::{Bank, DEFAULT, Sign};

/// Detects handoffs (if they are forbidden), placeholders, omitted code and forbidden phrases.
pub(crate) fn check(artifact: &Artifact<'_>, forbidden: &Bank, handoffs: bool) -> Vec<UnplacedFinding> {
    if artifact.kind() == Kind::Json {
        return Vec::new();
    }
    let mut found = look(artifact, &DEFAULT, handoffs);
    found.extend(look(artifact, forbidden, true));
    without_inner(found)
}

fn look(artifact: &Artifact<'_>, bank: &Bank, handoffs: bool) -> Vec<UnplacedFinding> {
    let text = artifact.text();
    let mut found: Vec<UnplacedFinding> = Vec::new();
    let mut sentence: Option<Sentence<'_>> = None;
    let mut line = Line { range: 0..0, remark: OnceCell::new() };
    // Check each phrase once per sentence or line, however many of its anchors occur there.
    let mut tried = BTreeSet::new();
    for hit in bank.hits(text).filter(|hit| hit.position >= artifact.body_start()) {
        if !sentence.as_ref().is_some_and(|sentence| sentence.is_around(hit.position)) {
            sentence = None;
        }
        let is_new_line = line.move_to(text, hit.position);
        if is_new_line {
            tried.clear();
        }
        for (index, phrase) in hit.phrases() {
            let one = match phrase.sign {
                Sign::Omission => {
                    let Some(remark) = line.remark(text) else { continue };
                    if !remark.comment.content.contains(&hit.position) || !tried.insert(index) {
                        continue;
                    }
                    omission::look(artifact, phrase, remark, hit.position)
                }
                Sign::Handoff if !handoffs => None,
                sign => {
                    if sentence.is_none() {
                        sentence = Sentence::at(artifact, hit.position);
                    }
                    let Some(sentence) = &sentence else { continue };
                    match sign {
                        Sign::Handoff => handoff::look(artifact, phrase, sentence, hit.position),
                        Sign::Placeholder => placeholder::look(artifact, phrase, sentence, hit.position),
                        _ => forbidden::look(artifact, phrase, sentence, hit.position),
                    }
                }
            };
            found.extend(one);
        }
    }
    found
}

/// The line of the anchor and its comment.
struct Line {
    range: Range<usize>,
    remark: OnceCell<Option<Remark>>,
}

impl Line {
    /// Moves to the line of an offset. Returns whether it is a different line.
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

    /// Returns the comment in the line, which is parsed on first use.
    fn remark(&self, text: &str) -> Option<&Remark> {
        self.remark.get_or_init(|| Remark::in_line(text, self.range.clone())).as_ref()
    }
}

/// Drops findings inside larger ones, and all but one at the same place.
fn without_inner(mut found: Vec<UnplacedFinding>) -> Vec<UnplacedFinding> {
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
