//! Measures how fast Endmark detects and stitches, compared with other libraries in the same run.
//!
//! `cargo bench` measures with criterion. The program of this crate prints tables of ratios from interleaved runs, so
//! that other load on the machine affects all contenders. No check asserts a time.

pub mod detection;
pub mod documents;
pub mod stitching;
pub mod turns;
