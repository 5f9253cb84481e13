//! Properties of all answers, limits and lists.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cap;
mod cursors;
mod pages;
