//! The families of the core under the paths that they had in one crate. Use the crates themselves.

pub use endmark_findings as findings;
pub use endmark_recovery::*;
pub use endmark_text::*;
