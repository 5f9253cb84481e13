//! Recovers a reply that is cut, or whose form is not as required: requests its rest and joins it.

mod call_ids;
pub(crate) mod choice;
pub(crate) mod stream;
pub(crate) mod whole;
