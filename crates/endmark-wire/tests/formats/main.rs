//! Tests of all formats through their common traits. They read recorded and handwritten messages and write
//! them again.
//!
//! The cases of a format are in `tests/FORMAT`, each next to its expectation, and the README there states
//! their source. After an intended change, `UPDATE_GOLDEN=1 cargo test -p endmark-wire --test formats`
//! rewrites the expectations: review the difference.

#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod any_message;
mod every_cut;
mod golden;
mod relay;
mod shape;
