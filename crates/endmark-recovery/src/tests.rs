//! The words and the outcomes that others rely on.

mod literal_names;
mod outcomes;
