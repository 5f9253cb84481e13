//! The formats a text can be in, under the names they have everywhere.

use std::fmt;

/// What a text is supposed to be, and so what "whole" means for it (PC-1).
///
/// ```
/// use endmark_core::Format;
/// assert_eq!(Format::parse("json", None).unwrap(), Format::Json);
/// assert!(Format::parse("yaml", None).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// One strict RFC 8259 value; a byte order mark is allowed.
    Json,
    /// JSON values one after the other: JSON Lines, or concatenated.
    Jsonl,
    /// Text without a grammar; only incomplete UTF-8 is a cut.
    Text,
    /// Text that must end in this marker (trailing whitespace aside).
    Marker(String),
    /// Guessed from the text itself; the detection says what was found.
    Auto,
}

/// A format's name that is not known, or a marker that is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// No format has this name.
    #[error("unknown format `{0}`: use json, jsonl, text, marker or auto")]
    Unknown(String),
    /// `marker` was named without the marker itself.
    #[error("the format `marker` needs a marker that is not empty")]
    NoMarker,
}

impl Format {
    /// Reads a format's literal name; `marker` is used, and required, by the format of that name.
    pub fn parse(name: &str, marker: Option<&str>) -> Result<Self, FormatError> {
        match name {
            "json" => Ok(Self::Json),
            "jsonl" => Ok(Self::Jsonl),
            "text" => Ok(Self::Text),
            "auto" => Ok(Self::Auto),
            "marker" => match marker {
                Some(marker) if !marker.trim().is_empty() => Ok(Self::Marker(marker.to_owned())),
                _ => Err(FormatError::NoMarker),
            },
            other => Err(FormatError::Unknown(other.to_owned())),
        }
    }

    /// The literal name, as in commands and JSON answers.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Text => "text",
            Self::Marker(_) => "marker",
            Self::Auto => "auto",
        }
    }

    /// Whether a grammar says where a text of this format ends.
    pub fn has_grammar(&self) -> bool {
        matches!(self, Self::Json | Self::Jsonl | Self::Marker(_))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
