//! The envelope of the answers of commands: `ok`, `data`, `error`, `warnings`, `meta` (EN-1).
//!
//! All five members are always present, in one complete JSON document. Contradictory combinations cannot be
//! built: `ok` is derived from the error, and `meta.truncated` from the warnings. Serialising an [`Envelope`]
//! detects what a backend already cut (EN-3) and keeps the answer within its limit (EN-5). Nothing is
//! shortened without a [`Warning`] (EN-2).
//!
//! The envelope uses no file, clock or terminal; [`Envelope::write_to`] writes to any writer. Only the
//! function `run` does, in the feature `run`, which is on by default.

// Derived code uses the name of the crate, also inside the crate itself.
extern crate self as endmark_envelope;

mod cap;
mod cursor;
mod detect;
mod document;
mod envelope;
mod error;
pub mod limits;
mod marker;
mod page;
mod path;
mod rules;
#[cfg(feature = "run")]
mod run;
#[cfg(feature = "schema")]
pub mod schema;
mod shorten;
mod walk;
mod warning;

pub use cap::{DEFAULT_MAX_RESPONSE_BYTES, MIN_RESPONSE_LIMIT_BYTES, cap};
pub use cursor::CursorError;
pub use detect::{Cut, Evidence, FieldRule, ReceivedValue, detect_cut};
pub use document::{Document, WriteError};
/// Implements the trait [`Limits`](trait@limits::Limits).
pub use endmark_envelope_derive::Limits;
pub use envelope::{Envelope, Meta};
pub use error::{ErrorBody, FIELD_TOO_LARGE, Phase, RESPONSE_TOO_LARGE};
pub use limits::{Checked, FieldTooLarge, Limit, Limits, TooLarge};
pub use marker::TRUNCATION_MARKER;
pub use page::{DEFAULT_PAGE_BYTES, DEFAULT_PAGE_ITEMS, Page, Pages};
pub use path::{FieldPath, FieldPattern, PathError, Segment};
pub use rules::FieldRules;
#[cfg(feature = "run")]
pub use run::{AnswerRight, answer_signals, run};
pub use shorten::{grapheme_boundary, json_width};
pub use warning::{FIELD_TRUNCATED, MORE_TRUNCATED, Size, Warning, WarningKind};
