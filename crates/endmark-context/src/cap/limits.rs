//! The limits of a capped value, and their units.

use super::marker::way_to_read;

/// Counts the tokens of a text. The crate has no default tokenizer for this.
pub type CountTokens = fn(&str) -> usize;

/// Unit of a limit.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Unicode characters.
    Chars,
    /// UTF-8 bytes.
    Bytes,
    /// Tokens, counted by this function.
    Tokens(CountTokens),
}

/// Which part of a text is kept besides the error lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// The beginning and the end. They share the remaining room one to two.
    #[default]
    Both,
    /// The beginning.
    Head,
    /// The end.
    Tail,
}

/// Name of the tool by which a model reads the rest of a value.
pub const READ_TOOL: &str = "endmark_read";

/// How the reader of a marker can read the rest of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// The command `endmark read HANDLE`.
    #[default]
    Command,
    /// The tool `endmark_read`, if the model is offered it.
    Tool,
}

impl Way {
    pub(super) const ALL: [Self; 2] = [Self::Command, Self::Tool];

    /// Returns the text before the handle.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Command => "endmark read",
            Self::Tool => READ_TOOL,
        }
    }
}

/// The limits of one value (CX-5).
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest size of the value, markers included.
    pub most: usize,
    /// Unit of `most`.
    pub unit: Unit,
    /// Most items of a list, and most rows of a table.
    pub max_items: usize,
    /// Which part of a text is kept.
    pub keep: Keep,
    /// Handle of the full value. Warnings contain it, and markers do if there is room.
    pub handle: Option<String>,
    /// How the reader of a marker can read the full value.
    pub way: Way,
    /// Whether JSON keeps the types of its items and members: markers are not items or members, and objects keep all
    /// members. Only the warnings then report what is left out.
    pub keeps_types: bool,
}

/// Default limit in characters (CX-5).
pub const DEFAULT_MAX_CHARS: usize = 200_000;
/// Default limit of items (CX-5).
pub const DEFAULT_MAX_ITEMS: usize = 500;
/// Smallest limit, in any unit: a marker must have room.
pub const MIN_LIMIT: usize = 80;
/// Additional room of a marker that names the command for reading the rest.
const HANDLE_ROOM: usize = 40;

/// Limits that no value could be capped to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A marker has no room.
    #[error(
        "a limit of {most} leaves no room for the marker that says what is left out: it must be at least {least}"
    )]
    TooSmall {
        /// The limit.
        most: usize,
        /// The smallest limit.
        least: usize,
    },
    /// No list could keep an item.
    #[error("a list must be allowed at least one item")]
    NoItems,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            most: DEFAULT_MAX_CHARS,
            unit: Unit::Chars,
            max_items: DEFAULT_MAX_ITEMS,
            keep: Keep::Both,
            handle: None,
            way: Way::Command,
            keeps_types: false,
        }
    }
}

impl Limits {
    /// Checks that a marker has room within the limits.
    pub fn check(&self) -> Result<(), LimitError> {
        if self.most < MIN_LIMIT {
            return Err(LimitError::TooSmall { most: self.most, least: MIN_LIMIT });
        }
        if self.max_items == 0 { Err(LimitError::NoItems) } else { Ok(()) }
    }

    /// Returns the handle, if a marker has room for it. Warnings always contain it.
    pub(super) fn shown_handle(&self) -> Option<&str> {
        let handle = self.handle.as_deref();
        handle.filter(|handle| self.most >= MIN_LIMIT + HANDLE_ROOM + handle.len())
    }

    /// Returns the text after the first marker: how to read the rest, if there is room for that.
    pub(super) fn way_to_read(&self) -> String {
        self.shown_handle().map(|handle| way_to_read(handle, self.way)).unwrap_or_default()
    }

    /// Returns how many characters or bytes must be held before a value is certain to be too large. A text with more
    /// than eight characters per token counts as too large without being counted.
    pub(super) fn held(&self) -> usize {
        match self.unit {
            Unit::Chars | Unit::Bytes => self.most,
            Unit::Tokens(_) => self.most.saturating_mul(8),
        }
    }

    /// Returns the size of a text in the unit of [`Limits::held`].
    pub(super) fn size(&self, text: &str) -> usize {
        match self.unit {
            Unit::Bytes => text.len(),
            Unit::Chars | Unit::Tokens(_) => text.chars().count(),
        }
    }

    /// Whether a text is within the limit unchanged.
    pub(super) fn admits(&self, text: &str) -> bool {
        match self.unit {
            Unit::Tokens(count) => {
                text.len() <= self.most || self.size(text) <= self.held() && count(text) <= self.most
            }
            Unit::Chars | Unit::Bytes => text.len() <= self.most || self.size(text) <= self.most,
        }
    }

    /// Renders within the limit. Token counts cannot be added up, so for tokens the size is reduced step by step.
    pub(super) fn fit<T>(&self, render: impl Fn(usize) -> T, text: impl Fn(&T) -> &str) -> T {
        let Unit::Tokens(count) = self.unit else { return render(self.most) };
        let mut size = self.most.saturating_mul(4);
        loop {
            let rendered = render(size);
            let tokens = count(text(&rendered));
            // At this size a character is at least as large as its marker, and nothing is left of the value.
            if tokens <= self.most || size <= MIN_LIMIT / 2 {
                return rendered;
            }
            let scaled = size as u128 * self.most as u128 / tokens as u128;
            size = (usize::try_from(scaled).unwrap_or(size) * 49 / 50).min(size - 1);
        }
    }
}
