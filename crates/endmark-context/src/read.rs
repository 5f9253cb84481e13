//! Reads a part of a capped value (CX-5): pages, ranges, lines, and the value at a JSON Pointer.
//!
//! All readers get the same parts.

mod in_memory;
mod page;
mod part;
mod picking;
mod pointer;
mod range;
pub mod tool;

pub use in_memory::read_part;
pub use page::{PAGE_LOOK_BEHIND_BYTES, Pages, page_begin};
pub use part::{Content, Excerpt, ExcerptError, MAX_POINTER_TARGET_BYTES, Part, PartError, Place};
pub use picking::Picking;
pub use pointer::{PointerError, resolve_pointer};
pub use range::{RangeError, Span};

use endmark_envelope::FieldPath;

/// Returns the path of the value in envelopes.
fn value_path() -> FieldPath {
    FieldPath::data().key("text")
}
