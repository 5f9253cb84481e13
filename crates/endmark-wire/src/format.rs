//! The wire formats: one value each, in one table.
//!
//! Everything that differs between formats stands behind [`WireFormat`]. A further format is a folder that
//! implements it, and one line of [`FORMATS`].

use crate::provider::Provider;
use crate::request::Address;
pub use crate::wire_format::{Facts, WireAsk, WireConversation, WireFormat, WireReply, WireRequest};
use crate::{anthropic_messages, gemini, openai_chat, openai_responses};

/// Every format that is spoken.
pub const FORMATS: [&dyn WireFormat; 4] =
    [&openai_chat::Chat, &openai_responses::Responses, &anthropic_messages::Messages, &gemini::Gemini];

/// A format, and what the address says in it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The format that has this path.
    pub format: &'static dyn WireFormat,
    /// What the path says.
    pub address: Address,
}

/// The format of a POST to this path; none for paths that no format has.
///
/// ```
/// use endmark_wire::format::find;
/// let found = find("/v1beta/models/gemini-2.5-flash%3AstreamGenerateContent", Some("alt=sse")).unwrap();
/// assert_eq!(found.format.name(), "gemini");
/// assert_eq!(found.address.model.as_deref(), Some("gemini-2.5-flash"));
/// assert!(find("/v1/models", None).is_none());
/// ```
pub fn find(path: &str, query: Option<&str>) -> Option<Found> {
    FORMATS.into_iter().find_map(|format| Some(Found { format, address: format.address(path, query)? }))
}

/// The format whose provider alone has this path; none where several have it, or nobody.
///
/// ```
/// use endmark_wire::format::of_path;
/// assert_eq!(of_path("/v1/messages/count_tokens").unwrap().name(), "anthropic_messages");
/// assert!(of_path("/v1/models").is_none());
/// ```
pub fn of_path(path: &str) -> Option<&'static dyn WireFormat> {
    FORMATS.into_iter().find(|format| format.owns(path))
}

/// The format of this name.
pub fn named(name: &str) -> Option<&'static dyn WireFormat> {
    FORMATS.into_iter().find(|format| format.name() == name)
}

impl Provider {
    /// Every provider that has a format, in the formats' order.
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

    /// The formats it gave.
    pub fn formats(&self) -> impl Iterator<Item = &'static dyn WireFormat> {
        FORMATS.into_iter().filter(move |format| format.provider() == self)
    }
}
