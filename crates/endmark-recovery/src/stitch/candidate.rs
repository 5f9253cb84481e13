//! A candidate seam, which is one way to join the two parts, with the cost of its story.

use super::joint::Joint;
use super::seam::{AskedFrom, SeamStyle};

/// Joins the first `keep` bytes of the first part, `glue`, and a range of the continuation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub(super) keep: usize,
    pub(super) glue: &'static str,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) style: SeamStyle,
    /// How unlikely the story is in general, in bits.
    pub(super) cost: f64,
    /// Start of the continuation's text, before a repeated part is removed.
    pub(super) opening: usize,
    /// Number of bytes of the first part that the continuation repeats in this story.
    pub(super) repeated: usize,
    /// Whether nothing is removed or added.
    pub(super) is_clean: bool,
    /// Whether a fence around the text is removed.
    pub(super) fenced: bool,
    /// Evidence, in bits, that the text before it is an announcement.
    pub(super) announced: f64,
}

impl Candidate {
    /// Returns the text that is added to the first part after the glue.
    pub(super) fn added_text<'a>(&self, joint: &Joint<'a>) -> &'a str {
        &joint.continuation[self.start..self.end]
    }

    /// Whether this is the requested story: nothing is removed, and the seam is at the requested position.
    pub(super) fn is_asked(&self, joint: &Joint<'_>) -> bool {
        let here = match joint.from {
            AskedFrom::Cut => joint.initial.len(),
            AskedFrom::Token => joint.settled_bytes,
            AskedFrom::Unknown => return false,
        };
        self.is_clean && self.keep == here
    }
}
