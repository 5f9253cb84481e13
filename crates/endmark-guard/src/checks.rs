//! The checks, a file each. A check answers what it finds, and knows nothing of the others.

mod around;
pub(crate) mod existence;
mod forbidden;
mod handoff;
pub(crate) mod mid_sentence;
pub(crate) mod min_lines;
mod omission;
pub(crate) mod open_code;
pub(crate) mod open_fence;
pub(crate) mod open_table;
pub(crate) mod phrases;
mod placeholder;
pub(crate) mod sections;

#[cfg(test)]
mod tests;
