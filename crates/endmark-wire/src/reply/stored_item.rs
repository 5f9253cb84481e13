//! Items of a reply that its provider stores.

use crate::json::Value;

/// An item of a reply that its provider stores under an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredItem {
    /// The id.
    pub id: String,
    /// The item that the client has.
    pub json: String,
}

impl StoredItem {
    /// Reads an item. Returns `None` if it has no id or is incomplete.
    pub(crate) fn parse(json: &str) -> Option<Self> {
        let item = Value::parse_str(json).ok().filter(|item| !item.has_text("status", "incomplete"))?;
        Some(Self { id: item.non_empty_text("id").filter(|id| !id.is_empty())?, json: json.to_owned() })
    }
}
