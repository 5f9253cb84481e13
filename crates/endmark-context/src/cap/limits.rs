//! The limits of a capped value, and their units.

use super::marker::way_to_read;

/// Counts the tokens of a text. This module has no default tokenizer.
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

/// The part of a text that is kept in addition to the error lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// The beginning and the end, which share the remaining room 1 : 2.
    #[default]
    Both,
    /// The beginning.
    Head,
    /// The end.
    Tail,
}

/// Name of the tool with which a model reads the rest of a value.
pub const READ_TOOL: &str = "endmark_read";

/// How the reader of a marker can read the omitted part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadMethod {
    /// The command `endmark read HANDLE`.
    #[default]
    Command,
    /// The tool `endmark_read`, if the model has it.
    Tool,
}

impl ReadMethod {
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
    /// Largest size of the value, including markers.
    pub most: usize,
    /// Unit of `most`.
    pub unit: Unit,
    /// Most items of a list, or rows of a table.
    pub max_items: usize,
    /// The part of a text to keep.
    pub keep: Keep,
    /// Handle of the full value. Warnings contain it; markers do if there is room.
    pub handle: Option<String>,
    /// How the reader of a marker can read the omitted part.
    pub way: ReadMethod,
    /// Whether JSON keeps the types of its items and members. Markers are then neither items nor members, and objects
    /// keep all members, so only the warnings report omissions.
    pub keeps_types: bool,
}

/// Default limit in characters (CX-5).
pub const DEFAULT_MAX_CHARS: usize = 200_000;
/// Default limit of items (CX-5).
pub const DEFAULT_MAX_ITEMS: usize = 500;
/// Smallest limit in any unit, so that a marker fits.
pub const MIN_LIMIT: usize = 80;
/// Additional room for a marker that names the command for the omitted part.
const HANDLE_ROOM: usize = 40;

/// Error of limits that leave no room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// The marker does not fit.
    #[error(
        "a limit of {most} leaves no room for the marker that says what is left out: it must be at least {least}"
    )]
    TooSmall {
        /// The limit.
        most: usize,
        /// The smallest limit.
        least: usize,
    },
    /// A list could not keep any item.
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
            way: ReadMethod::Command,
            keeps_types: false,
        }
    }
}

impl Limits {
    /// Checks that a marker fits within the limits.
    pub fn check(&self) -> Result<(), LimitError> {
        if self.most < MIN_LIMIT {
            return Err(LimitError::TooSmall { most: self.most, least: MIN_LIMIT });
        }
        if self.max_items == 0 { Err(LimitError::NoItems) } else { Ok(()) }
    }

    /// Returns the handle, if it fits into a marker. Warnings always contain it.
    pub(super) fn marker_handle(&self) -> Option<&str> {
        let handle = self.handle.as_deref();
        handle.filter(|handle| self.most >= MIN_LIMIT + HANDLE_ROOM + handle.len())
    }

    /// Returns the text after the first marker: how to read the omitted part, if that fits.
    pub(super) fn read_hint(&self) -> String {
        self.marker_handle().map(|handle| way_to_read(handle, self.way)).unwrap_or_default()
    }

    /// Returns how many characters or bytes must be buffered before a value is certain to be too large. A text with
    /// more than eight characters per token counts as too large, without counting its tokens.
    pub(super) fn max_buffered(&self) -> usize {
        match self.unit {
            Unit::Chars | Unit::Bytes => self.most,
            Unit::Tokens(_) => self.most.saturating_mul(8),
        }
    }

    /// Returns the size of a text in the unit of [`Limits::max_buffered`].
    pub(super) fn size(&self, text: &str) -> usize {
        match self.unit {
            Unit::Bytes => text.len(),
            Unit::Chars | Unit::Tokens(_) => text.chars().count(),
        }
    }

    /// Whether the unchanged text is within the limit.
    pub(super) fn admits(&self, text: &str) -> bool {
        match self.unit {
            Unit::Tokens(count) => {
                text.len() <= self.most || self.size(text) <= self.max_buffered() && count(text) <= self.most
            }
            Unit::Chars | Unit::Bytes => text.len() <= self.most || self.size(text) <= self.most,
        }
    }

    /// Renders within the limit. For tokens the size is reduced in steps, because token counts cannot be added up.
    pub(super) fn fit<T>(&self, render: impl Fn(usize) -> T, text: impl Fn(&T) -> &str) -> T {
        let Unit::Tokens(count) = self.unit else { return render(self.most) };
        let mut size = self.most.saturating_mul(4);
        loop {
            let rendered = render(size);
            let tokens = count(text(&rendered));
            // At this size each marker is as large as a character, and no part of the value is left.
            if tokens <= self.most || size <= MIN_LIMIT / 2 {
                return rendered;
            }
            let scaled = size as u128 * self.most as u128 / tokens as u128;
            size = (usize::try_from(scaled).unwrap_or(size) * 49 / 50).min(size - 1);
        }
    }
}
