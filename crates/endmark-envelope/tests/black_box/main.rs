//! The example from outside: one document and one exit code, whatever happens, and a SQLite file that is left alone.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod backend;
mod output;
mod pages;
mod tracker;
mod tutorial;
mod write_limits;
