//! The formats of texts, and their names in commands, settings and output.

use std::fmt;

use crate::Verdict;

/// The required form of a text, which defines when the text is whole (PC-1).
///
/// ```
/// use endmark_text::Format;
/// assert_eq!(Format::parse("json", None).unwrap(), Format::Json);
/// assert!(Format::parse("yaml", None).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// One strict RFC 8259 value; a byte order mark is allowed.
    Json,
    /// Several JSON values: JSON Lines, or concatenated values.
    Jsonl,
    /// Markdown. It counts as truncated only if a construct, such as a fence, is certainly open.
    Markdown,
    /// XML-like tags, with any text in and around them. The text is whole if all tags are closed.
    Tags,
    /// Text without a grammar. It is truncated only within a UTF-8 character.
    Text,
    /// Text that must end in this marker. Whitespace may follow.
    Marker(String),
    /// Detect the format from the text, and report it.
    Auto,
}

/// Error of an unknown format name or a missing marker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// No format has this name.
    #[error("unknown format `{0}`: use json, jsonl, markdown, tags, text, marker or auto")]
    Unknown(String),
    /// The format is `marker`, but the marker is missing.
    #[error("the format `marker` needs a marker that is not empty")]
    NoMarker,
}

impl Format {
    /// Parses the name of a format. `marker` must be given for the format `marker`; other formats ignore it.
    pub fn parse(name: &str, marker: Option<&str>) -> Result<Self, FormatError> {
        match name {
            "json" => Ok(Self::Json),
            "jsonl" => Ok(Self::Jsonl),
            "markdown" => Ok(Self::Markdown),
            "tags" => Ok(Self::Tags),
            "text" => Ok(Self::Text),
            "auto" => Ok(Self::Auto),
            "marker" => match marker {
                Some(marker) if !marker.trim().is_empty() => Ok(Self::Marker(marker.to_owned())),
                _ => Err(FormatError::NoMarker),
            },
            other => Err(FormatError::Unknown(other.to_owned())),
        }
    }

    /// Returns the name that commands and JSON output use.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Markdown => "markdown",
            Self::Tags => "tags",
            Self::Text => "text",
            Self::Marker(_) => "marker",
            Self::Auto => "auto",
        }
    }

    /// Whether a grammar defines the end of a text, so that nothing can follow a whole text.
    pub fn has_grammar(&self) -> bool {
        matches!(self, Self::Json | Self::Jsonl | Self::Tags | Self::Marker(_))
    }

    /// Whether a client can require the format (PC-8). Markdown is included: it has no defined end, but its
    /// constructs must be closed. Plain text and `auto` require nothing.
    pub fn can_be_required(&self) -> bool {
        self.has_grammar() || *self == Self::Markdown
    }

    /// Whether a verdict proves that a text in this required format is whole, cut or malformed (PC-8). A cut
    /// is always evidence. A whole text is evidence only if nothing can follow: a JSON document other than a
    /// number, one element that encloses all others, or a marker. In all other cases, more rows or elements
    /// may follow.
    ///
    /// ```
    /// use endmark_text::{Format, Verdict};
    /// assert!(Format::Json.is_evidence(&Verdict::Whole, "[12]"));
    /// assert!(!Format::Json.is_evidence(&Verdict::Whole, "12"));
    /// assert!(!Format::Jsonl.is_evidence(&Verdict::Whole, "{}\n"));
    /// assert!(!Format::Markdown.is_evidence(&Verdict::Whole, "Done."));
    /// ```
    pub fn is_evidence(&self, verdict: &Verdict, text: &str) -> bool {
        let nothing_can_follow = || match self {
            Self::Json => !is_only_a_number(text),
            Self::Tags => is_one_element(text),
            Self::Marker(_) => true,
            Self::Jsonl | Self::Markdown | Self::Text | Self::Auto => false,
        };
        self.can_be_required() && (!verdict.is_whole() || nothing_can_follow())
    }
}

