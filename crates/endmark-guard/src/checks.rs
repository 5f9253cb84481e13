//! The checks, one per file. Each returns its findings and is independent of the others.

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
mod surroundings;

#[cfg(test)]
mod tests;
