//! All formats through what they have in common: recorded and hand-made messages, read and written again.
//!
//! The cases of a format stand in `tests/FORMAT`, each beside its expectation; where they are from is in the
//! README there. After a change that is meant, `UPDATE_GOLDEN=1 cargo test -p endmark-wire --test formats`
//! writes the expectations anew: read the difference.

#![expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod any_message;
mod every_cut;
mod golden;
mod relay;
mod shape;
