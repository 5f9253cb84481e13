//! Limits of capped values, and their units.

use super::marker::read_hint;

/// Counts the tokens of a text. Callers supply this function, because there is no default tokenizer here.
pub type TokenCounter = fn(&str) -> usize;

/// Unit of a limit.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Unicode characters.
    Chars,
    /// UTF-8 bytes.
    Bytes,
    /// Tokens, as counted by this function.
    Tokens(TokenCounter),
}

/// Which part of a text is kept, in addition to lines with errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// The beginning and the end. The beginning gets a third of the remaining room.
    #[default]
    Both,
    /// The beginning.
    Head,
    /// The end.
    Tail,
}

/// Name of the tool with which a model reads the rest of a capped value.
pub const READ_TOOL: &str = "endmark_read";

/// How a reader of a marker can get the omitted part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadMethod {
    /// With the command `endmark read HANDLE`.
    #[default]
    Command,
    /// With the tool `endmark_read`, if the model has it.
    Tool,
}

impl ReadMethod {
    pub(super) const ALL: [Self; 2] = [Self::Command, Self::Tool];

    /// Returns the text that precedes the handle in a marker.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Command => "endmark read",
            Self::Tool => READ_TOOL,
        }
    }
}

/// The limits of one value (CX-5).
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum size of the capped value, including markers.
    pub most: usize,
    /// Unit of `most`.
    pub unit: Unit,
    /// Maximum number of items in a list, or rows in a table.
    pub max_items: usize,
    /// Which part of a text is kept.
    pub keep: Keep,
    /// Handle of the full value. Warnings always contain it, and markers contain it if there is room.
    pub handle: Option<String>,
    /// How a reader of a marker can get the omitted part.
    pub way: ReadMethod,
    /// Whether items and members of JSON must keep their types. If so, markers are neither items nor members,
    /// and objects keep all members. Only the warnings then report omitted parts.
    pub keeps_types: bool,
}

/// Default maximum size in characters (CX-5).
pub const DEFAULT_MAX_CHARS: usize = 200_000;
/// Default maximum number of items (CX-5).
pub const DEFAULT_MAX_ITEMS: usize = 500;
/// The smallest allowed limit, in any unit. A marker always fits.
pub const MIN_LIMIT: usize = 80;
/// A marker contains the command for reading the rest if the limit is at least [`MIN_LIMIT`], plus this
/// number, plus the length of the handle.
const READ_HINT_CHARS: usize = 40;

/// Error of limits that are too small.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A marker does not fit.
    #[error(
        "a limit of {most} leaves no room for the marker that says what is left out: it must be at least {least}"
    )]
    TooSmall {
        /// The given limit.
        most: usize,
        /// The smallest allowed limit.
        least: usize,
    },
    /// A list may not keep any item.
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
    /// Fails if a marker does not fit within the limits.
    pub fn check(&self) -> Result<(), LimitError> {
        if self.most < MIN_LIMIT {
            return Err(LimitError::TooSmall { most: self.most, least: MIN_LIMIT });
        }
        if self.max_items == 0 { Err(LimitError::NoItems) } else { Ok(()) }
    }

    /// Returns the handle for markers. Returns `None` if it does not fit. Warnings contain it anyway.
    pub(super) fn marker_handle(&self) -> Option<&str> {
        let handle = self.handle.as_deref();
        handle.filter(|handle| self.most >= MIN_LIMIT + READ_HINT_CHARS + handle.len())
    }

    /// Returns the text after the first marker, which states how to read the omitted part. Empty if it does
    /// not fit.
    pub(super) fn read_hint(&self) -> String {
        self.marker_handle().map(|handle| read_hint(handle, self.way)).unwrap_or_default()
    }

    /// Returns how much must be buffered until a value is certainly too large, in characters or bytes. A text
    /// with more than eight characters per allowed token counts as too large without counting its tokens.
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

    /// Whether the text is within the limit without changes.
    pub(super) fn fits(&self, text: &str) -> bool {
        match self.unit {
            Unit::Tokens(count) => {
                text.len() <= self.most || self.size(text) <= self.max_buffered() && count(text) <= self.most
            }
            Unit::Chars | Unit::Bytes => text.len() <= self.most || self.size(text) <= self.most,
        }
    }

    /// Renders a value within the limit. For limits in tokens, it tries smaller and smaller sizes, because
    /// token counts of parts do not add up.
    pub(super) fn render_within<T>(&self, render: impl Fn(usize) -> T, text: impl Fn(&T) -> &str) -> T {
        let Unit::Tokens(count) = self.unit else { return render(self.most) };
        let mut size = self.most.saturating_mul(4);
        loop {
            let rendered = render(size);
            let tokens = count(text(&rendered));
            // At this size, the result contains little more than markers, so a smaller size would not help.
            if tokens <= self.most || size <= MIN_LIMIT / 2 {
                return rendered;
            }
            let scaled = size as u128 * self.most as u128 / tokens as u128;
            size = (usize::try_from(scaled).unwrap_or(size) * 49 / 50).min(size - 1);
        }
    }
}
