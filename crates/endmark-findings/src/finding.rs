//! A finding and its fields. (AR-1)

use std::fmt;

use super::location::{FileLines, Location};
use super::vocabulary::find_list;

/// A finding of an agent, field by field (AR-1).
///
/// A field that the agent did not write is `None`. Nothing is guessed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finding {
    /// The id that the agent gave the finding.
    pub id: FindingId,
    /// The problem in one line; may be empty.
    pub title: String,
    /// The severity, or `None` if the agent did not state it.
    pub severity: Option<Severity>,
    /// The CWE numbers of the problem; may be empty.
    pub cwe: Vec<Cwe>,
    /// The affected files and lines.
    pub location: Option<Location>,
    /// The origin of the data.
    pub source: Option<String>,
    /// The place where the data does harm.
    pub sink: Option<String>,
    /// The path from source to sink.
    pub flow: Option<String>,
    /// The evidence, usually lines of code.
    pub evidence: Option<Evidence>,
    /// Whether the finding has the mark that it was cut when it was first delivered (AR-5).
    pub originally_truncated: bool,
    /// Unknown fields, as written.
    pub other: Vec<OtherField>,
    /// Whether the first line contains the severity or the CWE number: `[F001] Critical | CWE-89 | Title`.
    pub has_headline: bool,
}

/// An unknown field, which is kept and written back in the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherField {
    /// The name, as written.
    pub name: String,
    /// The value. If it is a block below the name, a line feed precedes each of its lines.
    pub value: String,
    /// The canonical name of the known field before it. Empty if no known field precedes it.
    pub after: &'static str,
}

/// A known field of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// `severity`
    Severity,
    /// `cwe`
    Cwe,
    /// `location`
    Location,
    /// `source`
    Source,
    /// `sink`
    Sink,
    /// `flow`
    Flow,
    /// `originally_truncated`
    OriginallyTruncated,
    /// `evidence`
    Evidence,
}

impl Field {
    /// The fields that a complete finding has (AR-1).
    pub const REQUIRED: [Self; 5] =
        [Self::Severity, Self::Location, Self::Source, Self::Sink, Self::Evidence];

    pub(super) const ALL: [Self; 8] = [
        Self::Severity,
        Self::Cwe,
        Self::Location,
        Self::Source,
        Self::Sink,
        Self::Flow,
        Self::OriginallyTruncated,
        Self::Evidence,
    ];

    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Severity => "severity",
            Self::Cwe => "cwe",
            Self::Location => "location",
            Self::Source => "source",
            Self::Sink => "sink",
            Self::Flow => "flow",
            Self::OriginallyTruncated => "originally_truncated",
            Self::Evidence => "evidence",
        }
    }
}

impl Finding {
    /// Returns the files and lines that the location names.
    pub(super) fn file_lines(&self) -> &[FileLines] {
        self.location.as_ref().map(Location::places).unwrap_or_default()
    }

    /// Whether the finding has no known field besides its title.
    pub(super) fn is_bare(&self) -> bool {
        !Field::ALL.into_iter().any(|field| self.has(field))
    }

    /// Whether a field is present. An end of the flow also counts as the source or the sink.
    pub fn has(&self, field: Field) -> bool {
        match field {
            Field::Severity => self.severity.is_some(),
            Field::Cwe => !self.cwe.is_empty(),
            Field::Location => self.location.is_some(),
            Field::Source => self.source_and_sink().0.is_some(),
            Field::Sink => self.source_and_sink().1.is_some(),
            Field::Flow => self.flow.is_some(),
            Field::OriginallyTruncated => self.originally_truncated,
            Field::Evidence => self.evidence.is_some(),
        }
    }

    /// Returns source and sink. If one is missing, the matching end of the flow replaces it.
    pub fn source_and_sink(&self) -> (Option<&str>, Option<&str>) {
        let flow = self.flow.as_deref().unwrap_or_default();
        let arrow = ["→", "->"].into_iter().find(|arrow| flow.contains(arrow));
        let steps: Vec<&str> =
            arrow.map(|arrow| flow.split(arrow).map(str::trim).collect()).unwrap_or_default();
        let first = || steps.first().copied().filter(|step| !step.is_empty());
        let last = || steps.last().copied().filter(|step| !step.is_empty());
        (self.source.as_deref().or_else(first), self.sink.as_deref().or_else(last))
    }

    /// Returns the required fields that are missing (AR-1).
    pub fn missing_fields(&self) -> Vec<Field> {
        // `[F001] 严重 | Title`: the title contains a severity in another language.
        let may_be_in_title = |field: Field| field == Field::Severity && self.title.contains(" | ");
        let is_missing = |field: &Field| !self.has(*field) && !may_be_in_title(*field);
        Field::REQUIRED.into_iter().filter(is_missing).collect()
    }