/// Whether a document consists only of a number, so that more digits may follow.
fn is_only_a_number(text: &str) -> bool {
    text.ends_with(|character: char| character.is_ascii_digit())
        && text.trim_start().chars().all(|sign| sign.is_ascii_digit() || "+-.eE".contains(sign))
}

/// Whether a single element encloses the text. Comments are not parsed: its tags must not occur in them.
fn is_one_element(text: &str) -> bool {
    let mut text = text.trim();
    // Skip a prolog, such as `<?xml version="1.0"?>` or `<!DOCTYPE html>`.
    while text.starts_with("<?") || text.starts_with("<!") {
        text = text.split_once('>').map_or("", |(_, rest)| rest.trim_start());
    }
    let Some(inner) = text.strip_prefix('<') else { return false };
    let is_of_name = |character: char| character.is_alphanumeric() || "-_.:".contains(character);
    let name = &inner[..inner.find(|sign| !is_of_name(sign)).unwrap_or(inner.len())];
    let mut open = 0_usize;
    for (at, _) in text.match_indices(name) {
        let after = &text[at + name.len()..];
        if name.is_empty() || after.starts_with(is_of_name) {
            continue;
        }
        let ends = after.find('>');
        let tag = ends.map_or("", |ends| &after[..ends]);
        if text[..at].ends_with("</") {
            open = open.saturating_sub(1);
        } else if text[..at].ends_with('<') && !tag.ends_with('/') {
            open += 1;
        } else {
            continue;
        }
        if open == 0 {
            return ends.is_some_and(|ends| after[ends + 1..].is_empty());
        }
    }
    false
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Truncation;

    #[test]
    fn rejects_an_unknown_format_and_names_it() {
        assert_eq!(Format::parse("JSON", None), Err(FormatError::Unknown("JSON".to_owned())));
        assert_eq!(Format::parse("", Some("END")), Err(FormatError::Unknown(String::new())));
    }

    #[test]
    fn only_the_marker_format_needs_a_usable_marker() {
        assert_eq!(Format::parse("marker", Some(" END ")), Ok(Format::Marker(" END ".to_owned())));
        for none in [None, Some(""), Some(" \n")] {
            assert_eq!(Format::parse("marker", none), Err(FormatError::NoMarker), "{none:?}");
        }
        assert_eq!(Format::parse("json", Some("")), Ok(Format::Json));
    }

    #[test]
    fn a_single_outer_element_is_recognised() {
        for whole in [
            "<a>b</a>",
            " <?xml version=\"1.0\"?>\n<a href=\"x\">\n<a>b</a><ab/></a>\n",
            "<!DOCTYPE html><html><p>a</p></html>",
            "<a><a/></a >",
        ] {
            assert!(is_one_element(whole), "{whole}");
        }
        for open in
            ["<a>b</a><a>c</a>", "<a>b</a> and so", "<a/><b/>", "text", "", "<a>b</a>\n<b>c</b>", "<>x</>"]
        {
            assert!(!is_one_element(open), "{open}");
        }
    }

    #[test]
    fn each_format_decides_which_verdicts_are_evidence() {
        let whole = Verdict::Whole;
        let cut = Verdict::Truncated(Truncation::default());
        for (format, has_grammar, can_be_demanded, testifies_to_whole, testifies_to_cut) in [
            (Format::Json, true, true, true, true),
            (Format::Jsonl, true, true, false, true),
            (Format::Tags, true, true, false, true),
            (Format::Marker("END".to_owned()), true, true, true, true),
            (Format::Markdown, false, true, false, true),
            (Format::Text, false, false, false, false),
            (Format::Auto, false, false, false, false),
        ] {
            assert_eq!(format.has_grammar(), has_grammar, "{format}");
            assert_eq!(format.can_be_required(), can_be_demanded, "{format}");
            assert_eq!(format.is_evidence(&whole, "{}"), testifies_to_whole, "{format}");
            assert_eq!(format.is_evidence(&cut, "{"), testifies_to_cut, "{format}");
        }
    }
}
