//! Caps JSON by its structure. Values that are kept are not rewritten.

mod container;
mod string;
pub(crate) mod tape;

pub(super) use self::container::{Cut, Shortener};
pub(super) use self::string::cost;
pub(crate) use self::string::decode;
pub(super) use self::tape::{Kind, Node, Tape};
