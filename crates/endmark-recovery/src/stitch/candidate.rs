//! A candidate seam: one way to join the two parts, with what its story costs.

use super::joint::Joint;
use super::seam::{AskedFrom, SeamStyle};

/// Joining the first `keep` bytes of the first part, `glue`, and a range of the continuation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub(super) keep: usize,
    pub(super) glue: &'static str,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) style: SeamStyle,
    /// How unlikely the story is beforehand, in bits.
    pub(super) cost: f64,
    /// Where the continuation's own text begins, before any repeated part is taken from it.
    pub(super) opening: usize,
    /// Bytes of the first part that the continuation repeats, by this story.
    pub(super) repeated: usize,
    /// Whether nothing was undone.
    pub(super) is_clean: bool,
    /// Whether a fence around it was undone.
    pub(super) fenced: bool,
    /// How much what stands before it reads as an announcement, in bits.
    pub(super) announced: f64,
}

impl Candidate {
    /// What is added to the first part, behind the glue.
    pub(super) fn added<'a>(&self, joint: &Joint<'a>) -> &'a str {
        &joint.continuation[self.start..self.end]
    }

    /// Whether this is the story that was asked for: nothing undone, joined where it was asked.
    pub(super) fn is_asked(&self, joint: &Joint<'_>) -> bool {
        let here = match joint.from {
            AskedFrom::Cut => joint.initial.len(),
            AskedFrom::Token => joint.settled,
            AskedFrom::Unknown => return false,
        };
        self.is_clean && self.keep == here
    }
}
