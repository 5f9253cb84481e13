//! Detects hints of findings in text that cannot be parsed, so that they can be counted. (AR-6)

use crate::location::names_file;
use crate::vocabulary::find_list;
use crate::{Cwe, FileLines, Finding, FindingId, Location, Position};

/// The maximum number of characters of a text that are examined.
const MAX_TEXT_CHARS: usize = 2_000;

/// A hint of a finding: an id, a weakness, a severity with a file, or only text that may hide one.
#[derive(Debug)]
pub(super) struct FindingHint {
    pub(super) id: Option<FindingId>,
    cwe: Vec<Cwe>,
    places: Vec<FileLines>,
    pub(super) text: String,
    pub(super) position: Position,
}

impl FindingHint {
    /// Creates a hint for an id, or for text that may contain a finding.
    pub(super) fn new(id: Option<FindingId>, text: &str, position: Position) -> Self {
        let text = id.as_ref().map_or(text, FindingId::as_str).to_owned();
        Self { id, cwe: Vec::new(), places: Vec::new(), text, position }
    }

    /// Returns the hint in a text: a weakness, or a severity together with a file. Otherwise returns `None`.
    pub(super) fn find(text: &str, position: Position) -> Option<Self> {
        let text = text.char_indices().nth(MAX_TEXT_CHARS).map_or(text, |(at, _)| &text[..at]);
        let cwe = Cwe::find_in(text);
        let mut words = text.split(|ch: char| !ch.is_alphanumeric()).map(str::to_lowercase);
        let is_severity = |word: String| find_list("severity", &word).is_some_and(|list| list != "info");
        let has_severity = words.any(is_severity);
        if cwe.is_empty() && !has_severity {
            return None;
        }
        let mut places = Location::read(text).map(|location| location.places().to_vec()).unwrap_or_default();
        places.retain(|place| names_file(&place.file, place.lines.is_some()));
        let is_hint = !cwe.is_empty() || !places.is_empty();
        is_hint.then(|| Self { id: None, cwe, places, text: text.to_owned(), position })
    }

    /// Whether a parsed finding has the same weakness or file.
    pub(super) fn is_about(&self, finding: &Finding) -> bool {
        let is_place = |place: &FileLines| finding.file_lines().iter().any(|known| known.file == place.file);
        finding.cwe.iter().any(|cwe| self.cwe.contains(cwe)) || self.places.iter().any(is_place)
    }
}
