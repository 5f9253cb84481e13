//! A candidate: one way to join the two parts, and how likely it is.

use super::joint::Joint;
use super::seam::{AskedFrom, SeamStyle};

/// A join of the first `keep` bytes of the first part, `glue`, and the range `start..end` of the
/// continuation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub(super) keep: usize,
    pub(super) glue: &'static str,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) style: SeamStyle,
    /// How unlikely this kind of join is in general, in bits.
    pub(super) cost: f64,
    /// Start of the text in the continuation, before a repeated part is removed.
    pub(super) text_start: usize,
    /// Number of bytes of the first part that the continuation repeats.
    pub(super) repeated_bytes: usize,
    /// Whether nothing is removed or added.
    pub(super) is_clean: bool,
    /// Whether a fence around the text is removed.
    pub(super) is_fenced: bool,
    /// Evidence, in bits, that the removed text before it is an announcement.
    pub(super) announcement_bits: f64,
}

impl Candidate {
    /// Returns the part of the continuation that the candidate adds.
    pub(super) fn added_text<'a>(&self, joint: &Joint<'a>) -> &'a str {
        &joint.continuation[self.start..self.end]
    }

    /// Whether the continuation is joined unchanged at the requested position.
    pub(super) fn is_as_requested(&self, joint: &Joint<'_>) -> bool {
        let here = match joint.from {
            AskedFrom::Cut => joint.initial.len(),
            AskedFrom::Token => joint.settled_bytes,
            AskedFrom::Unknown => return false,
        };
        self.is_clean && self.keep == here
    }
}