    /// Returns the weaknesses in the form `CWE-89, CWE-564`, or an empty string.
    pub fn cwe_text(&self) -> String {
        self.cwe.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// The id of a finding within its result: `F001`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct FindingId {
    text: String,
    number: Option<u32>,
}

impl FindingId {
    /// Returns the canonical id for a number, from 1.
    ///
    /// ```
    /// assert_eq!(endmark_findings::FindingId::from_number(7).to_string(), "F007");
    /// ```
    pub fn from_number(number: u32) -> Self {
        Self { text: format!("F{number:03}"), number: Some(number) }
    }

    /// Parses the text between the brackets of an id. `f-1` and `Finding 1` become `F001`; `F-AUTH-3` is unchanged.
    /// Returns `None` unless the text begins with the `F` of a finding and ends with a number.
    ///
    /// ```
    /// use endmark_findings::FindingId;
    ///
    /// assert_eq!(FindingId::read("Finding 12").unwrap().to_string(), "F012");
    /// assert_eq!(FindingId::read("F-AUTH-3").unwrap().to_string(), "F-AUTH-3");
    /// assert_eq!(FindingId::read("F4294967296").unwrap().number(), None);
    /// assert_eq!(FindingId::read("Findings 1-2"), None);
    /// assert_eq!(FindingId::read("f32"), None);
    /// ```
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let (name, number) = split_number(text);
        // `[f32]` is a numeric type in code.
        let is_type = ["f16", "f32", "f64", "f128"].contains(&text);
        if number.is_empty() || is_type || text.chars().count() > Self::MAX_ID_CHARS {
            return None;
        }
        let word = name.trim_end_matches([' ', '-', '_', '.', '#']);
        if word.eq_ignore_ascii_case("f") || word.eq_ignore_ascii_case("finding") {
            return match number.parse() {
                Ok(number) => Some(Self::from_number(number)),
                // A number above `u32::MAX`: keep the text as a name without a number.
                Err(_) => Some(Self { text: text.to_owned(), number: None }),
            };
        }
        let is_part = |character: char| {
            character.is_ascii_uppercase() || character.is_ascii_digit() || "-_.".contains(character)
        };
        let is_name = name.starts_with('F') && name.ends_with(['-', '_', '.']) && name.chars().all(is_part);
        is_name.then(|| Self { text: text.to_owned(), number: number.parse().ok() })
    }

    /// Creates an id from any name, such as `SQLI-1`, `7` or `VULN-2024-3`. Names that [`read`](Self::read) accepts
    /// are normalised. Returns `None` if the text is blank.
    ///
    /// ```
    /// use endmark_findings::FindingId;
    ///
    /// assert_eq!(FindingId::from_name("f1").unwrap().to_string(), "F001");
    /// assert_eq!(FindingId::from_name("SQLI-1").unwrap().to_string(), "SQLI-1");
    /// assert_eq!(FindingId::from_name("7").unwrap().number(), Some(7));
    /// ```
    pub fn from_name(text: &str) -> Option<Self> {
        let text = text.trim();
        let any = || {
            let shown = text.chars().filter(|ch| !ch.is_control()).take(Self::MAX_ID_CHARS);
            let text: String = shown.collect();
            let number = split_number(&text).1.parse().ok();
            (!text.is_empty()).then_some(Self { text, number })
        };
        Self::read(text).or_else(any)
    }

    /// The maximum length of an id. Longer names are shortened.
    const MAX_ID_CHARS: usize = 32;

    /// Returns the number at the end of the id, if it fits into a `u32`.
    pub fn number(&self) -> Option<u32> {
        self.number
    }

    /// Returns the id without brackets.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Splits a text into the part before its final digits, and these digits.
fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end_matches(|ch: char| ch.is_ascii_digit()).len())
}

impl fmt::Display for FindingId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The severity of a finding, worst first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The highest severity.
    Critical,
    /// High severity.
    High,
    /// Medium severity.
    Medium,
    /// Low severity.
    Low,
    /// For information only.
    Info,
    /// Any other word, as written.
    Other(String),
}

