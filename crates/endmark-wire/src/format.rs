//! The wire formats: one value each, in one table.
//!
//! [`WireFormat`] covers all differences between formats. To add a format, implement it in a new folder and
//! add it to [`FORMATS`].

use crate::provider::Provider;
use crate::request::Address;
pub use crate::wire_format::{
    FormatFacts, WireConversation, WireFormat, WireReply, WireRequest, WireRequestBuilder,
};
use crate::{anthropic_messages, gemini, openai_chat, openai_responses};

/// Every supported format.
pub const FORMATS: [&dyn WireFormat; 4] =
    [&openai_chat::Chat, &openai_responses::Responses, &anthropic_messages::Messages, &gemini::Gemini];

/// A format, and the parsed address of a request in it.
#[derive(Debug, Clone)]
pub struct AddressedFormat {
    /// The format that has this path.
    pub format: &'static dyn WireFormat,
    /// The parsed address.
    pub address: Address,
}

/// Returns the format of a POST to this path, or `None` if no format has this path.
///
/// ```
/// use endmark_wire::format::find;
/// let found = find("/v1beta/models/gemini-2.5-flash%3AstreamGenerateContent", Some("alt=sse")).unwrap();
/// assert_eq!(found.format.name(), "gemini");
/// assert_eq!(found.address.model.as_deref(), Some("gemini-2.5-flash"));
/// assert!(find("/v1/models", None).is_none());
/// ```
pub fn find(path: &str, query: Option<&str>) -> Option<AddressedFormat> {
    FORMATS
        .into_iter()
        .find_map(|format| Some(AddressedFormat { format, address: format.address(path, query)? }))
}

/// Returns the format of the provider that alone has this path, or `None` if no provider or several have it.
///
/// ```
/// use endmark_wire::format::find_by_path;
/// assert_eq!(find_by_path("/v1/messages/count_tokens").unwrap().name(), "anthropic_messages");
/// assert!(find_by_path("/v1/models").is_none());
/// ```
pub fn find_by_path(path: &str) -> Option<&'static dyn WireFormat> {
    FORMATS.into_iter().find(|format| format.owns_path(path))
}

/// Returns the format with this name.
pub fn find_by_name(name: &str) -> Option<&'static dyn WireFormat> {
    FORMATS.into_iter().find(|format| format.name() == name)
}

impl Provider {
    /// Returns every provider that has a format, in the formats' order.
    ///
    /// ```
    /// use endmark_wire::provider::Provider;
    /// let names: Vec<&str> = Provider::all().iter().map(|provider| provider.name).collect();
    /// assert_eq!(names, ["openai", "anthropic", "gemini"]);
    /// ```
    pub fn all() -> Vec<&'static Self> {
        let mut all: Vec<&'static Self> = FORMATS.into_iter().map(WireFormat::provider).collect();
        all.dedup();
        all
    }

    /// Returns the formats that it defines.
    pub fn formats(&self) -> impl Iterator<Item = &'static dyn WireFormat> {
        FORMATS.into_iter().filter(move |format| format.provider() == self)
    }
}
