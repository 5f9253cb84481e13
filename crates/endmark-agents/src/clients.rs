//! Connects clients to a gateway: the settings that each client needs, and edits of its configuration file.

mod address;
mod client;
mod document;
mod file;
mod lock;
mod revision;

#[cfg(test)]
mod tests;

pub use address::{find_address, without_password};
pub use client::{
    Address, Client, ClientChoice, Setting, file, other_client_keys, overridden, required_formats, settings,
    undo_keys,
};
pub use document::{Document, Removal, Syntax, UnfitFile, Value};
pub use file::{ConfigurationFile, missing_original};
pub use revision::{Change, KeptKey, Keys, Record, Reversion, Revision, revert, revise};
