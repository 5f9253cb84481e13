//! Reading a part of a value that was capped (CX-5): ranges, pages, and what a JSON Pointer points to.

mod page;
mod pointer;
mod range;
pub mod tool;

pub use page::{PAGE_LOOK_BEHIND_BYTES, page_begin};
pub use pointer::{PointerError, pointed_to};
pub use range::{RangeError, Span};
