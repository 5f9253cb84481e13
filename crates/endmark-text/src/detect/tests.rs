//! Properties of all formats, and whole test suites of JSON.

mod differential;
mod documentation;
pub(crate) mod json_documents;
mod json_test_suite;
mod properties;
mod saved_states;
