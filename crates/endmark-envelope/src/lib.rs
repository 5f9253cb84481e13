//! The envelope in which commands answer: `ok`, `data`, `error`, `warnings`, `meta` (EN-1).
//!
//! All five are always there, whatever happened, in one complete JSON document. The combinations that
//! would contradict each other cannot be built: `ok` follows from the error, and `meta.truncated` from
//! the warnings. Serialising an [`Envelope`] finds what a backend already cut (EN-3) and keeps the answer within its
//! limit (EN-5); nothing is shortened without a [`Warning`] (EN-2).
//!
//! The envelope knows no file, clock or terminal; [`Envelope::write_to`] writes to whatever it is given.

mod cap;
mod detect;
mod document;
mod envelope;
mod error;
mod marker;
mod path;
mod rules;
mod shorten;
mod walk;
mod warning;

pub use cap::{DEFAULT_MAX_RESPONSE_BYTES, MIN_RESPONSE_BYTES, cap};
pub use detect::{Cut, Evidence, FieldRule, Received, detect_cut};
pub use document::{Document, WriteError};
pub use envelope::{Envelope, Meta};
pub use error::{ErrorBody, FIELD_TOO_LARGE, Phase, RESPONSE_TOO_LARGE};
pub use marker::TRUNCATION_MARKER;
pub use path::{FieldPath, FieldPattern, PathError, Segment};
pub use rules::FieldRules;
pub use warning::{FIELD_TRUNCATED, Size, Warning, WarningKind};
