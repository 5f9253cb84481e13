//! What holds for every answer, every limit and every list.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cap;
mod cursors;
mod pages;
