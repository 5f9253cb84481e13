//! How fast Endmark detects and stitches, beside others in the same run.
//!
//! `cargo bench` measures with criterion; the program of this crate prints one table of ratios, measured in turns
//! so that whatever else the machine does falls on all alike. Time is never asserted anywhere.

pub mod detection;
pub mod documents;
pub mod stitching;
pub mod turns;
