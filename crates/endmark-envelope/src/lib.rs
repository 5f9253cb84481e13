//! The envelope in which commands answer: `ok`, `data`, `error`, `warnings`, `meta` (EN-1).
//!
//! All five are always there, whatever happened, in one complete JSON document. The combinations that
//! would contradict each other cannot be built: `ok` follows from the error, and `meta.truncated` from
//! the warnings.
//!
//! This crate knows no file, clock or terminal; [`Envelope::write_to`] writes to whatever it is given.

mod envelope;
mod error;
mod warning;

pub use envelope::{Envelope, Meta};
pub use error::ErrorBody;
pub use warning::{Warning, WarningKind};
