//! Conditions in addition to the format that determine which requests an upstream gets.

use std::fmt;
use std::str::FromStr;

use http::{HeaderMap, HeaderName};

/// The conditions of an upstream. A request must match at least one pattern of each given kind.
///
/// ```
/// use endmark_gateway::Conditions;
/// let conditions = Conditions { models: vec!["qwen*".parse()?], ..Conditions::default() };
/// assert!(!conditions.is_empty());
/// # Ok::<(), endmark_gateway::UnusablePattern>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Patterns for the path of the request, without the query.
    pub paths: Vec<Pattern>,
    /// Patterns for the model's name.
    pub models: Vec<Pattern>,
    /// Patterns for header fields.
    pub headers: Vec<HeaderPattern>,
}

impl Conditions {
    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.models.is_empty() && self.headers.is_empty()
    }

    /// Whether a request with this path, these headers and this model meets the conditions.
    pub(crate) fn are_met(&self, path: &str, headers: &HeaderMap, model: Option<&str>) -> bool {
        self.may_be_met(path, headers)
            && (self.models.is_empty()
                || model.is_some_and(|model| self.models.iter().any(|pattern| pattern.matches(model))))
    }

    /// Like `are_met`, for any model.
    pub(crate) fn may_be_met(&self, path: &str, headers: &HeaderMap) -> bool {
        (self.paths.is_empty() || self.paths.iter().any(|pattern| pattern.matches(path)))
            && (self.headers.is_empty() || self.headers.iter().any(|pattern| pattern.matches(headers)))
    }
}

impl fmt::Display for Conditions {
    /// Formats the conditions as in the configuration.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        let mut list = |key: &str, patterns: Vec<String>| {
            if patterns.is_empty() {
                return Ok(());
            }
            write!(formatter, "{before}{key} = {patterns:?}")?;
            before = " and ";
            Ok(())
        };
        list("for_paths", self.paths.iter().map(Pattern::to_string).collect())?;
        list("for_models", self.models.iter().map(Pattern::to_string).collect())?;
        list("for_headers", self.headers.iter().map(HeaderPattern::to_string).collect())
    }
}

/// A pattern in which `*` matches any number of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Whether the pattern matches the whole text.
    pub fn matches(&self, text: &str) -> bool {
        let Some((beginning, rest)) = self.0.split_once('*') else { return self.0 == text };
        let (between, end) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(text) = text.strip_prefix(beginning).and_then(|text| text.strip_suffix(end)) else {
            return false;
        };
        // Matching each piece as early as possible leaves the most text for the following pieces.
        between
            .split('*')
            .try_fold(text, |text, piece| text.split_once(piece).map(|(_, behind)| behind))
            .is_some()
    }
}

impl FromStr for Pattern {
    type Err = UnusablePattern;

    fn from_str(text: &str) -> Result<Self, UnusablePattern> {
        if text.trim().is_empty() { Err(UnusablePattern::Empty) } else { Ok(Self(text.to_owned())) }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A pattern for a header: `x-team: blue*`, or `x-team` for any value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderPattern {
    name: HeaderName,
    value: Option<Pattern>,
}

impl HeaderPattern {
    fn matches(&self, headers: &HeaderMap) -> bool {
        headers.get_all(&self.name).iter().any(|value| match &self.value {
            None => true,
            Some(pattern) => value.to_str().is_ok_and(|value| pattern.matches(value.trim())),
        })
    }
}

impl FromStr for HeaderPattern {
    type Err = UnusablePattern;

    fn from_str(text: &str) -> Result<Self, UnusablePattern> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name, Some(value.trim().parse()?)),
            None => (text, None),
        };
        let name = name.trim().parse().map_err(|_| UnusablePattern::Field(name.trim().to_owned()))?;
        Ok(Self { name, value })
    }
}

impl fmt::Display for HeaderPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(formatter, "{}: {value}", self.name),
            None => write!(formatter, "{}", self.name),
        }
    }
}

