//! Reads parts of a capped value (CX-5): pages, ranges, lines, and the value at a JSON Pointer.
//!
//! The command, the web page and the model's tool return the same parts.

mod in_memory;
mod page;
mod part;
mod picking;
mod pointer;
mod range;
pub mod tool;

pub use in_memory::read_part;
pub use page::{PAGE_LOOKBACK_BYTES, Pages, page_begin};
pub use part::{Excerpt, ExcerptError, MAX_POINTER_TARGET_BYTES, Part, PartContent, PartError, PartLocation};
pub use picking::LineSelector;
pub use pointer::{PointerError, resolve_pointer};
pub use range::{NumberRange, RangeError};

use endmark_envelope::FieldPath;

/// Returns the path that envelopes show for the value.
fn value_path() -> FieldPath {
    FieldPath::data().key("text")
}
