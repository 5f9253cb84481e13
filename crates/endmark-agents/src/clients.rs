//! Connects clients to a gateway: knows the settings that each client needs, and edits its configuration
//! file.

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
    ClientChoice, ClientProperties, GatewayAddress, RequiredSetting, configuration_path, other_client_keys,
    overriding_setting, required_formats, required_settings, undo_keys,
};
pub use document::{ConfigDocument, InnerListRemoval, NewValue, Syntax, UneditableFile};
pub use file::{ConfigurationFile, missing_original};
pub use revision::{
    ConfigKeys, KeptKey, KeyChange, ReversionResult, RevisionResult, WriteRecord, revert, revise,
};
