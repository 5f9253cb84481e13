#![doc = include_str!("../README.md")]

#[doc(inline)]
pub use endmark_recovery::*;
#[doc(inline)]
pub use endmark_text::*;

#[cfg(feature = "context")]
pub use endmark_context as context;
#[cfg(feature = "envelope")]
pub use endmark_envelope as envelope;
#[cfg(feature = "findings")]
pub use endmark_findings as findings;
#[cfg(feature = "guard")]
pub use endmark_guard as guard;
#[cfg(feature = "wire")]
pub use endmark_wire as wire;
