//! One finding, and what its fields mean. (AR-1)

use std::fmt;

use super::location::{Location, Place};
use super::vocabulary::list_of;

/// What an agent found, field by field (AR-1).
///
/// A field that an author did not give is none; nothing is guessed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finding {
    /// What the author calls it.
    pub id: FindingId,
    /// What is wrong, in one line; may be empty.
    pub title: String,
    /// How bad it is.
    pub severity: Option<Severity>,
    /// The weaknesses it is an instance of; may be empty.
    pub cwe: Vec<Cwe>,
    /// Where it is.
    pub location: Option<Location>,
    /// Where the data comes from.
    pub source: Option<String>,
    /// Where the data does harm.
    pub sink: Option<String>,
    /// How it gets there.
    pub flow: Option<String>,
    /// What shows it: lines of code, mostly.
    pub evidence: Option<Evidence>,
    /// It was cut when it was first handed over, and has been annotated so (AR-5).
    pub originally_truncated: bool,
    /// Fields that are not known, as they were written.
    pub other: Vec<OtherField>,
    /// Severity or weakness is in the first line: `[F001] Critical | CWE-89 | Title`.
    pub is_headed: bool,
}

/// A field that is not known: it is kept, and written at the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherField {
    /// Its name, as it was written.
    pub name: String,
    /// Its value; in block form a line feed precedes each line below the name.
    pub value: String,
    /// The canonical name of the known field before it; empty without one.
    pub after: &'static str,
}

/// A field of a finding, as it is written.
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
    /// Those that a complete finding has (AR-1).
    pub const NEEDED: [Self; 5] = [Self::Severity, Self::Location, Self::Source, Self::Sink, Self::Evidence];

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

    /// The name in the canonical form.
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
    /// The files and lines that its location names.
    pub(super) fn places(&self) -> &[Place] {
        self.location.as_ref().map(Location::places).unwrap_or_default()
    }

    /// Whether nothing is said but its title.
    pub(super) fn is_bare(&self) -> bool {
        !Field::ALL.into_iter().any(|field| self.has(field))
    }

    /// Whether a field is there.
    pub fn has(&self, field: Field) -> bool {
        match field {
            Field::Severity => self.severity.is_some(),
            Field::Cwe => !self.cwe.is_empty(),
            Field::Location => self.location.is_some(),
            Field::Source => self.ends().0.is_some(),
            Field::Sink => self.ends().1.is_some(),
            Field::Flow => self.flow.is_some(),
            Field::OriginallyTruncated => self.originally_truncated,
            Field::Evidence => self.evidence.is_some(),
        }
    }

    /// Where the data comes from and where it does harm; where that is not said, the ends of the flow.
    pub fn ends(&self) -> (Option<&str>, Option<&str>) {
        let flow = self.flow.as_deref().unwrap_or_default();
        let arrow = ["→", "->"].into_iter().find(|arrow| flow.contains(arrow));
        let steps: Vec<&str> =
            arrow.map(|arrow| flow.split(arrow).map(str::trim).collect()).unwrap_or_default();
        let first = || steps.first().copied().filter(|step| !step.is_empty());
        let last = || steps.last().copied().filter(|step| !step.is_empty());
        (self.source.as_deref().or_else(first), self.sink.as_deref().or_else(last))
    }

    /// What it lacks of what a complete finding has (AR-1).
    pub fn missing(&self) -> Vec<Field> {
        // `[F001] 严重 | Title`: a severity in another language is in the title.
        let may_be_in_title = |field: Field| field == Field::Severity && self.title.contains(" | ");
        let is_missing = |field: &Field| !self.has(*field) && !may_be_in_title(*field);
        Field::NEEDED.into_iter().filter(is_missing).collect()
    }

    /// The weaknesses as they are written: `CWE-89, CWE-564`; empty if there is none.
    pub fn cwe_text(&self) -> String {
        self.cwe.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// The name of a finding inside of its result: `F001`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct FindingId {
    text: String,
    number: Option<u32>,
}

impl FindingId {
    /// The canonical name of the finding with this number, from 1.
    ///
    /// ```
    /// assert_eq!(endmark_findings::FindingId::numbered(7).to_string(), "F007");
    /// ```
    pub fn numbered(number: u32) -> Self {
        Self { text: format!("F{number:03}"), number: Some(number) }
    }

