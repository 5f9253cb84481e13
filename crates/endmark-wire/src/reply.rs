//! A reply as received, independent of the format: every format's reader produces these types.
//!
//! A reply has [`Choice`]s, each with its text, its [`ToolCall`]s and its [`Finish`]. In a stream they come as
//! [`ChoicePiece`]s in [`Event`]s, and [`Received`] assembles them.

mod amount;
mod choice;
mod details;
mod event;
mod finish;
mod growth;
mod places;
mod received;
mod stored_item;
mod tool_call;
mod usage;

pub use choice::{Choice, Continuation};
pub use details::Details;
pub use event::{ChoicePiece, Event, EventError, Piece};
pub use finish::Finish;
pub(crate) use growth::append;
pub(crate) use received::Fidelity;
pub use received::Received;
pub use stored_item::StoredItem;
pub use tool_call::{CallProgress, PieceKey, ToolCall};
pub(crate) use usage::StatedCounts;
pub use usage::Usage;
