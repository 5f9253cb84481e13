//! Parses the query parameters of a URL.

use std::str::FromStr;

use endmark_wire::percent_decode;

use crate::answer::ConsoleError;

/// Decoded query parameters. An empty parameter counts as missing, because forms send empty fields.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the parameters. Rejects unknown ones, because they would silently have no effect.
    pub(crate) fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, ConsoleError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| percent_decode(&text.replace('+', " "));
            let (name, value) = (decoded(name), decoded(value));
            if !known.contains(&name.as_str()) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(ConsoleError::BadRequest(format!(
                    "there is no parameter `{name}` here, only: {known}"
                )));
            }
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(ConsoleError::BadRequest(format!("the parameter `{name}` occurs twice")));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// Returns the value of a parameter, or `None` if it is missing or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the same as `text`, as an owned string.
    pub(crate) fn owned_text(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// Returns a parameter as a number. Fails if it is not a valid number.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ConsoleError> {
        let parsed = |text: &str| {
            text.parse()
                .map_err(|_| ConsoleError::BadRequest(format!("`{name}` is `{text}`: use a whole number")))
        };
        self.text(name).map(parsed).transpose()
    }

    /// Returns the requested number of rows, from 1 to `most`.
    pub(crate) fn limit(&self, most: u32) -> Result<u32, ConsoleError> {
        let limit = self.number::<u32>("limit")?.unwrap_or(most.min(50));
        if (1..=most).contains(&limit) {
            return Ok(limit);
        }
        Err(ConsoleError::BadRequest(format!(
            "`limit` is {limit}: between 1 and {most} rows can be asked for"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_invalid_ones_are_rejected() {
        let query = Query::parse(Some("model=a%26b+c&limit=7&task="), &["model", "limit", "task"]).unwrap();
        assert_eq!(query.text("model"), Some("a&b c"));
        assert_eq!((query.text("task"), query.limit(500).unwrap()), (None, 7));
        for wrong in ["x=1", "model=a&model=b", "model=a&x"] {
            assert!(Query::parse(Some(wrong), &["model"]).is_err(), "{wrong}");
        }
        for wrong in ["limit=0", "limit=501", "limit=-1", "limit=many"] {
            assert!(Query::parse(Some(wrong), &["limit"]).unwrap().limit(500).is_err(), "{wrong}");
        }
    }
}
