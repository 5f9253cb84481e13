//! Measures how fast Endmark detects and stitches, compared with other libraries in the same run.
//!
//! `cargo bench` measures with Criterion. The program of this crate prints tables of ratios. It interleaves
//! the runs of all contenders, so that other load on the machine affects all of them. No test asserts a
//! duration.

pub mod detection;
pub mod documents;
pub mod stitching;
pub mod turns;
