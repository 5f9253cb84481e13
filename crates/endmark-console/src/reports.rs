//! Reports about the stored data, shared by commands, JSON routes and pages.

pub mod budgets;
pub mod calls;
pub mod compactions;
pub mod cuts;
mod not_asked;
pub mod recoveries;
pub mod requests;
pub mod session;
pub mod span;
pub mod usage;

pub use not_asked::NotAsked;

use endmark_store::with_zone;
use serde::Serializer;

/// Serialises a time of the store as RFC 3339 with its time zone.
fn serialize_with_zone<S: Serializer>(moment: &impl AsRef<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&with_zone(moment.as_ref()))
}
