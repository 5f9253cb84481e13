//! JSON: cut on its structure alone, every kept value as it was written.

mod container;
mod string;
pub(crate) mod tape;

pub(super) use self::container::{Cut, Shortener};
pub(super) use self::string::cost;
pub(super) use self::tape::{Kind, Node, Tape};
