//! Runs the example as a program. It always returns one document and one exit code, and a rejected command
//! does not change its SQLite file.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod backend;
mod output;
mod pages;
mod tracker;
mod tutorial;
mod write_limits;
