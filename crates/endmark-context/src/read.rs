//! Reading a part of a value that was capped (CX-5): pages, ranges, lines, and what a JSON Pointer points to. Whoever reads
//! it, a part is the same.

mod in_memory;
mod page;
mod part;
mod picking;
mod pointer;
mod range;
pub mod tool;

pub use in_memory::part_of;
pub use page::{PAGE_LOOK_BEHIND_BYTES, Pages, page_begin};
pub use part::{Content, Excerpt, ExcerptError, LARGEST_POINTED_INTO_BYTES, Part, PartError, Place};
pub use picking::Picking;
pub use pointer::{PointerError, pointed_to};
pub use range::{RangeError, Span};

use endmark_envelope::FieldPath;

/// Where envelopes have what was read.
fn value_path() -> FieldPath {
    FieldPath::data().key("text")
}
