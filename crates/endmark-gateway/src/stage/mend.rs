//! What is done for a reply that is cut, or whose form is not as demanded: its rest is asked for and joined.

mod call_ids;
pub(crate) mod choice;
pub(crate) mod stream;
pub(crate) mod whole;
