//! The pure core of Endmark: every decision about cut replies, and no I/O.
//!
//! An *end mark* (∎) is the sign a printer sets where a text is complete. This crate decides whether a
//! text has one: it [detects](detect) a cut, builds the prompt that asks for the rest, [stitches](stitch)
//! the answer to what is already there, and says so where that cannot be done with certainty.
//!
//! It knows no file, socket, clock, thread or async runtime. A state machine is fed what happened and
//! answers what to do next; the gateway and the command are thin drivers of the same machines.

mod ending;
mod format;
mod verdict;

pub use ending::{Ending, Stop};
pub use format::{Format, FormatError};
pub use verdict::{Detection, Hint, InToken, Open, Truncation, Verdict};