    /// Reads what stands between the brackets. `f-1` and `Finding 1` are `F001`; `F-AUTH-3` stays as it is; what does not
    /// begin with the `F` of a finding and end with a number is none.
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
        let (name, number) = numbered(text);
        // Types of numbers in code.
        let is_type = ["f16", "f32", "f64", "f128"].contains(&text);
        if number.is_empty() || is_type || text.chars().count() > Self::MOST_CHARACTERS {
            return None;
        }
        let word = name.trim_end_matches([' ', '-', '_', '.', '#']);
        if word.eq_ignore_ascii_case("f") || word.eq_ignore_ascii_case("finding") {
            return match number.parse() {
                Ok(number) => Some(Self::numbered(number)),
                // More than can be counted with: a name like any other.
                Err(_) => Some(Self { text: text.to_owned(), number: None }),
            };
        }
        let is_part = |character: char| {
            character.is_ascii_uppercase() || character.is_ascii_digit() || "-_.".contains(character)
        };
        let is_name = name.starts_with('F') && name.ends_with(['-', '_', '.']) && name.chars().all(is_part);
        is_name.then(|| Self { text: text.to_owned(), number: number.parse().ok() })
    }

    /// Takes any name: `SQLI-1`, `7`, `VULN-2024-3`; one that [`read`](Self::read) knows as it reads it. None if there is no
    /// name.
    ///
    /// ```
    /// use endmark_findings::FindingId;
    ///
    /// assert_eq!(FindingId::named("f1").unwrap().to_string(), "F001");
    /// assert_eq!(FindingId::named("SQLI-1").unwrap().to_string(), "SQLI-1");
    /// assert_eq!(FindingId::named("7").unwrap().number(), Some(7));
    /// ```
    pub fn named(text: &str) -> Option<Self> {
        let text = text.trim();
        let any = || {
            let shown = text.chars().filter(|sign| !sign.is_control()).take(Self::MOST_CHARACTERS);
            let text: String = shown.collect();
            let number = numbered(&text).1.parse().ok();
            (!text.is_empty()).then_some(Self { text, number })
        };
        Self::read(text).or_else(any)
    }

    /// A longer name is no name.
    const MOST_CHARACTERS: usize = 32;

    /// The number in it, if there is one that can be counted with.
    pub fn number(&self) -> Option<u32> {
        self.number
    }

    /// The name without its brackets.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A text without the digits that it ends with, and these.
fn numbered(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end_matches(|sign: char| sign.is_ascii_digit()).len())
}

impl fmt::Display for FindingId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// How bad a finding is; the worst comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The worst.
    Critical,
    /// Bad.
    High,
    /// Less bad.
    Medium,
    /// Hardly bad.
    Low,
    /// Worth knowing.
    Info,
    /// A word that is none of these, as it was written.
    Other(String),
}

impl Severity {
    /// Reads a severity; of `HIGH (CVSS 8.1)` the first word counts. A word that is none stays as it is written.
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
        // `Medium-High` and `Low/Medium` say two things, and so neither.
        let says_two = rest.trim_start().starts_with(['-', '/', '–']) && rest.contains(char::is_alphabetic);
        let known = match list_of("severity", &word.to_lowercase()) {
            Some("critical") => Some(Self::Critical),
            Some("high") => Some(Self::High),
            Some("medium") => Some(Self::Medium),
            Some("low") => Some(Self::Low),
            Some("info") => Some(Self::Info),
            _ => None,
        };
        known.filter(|_| !says_two).or_else(|| Some(Self::Other(text.to_owned())))
    }

    /// The word in the canonical form.
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

    /// Whether it is known to be less bad than High (AR-2).
    pub fn is_below_high(&self) -> bool {
        matches!(self, Self::Medium | Self::Low | Self::Info)
    }
}

/// A weakness of the Common Weakness Enumeration, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cwe(pub u32);

impl Cwe {
    /// All weaknesses that a text names, in order, each once: `CWE-89`, `cwe 089`, `CWE-89: SQL Injection`, `89`.
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
        let alone = Some(bare).filter(|bare| digits(bare) == *bare).and_then(|bare| bare.parse().ok());
        let mut found: Vec<Self> = Vec::new();
        let named = Self::named_in(text).into_iter();
        Self::add_new(&mut found, named.chain(alone.filter(|number| *number > 0).map(Self)));
        found
    }

    /// Adds those that are not there yet.
    pub(super) fn add_new(found: &mut Vec<Self>, more: impl IntoIterator<Item = Self>) {
        for cwe in more {
            if !found.contains(&cwe) && found.len() < Self::MOST {
                found.push(cwe);
            }
        }
    }

    /// Those that a text names behind the word.
    pub(super) fn named_in(text: &str) -> Vec<Self> {
        let lower = text.to_ascii_lowercase();
        let behind = lower.match_indices("cwe").map(|(at, word)| &lower[at + word.len()..]);
        let numbers = behind.filter_map(|rest| {
            let rest = rest.strip_prefix(".mitre.org/data/definitions/").unwrap_or(rest);
            digits(rest.trim_start_matches([' ', '-', '_', ':', '#', '–', '\u{2011}'])).parse().ok()
        });
        numbers.filter(|number| *number > 0).map(Self).collect()
    }

    /// More of them in one finding are not kept.
    const MOST: usize = 16;
}

fn digits(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

impl fmt::Display for Cwe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CWE-{}", self.0)
    }
}

/// What shows a finding: at least one line that is not blank, with no blank line at either end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Evidence(String);

impl Evidence {
    /// Takes a text; none if it is blank.
    ///
    /// ```
    /// use endmark_findings::Evidence;
    ///
    /// assert_eq!(Evidence::new("\n  a();\r\n\n").unwrap().as_str(), "  a();");
    /// assert_eq!(Evidence::new(" \n"), None);
    /// ```
    pub fn new(text: &str) -> Option<Self> {
        Self::of_lines(text.split('\n'))
    }

    /// Takes lines; none if they are all blank.
    pub fn of_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let lines: Vec<&str> = lines.into_iter().map(|line| line.trim_end_matches('\r')).collect();
        let first = lines.iter().position(|line| !line.trim().is_empty())?;
        let last = lines.iter().rposition(|line| !line.trim().is_empty())?;
        Some(Self(lines[first..=last].join("\n")))
    }

    /// Its lines, joined by line feeds.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its lines.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.split('\n')
    }
}
