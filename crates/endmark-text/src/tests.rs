//! Tests of the names and outcomes that other programs rely on.

mod literal_names;
mod outcomes;
