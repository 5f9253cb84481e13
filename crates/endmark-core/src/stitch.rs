//! Joins the pieces of a cut text (PC-4).

mod seam;

pub use seam::{AskedFrom, MergeError, Merged, Seam, SeamStyle};
