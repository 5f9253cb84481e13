#![doc = include_str!("../README.md")]

mod complete;
mod control_characters;
pub mod detect;
mod format;
pub mod json;
mod nesting;
mod open_stack;
mod report;
mod surrogates;
#[cfg(test)]
mod tests;
mod verdict;

pub use complete::{CompleteError, CompletedText, UnfinishedKind, UnfinishedPart, complete};
pub use control_characters::escape_control_characters;
pub use detect::{CodeFence, detect, detect_strict};
pub use format::{Format, FormatError};
pub use open_stack::OpenStack;
pub use report::{CompletionReport, DetectionReport, UnfinishedReport};
pub use surrogates::{replace_lone_surrogate_bytes, replace_lone_surrogates};
pub use verdict::{Detection, Hint, InToken, Markup, Open, Truncation, Verdict};
