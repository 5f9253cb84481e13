//! How large a capped value may be, and in what.

use super::marker::way_to_read;

/// Counts the tokens of a text; the crate knows no tokenizer itself.
pub type CountTokens = fn(&str) -> usize;

/// What a limit counts.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Unicode characters.
    Chars,
    /// UTF-8 bytes.
    Bytes,
    /// Tokens, as this function counts them.
    Tokens(CountTokens),
}

/// Which part of a text is kept besides the lines that report errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// The beginning and the end; of what is left for them a third and two thirds.
    #[default]
    Both,
    /// The beginning.
    Head,
    /// The end.
    Tail,
}

/// What the tool is called by which a model reads the rest of a value.
pub const READ_TOOL: &str = "endmark_read";

/// By what the rest of a value can be read where a marker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// The command `endmark read HANDLE`.
    #[default]
    Command,
    /// The tool `endmark_read`, where a model is offered it.
    Tool,
}

impl Way {
    pub(super) const ALL: [Self; 2] = [Self::Command, Self::Tool];

    /// What stands before the handle.
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
    /// How much there may be, markers included.
    pub most: usize,
    /// What `most` counts.
    pub unit: Unit,
    /// How many items a list may have, and rows a table.
    pub max_items: usize,
    /// Which part of a text is kept.
    pub keep: Keep,
    /// Under what name the full value can be read; stands in warnings, and where there is room for it in markers.
    pub handle: Option<String>,
    /// By what the reader of a marker can read the full value.
    pub way: Way,
    /// Whether JSON keeps the types of its items and members: no marker is an item or a member of it, and objects keep all members.
    /// Only the warnings report then what is left out.
    pub keeps_types: bool,
}

/// The limit of characters where none is given (CX-5).
pub const DEFAULT_MAX_CHARS: usize = 200_000;
/// The limit of items where none is given (CX-5).
pub const DEFAULT_MAX_ITEMS: usize = 500;
/// The least limit, in any unit: there has to be room for a marker.
pub const LEAST_LIMIT: usize = 80;
/// What a marker takes besides where it names the command that reads the rest.
const HANDLE_ROOM: usize = 40;

/// Limits that no value could be capped to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// There is no room for a marker.
    #[error(
        "a limit of {most} leaves no room for the marker that says what is left out: it must be at least {least}"
    )]
    TooSmall {
        /// The limit.
        most: usize,
        /// The least that can be.
        least: usize,
    },
    /// No list could keep anything.
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
        if self.most < LEAST_LIMIT {
            return Err(LimitError::TooSmall { most: self.most, least: LEAST_LIMIT });
        }
        if self.max_items == 0 { Err(LimitError::NoItems) } else { Ok(()) }
    }

    /// The handle, where there is room for it in a marker; warnings have it always.
    pub(super) fn shown_handle(&self) -> Option<&str> {
        let handle = self.handle.as_deref();
        handle.filter(|handle| self.most >= LEAST_LIMIT + HANDLE_ROOM + handle.len())
    }

    /// What stands behind the first marker of a text: how to read the rest, where there is room for that.
    pub(super) fn way_to_read(&self) -> String {
        self.shown_handle().map(|handle| way_to_read(handle, self.way)).unwrap_or_default()
    }

    /// How many characters or bytes have to be held until it is certain that a value is too large. A text with more
    /// than eight characters to a token is taken for too large without a count.
    pub(super) fn held(&self) -> usize {
        match self.unit {
            Unit::Chars | Unit::Bytes => self.most,
            Unit::Tokens(_) => self.most.saturating_mul(8),
        }
    }

    /// The size of a text in the unit of [`Limits::held`].
    pub(super) fn size(&self, text: &str) -> usize {
        match self.unit {
            Unit::Bytes => text.len(),
            Unit::Chars | Unit::Tokens(_) => text.chars().count(),
        }
    }

    /// Whether a text is within the limit as it is.
    pub(super) fn admits(&self, text: &str) -> bool {
        match self.unit {
            Unit::Tokens(count) => {
                text.len() <= self.most || self.size(text) <= self.held() && count(text) <= self.most
            }
            Unit::Chars | Unit::Bytes => text.len() <= self.most || self.size(text) <= self.most,
        }
    }

    /// Renders within the limit. Tokens cannot be added up, so there the size is approached from above.
    pub(super) fn fit<T>(&self, render: impl Fn(usize) -> T, text: impl Fn(&T) -> &str) -> T {
        let Unit::Tokens(count) = self.unit else { return render(self.most) };
        let mut size = self.most.saturating_mul(4);
        loop {
            let rendered = render(size);
            let tokens = count(text(&rendered));
            // A character is at least as large as its marker then, and what is left of the value is nothing.
            if tokens <= self.most || size <= LEAST_LIMIT / 2 {
                return rendered;
            }
            let scaled = size as u128 * self.most as u128 / tokens as u128;
            size = (usize::try_from(scaled).unwrap_or(size) * 49 / 50).min(size - 1);
        }
    }
}
