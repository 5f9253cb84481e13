//! Reports the stored data in three forms: for commands (`endmark usage --json`), as JSON below `/endmark/api/`, and
//! as pages.
//!
//! A [`Console`] answers HTTP requests for them. It reads a [`Store`](endmark_store::Store) on a separate thread.
//! Only its forms change anything, namely budgets and keys.

mod access;
mod answer;
mod api;
mod console;
mod page;
mod query;
mod reading;
pub mod reports;

pub use answer::ConsoleBody;
pub use console::{Console, ConsoleRequest, ConsoleSettings};
