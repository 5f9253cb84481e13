//! Recovers a reply that is cut or lacks the required format: requests the rest and joins it.

mod call_ids;
pub(crate) mod choice;
pub(crate) mod stream;
pub(crate) mod whole;