impl Severity {
    /// Parses a severity. Only the first word of `HIGH (CVSS 8.1)` counts. Unknown words are kept as written.
    ///
    /// ```
    /// use endmark_findings::Severity;
    ///
    /// assert_eq!(Severity::read("high (8.1)"), Some(Severity::High));
    /// assert_eq!(Severity::read("Medium-High"), Some(Severity::Other("Medium-High".into())));
    /// assert_eq!(Severity::read("  "), None);
    /// ```
    pub fn read(text: &str) -> Option<Self> {
        let is_ornament = |character: char| !character.is_alphanumeric();
        let text = text.trim();
        let bare = text.trim_start_matches(is_ornament);
        if bare.is_empty() {
            return None;
        }
        let end = bare.find(|character: char| !character.is_alphanumeric()).unwrap_or(bare.len());
        let (word, rest) = bare.split_at(end);
        // `Medium-High` and `Low/Medium` name two severities, so neither is chosen.
        let names_two = rest.trim_start().starts_with(['-', '/', '–']) && rest.contains(char::is_alphabetic);
        let known = match find_list("severity", &word.to_lowercase()) {
            Some("critical") => Some(Self::Critical),
            Some("high") => Some(Self::High),
            Some("medium") => Some(Self::Medium),
            Some("low") => Some(Self::Low),
            Some("info") => Some(Self::Info),
            _ => None,
        };
        known.filter(|_| !names_two).or_else(|| Some(Self::Other(text.to_owned())))
    }

    /// Returns the severity as one canonical word, or as written if it is unknown.
    pub fn name(&self) -> &str {
        match self {
            Self::Critical => "Critical",
            Self::High => "High",
            Self::Medium => "Medium",
            Self::Low => "Low",
            Self::Info => "Info",
            Self::Other(text) => text,
        }
    }

    /// Whether it is known to be less severe than High (AR-2).
    pub fn is_below_high(&self) -> bool {
        matches!(self, Self::Medium | Self::Low | Self::Info)
    }
}

/// A weakness of the Common Weakness Enumeration, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cwe(pub u32);

impl Cwe {
    /// Returns the distinct weaknesses in a text, in order: `CWE-89`, `cwe 089`, `CWE-89: SQL Injection`, `89`.
    ///
    /// ```
    /// use endmark_findings::Cwe;
    ///
    /// assert_eq!(Cwe::read("CWE-089: SQL Injection, cwe 564"), [Cwe(89), Cwe(564)]);
    /// assert_eq!(Cwe::read("89"), [Cwe(89)]);
    /// assert_eq!(Cwe::read("injection of 3 kinds"), []);
    /// ```
    pub fn read(text: &str) -> Vec<Self> {
        let bare = text.trim();
        let alone =
            Some(bare).filter(|bare| leading_digits(bare) == *bare).and_then(|bare| bare.parse().ok());
        let mut found: Vec<Self> = Vec::new();
        let named = Self::find_in(text).into_iter();
        Self::add_new(&mut found, named.chain(alone.filter(|number| *number > 0).map(Self)));
        found
    }

    /// Adds the weaknesses that are not in the list yet, up to the maximum.
    pub(super) fn add_new(found: &mut Vec<Self>, more: impl IntoIterator<Item = Self>) {
        for cwe in more {
            if !found.contains(&cwe) && found.len() < Self::MAX_CWES_PER_FINDING {
                found.push(cwe);
            }
        }
    }

    /// Returns the numbers that follow the word `CWE` in a text.
    pub(super) fn find_in(text: &str) -> Vec<Self> {
        let lower = text.to_ascii_lowercase();
        let tail = lower.match_indices("cwe").map(|(at, word)| &lower[at + word.len()..]);
        let numbers = tail.filter_map(|rest| {
            let rest = rest.strip_prefix(".mitre.org/data/definitions/").unwrap_or(rest);
            leading_digits(rest.trim_start_matches([' ', '-', '_', ':', '#', '–', '\u{2011}'])).parse().ok()
        });
        numbers.filter(|number| *number > 0).map(Self).collect()
    }

    /// The maximum number of weaknesses kept per finding.
    const MAX_CWES_PER_FINDING: usize = 16;
}

fn leading_digits(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

impl fmt::Display for Cwe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CWE-{}", self.0)
    }
}

/// The evidence of a finding. It has at least one line that is not blank, and no blank line at either end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Evidence(String);

impl Evidence {
    /// Creates evidence from a text, or returns `None` if the text is blank.
    ///
    /// ```
    /// use endmark_findings::Evidence;
    ///
    /// assert_eq!(Evidence::new("\n  a();\r\n\n").unwrap().as_str(), "  a();");
    /// assert_eq!(Evidence::new(" \n"), None);
    /// ```
    pub fn new(text: &str) -> Option<Self> {
        Self::from_lines(text.split('\n'))
    }

    /// Creates evidence from lines, or returns `None` if all are blank.
    pub fn from_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let lines: Vec<&str> = lines.into_iter().map(|line| line.trim_end_matches('\r')).collect();
        let first = lines.iter().position(|line| !line.trim().is_empty())?;
        let last = lines.iter().rposition(|line| !line.trim().is_empty())?;
        Some(Self(lines[first..=last].join("\n")))
    }

    /// Returns the lines, joined by line feeds.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the lines without line feeds.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.split('\n')
    }
}
