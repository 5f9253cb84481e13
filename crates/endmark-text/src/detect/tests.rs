//! Tests properties of all formats, and runs a JSON test suite.

mod differential;
mod documentation;
pub(crate) mod json_documents;
mod json_test_suite;
mod properties;
mod saved_states;