/// Error for a pattern that cannot match anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusablePattern {
    /// The pattern is empty.
    #[error("a pattern is empty: `*` matches anything")]
    Empty,
    /// The name cannot be the name of a header field.
    #[error("`{0}` is not the name of a header field: write `NAME` or `NAME: VALUE`")]
    Field(String),
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        for (pattern, yes, no) in [
            ("gpt-4o", &["gpt-4o"][..], &["gpt-4o-mini", "xgpt-4o", "GPT-4o", ""][..]),
            ("gpt-*", &["gpt-", "gpt-4o"], &["gpt", "o3"]),
            ("*", &["", "anything"], &[]),
            ("*/qwen*", &["org/qwen", "a/b/qwen-3"], &["qwen-3"]),
            ("a*b*c", &["abc", "a-b-b-c", "abcbc"], &["ab", "acb", "a-c"]),
            ("aa*aa", &["aaaa", "aa-aa"], &["aaa", "aa"]),
            ("*ä*", &["bär"], &["bar"]),
        ] {
            let parsed: Pattern = pattern.parse().unwrap();
            assert!(yes.iter().all(|text| parsed.matches(text)), "{pattern}");
            assert!(!no.iter().any(|text| parsed.matches(text)), "{pattern}");
        }
    }

    #[test]
    fn one_pattern_of_each_kind_must_match() {
        let conditions = Conditions {
            paths: vec!["/v1/chat/*".parse().unwrap()],
            models: vec!["a*".parse().unwrap(), "b".parse().unwrap()],
            headers: vec!["X-Team: blue".parse().unwrap(), "x-any".parse().unwrap()],
        };
        let sent = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
        };
        let path = "/v1/chat/completions";
        assert!(conditions.are_met(path, &sent("x-team", "blue"), Some("b")));
        assert!(conditions.are_met(path, &sent("x-any", ""), Some("abc")));
        for (path, headers, model) in [
            ("/v1/responses", sent("x-any", ""), Some("b")),
            (path, sent("x-team", "red"), Some("b")),
            (path, HeaderMap::new(), Some("b")),
            (path, sent("x-any", ""), Some("c")),
            (path, sent("x-any", ""), None),
        ] {
            assert!(!conditions.are_met(path, &headers, model), "{path} {headers:?} {model:?}");
        }
    }

    #[test]
    fn unsatisfiable_conditions_are_refused() {
        assert_eq!(" ".parse::<Pattern>(), Err(UnusablePattern::Empty));
        assert_eq!("x-team:".parse::<HeaderPattern>(), Err(UnusablePattern::Empty));
        assert!("two words: x".parse::<HeaderPattern>().unwrap_err().to_string().contains("`two words`"));
        assert_eq!("X-Team :  a b ".parse::<HeaderPattern>().unwrap().to_string(), "x-team: a b");
    }

    /// Tries all ways to match the wildcards.
    fn matches_exhaustively(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => {
                (0..=text.len()).any(|taken| matches_exhaustively(rest, &text[taken..]))
            }
            ([first, rest @ ..], [second, behind @ ..]) => {
                first == second && matches_exhaustively(rest, behind)
            }
            _ => false,
        }
    }

    #[test]
    fn greedy_matching_agrees_with_exhaustive_matching() {
        let words = |letters: &'static [u8], longest: u32| {
            (0..=longest).flat_map(move |length| {
                (0..letters.len().pow(length)).map(move |mut number| {
                    let letter = |_| {
                        let letter = letters[number % letters.len()];
                        number /= letters.len();
                        char::from(letter)
                    };
                    (0..length).map(letter).collect::<String>()
                })
            })
        };
        for pattern in words(b"ab*", 6).skip(1) {
            let parsed: Pattern = pattern.parse().unwrap();
            for text in words(b"ab", 5) {
                let expected = matches_exhaustively(pattern.as_bytes(), text.as_bytes());
                assert_eq!(parsed.matches(&text), expected, "{pattern} {text}");
            }
        }
    }
}
