//! Reads criteria from parsed YAML, TOML or JSON.

use serde_json::{Map, Value};

use super::{Criteria, CriteriaError};

/// The keys in snake case. Camel case is also accepted.
const KEYS: [&str; 5] = [
    "min_lines",
    "required_sections",
    "forbidden_phrases",
    "forbidden_phrases_only",
    "token_usage_warning_threshold",
];

/// The key of the table that contains the criteria.
pub(super) const CRITERIA_KEY: &str = "success_criteria";

/// The minimum similarity of two keys for a suggestion.
const MIN_KEY_SIMILARITY: f64 = 0.5;

/// The largest allowed value of `min_lines`.
const MAX_MIN_LINES: u64 = 10_000_000;

/// Converts a key to snake case.
pub(super) fn snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 4);
    for character in key.trim().chars() {
        if character.is_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.extend(if character == '-' { '_' } else { character }.to_lowercase());
    }
    snake
}

/// Returns the table with the criteria, under any spelling of its key.
pub(super) fn criteria_table(object: &Map<String, Value>) -> Option<&Value> {
    object.iter().find(|(key, _)| snake_case(key) == CRITERIA_KEY).map(|(_, value)| value)
}

/// Returns the most similar known key, or `None` if no key is similar enough.
pub(super) fn nearest<'k>(key: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let snake = snake_case(key);
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(&snake, known);
    let known = known.into_iter().filter(|known| likeness(known) >= MIN_KEY_SIMILARITY);
    known.max_by(|left, right| likeness(left).total_cmp(&likeness(right))).map(str::to_owned)
}

/// Parses criteria. An unknown key is an error, because a misspelled criterion would silently not be applied.
pub(super) fn parse_criteria(value: &Value) -> Result<Criteria, CriteriaError> {
    let Value::Object(object) = value else {
        return Err(CriteriaError::InvalidValue {
            key: "successCriteria".to_owned(),
            expected: "a table of criteria",
        });
    };
    let mut criteria = Criteria::default();
    let mut seen: Vec<&'static str> = Vec::new();
    let mut only = None;
    for (written, value) in object {
        let snake = snake_case(written);
        let Some(key) = KEYS.into_iter().find(|key| *key == snake) else {
            return Err(CriteriaError::UnknownKey { key: written.clone(), nearest: nearest(written, KEYS) });
        };
        if seen.contains(&key) {
            return Err(CriteriaError::DuplicateKey(key));
        }
        seen.push(key);
        let wrong = |expected| CriteriaError::InvalidValue { key: written.clone(), expected };
        match key {
            "min_lines" => {
                let lines = value.as_u64().filter(|lines| (1..=MAX_MIN_LINES).contains(lines));
                let lines = lines.and_then(|lines| usize::try_from(lines).ok());
                criteria.min_lines =
                    Some(lines.ok_or_else(|| wrong("a whole number of lines, from 1 to 10,000,000"))?);
            }
            "required_sections" => {
                criteria.required_sections = texts(value).ok_or_else(|| wrong(EXPECTED_LIST))?;
            }
            "forbidden_phrases" => {
                criteria.forbidden_phrases = texts(value).ok_or_else(|| wrong(EXPECTED_LIST))?;
            }
            "forbidden_phrases_only" => only = Some(texts(value).ok_or_else(|| wrong(EXPECTED_LIST))?),
            _ => {
                let threshold = value.as_f64().filter(|threshold| *threshold > 0.0 && *threshold <= 1.0);
                criteria.token_usage_warning_threshold =
                    threshold.ok_or_else(|| wrong("a share above 0 and at most 1, such as 0.85"))?;
            }
        }
    }
    if seen.is_empty() {
        return Err(CriteriaError::NoCriteria("the table of criteria is empty".to_owned()));
    }
    Ok(match only {
        Some(only) => criteria.with_only_forbidden_phrases(only),
        None => criteria,
    })
}

const EXPECTED_LIST: &str = "a list of texts, each with at least one letter or digit";

fn texts(value: &Value) -> Option<Vec<String>> {
    let text =
        |item: &Value| item.as_str().filter(|text| text.contains(char::is_alphanumeric)).map(str::to_owned);
    value.as_array()?.iter().map(text).collect()
}
