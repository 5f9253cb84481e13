//! A template: the expected artifact of a stage, with criteria in its front matter.

use endmark_text::replace_lone_surrogates;
use serde_json::Value;

use super::read::{criteria_table, nearest, parse_criteria, snake_case};
use super::{Criteria, CriteriaError};
use crate::artifact::{Language, front_matter};

/// The criteria of a stage and the skeleton of its artifact.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template {
    /// The criteria for the artifact.
    pub criteria: Criteria,
    /// The text after the front matter. An artifact with the same text is reported as untouched. `None` for a
    /// criteria file.
    pub body: Option<String>,
}

impl Template {
    /// Parses a template or a criteria file. A file with the extension `.yaml`, `.yml`, `.toml` or `.json` is
    /// a criteria file. Any other file is Markdown with front matter.
    ///
    /// ```
    /// use endmark_guard::Template;
    ///
    /// let template = Template::read("report.md", "---\nsuccessCriteria:\n  minLines: 40\n---\n# Report\n").unwrap();
    /// assert_eq!(template.criteria.min_lines, Some(40));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be parsed, contains no criteria, or contains an unknown criterion.
    pub fn read(name: &str, text: &str) -> Result<Self, CriteriaError> {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let value = match ending.as_str() {
            "yaml" | "yml" => parse_yaml(text)?,
            "toml" => parse_toml(text)?,
            "json" => serde_json::from_str(&replace_lone_surrogates(text))
                .map_err(|error| parse_error("JSON", &error))?,
            _ => return Self::from_markdown(text),
        };
        let table = value.as_object().and_then(criteria_table).unwrap_or(&value);
        if table.is_null() {
            return Err(CriteriaError::NoCriteria("the file is empty".to_owned()));
        }
        Ok(Self { criteria: parse_criteria(table)?, body: None })
    }

    fn from_markdown(text: &str) -> Result<Self, CriteriaError> {
        let front = front_matter(text)
            .ok_or_else(|| CriteriaError::NoCriteria("the template has no front matter".to_owned()))?;
        let value = match front.language {
            Language::Yaml => parse_yaml(front.source)?,
            Language::Toml => parse_toml(front.source)?,
        };
        let object = value
            .as_object()
            .ok_or_else(|| CriteriaError::NoCriteria("the front matter is not a table".to_owned()))?;
        let Some(table) = criteria_table(object) else {
            let slip = object.keys().find(|key| nearest(key, [super::read::CRITERIA_KEY]).is_some());
            let misplaced = object.keys().find(|key| {
                nearest(key, ["min_lines", "required_sections", "forbidden_phrases"])
                    .is_some_and(|nearest| nearest == snake_case(key))
            });
            return Err(match (slip, misplaced) {
                (Some(key), _) => CriteriaError::UnknownKey {
                    key: key.clone(),
                    nearest: Some("successCriteria".to_owned()),
                },
                (None, Some(key)) => {
                    CriteriaError::NoCriteria(format!("`{key}` is beside `successCriteria` instead of in it"))
                }
                (None, None) => {
                    CriteriaError::NoCriteria("the front matter has no `successCriteria`".to_owned())
                }
            });
        };
        if table.is_null() {
            return Err(CriteriaError::NoCriteria("`successCriteria` is empty".to_owned()));
        }
        Ok(Self { criteria: parse_criteria(table)?, body: Some(text[front.body..].to_owned()) })
    }
}

fn parse_yaml(text: &str) -> Result<Value, CriteriaError> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text).map_err(|error| parse_error("YAML", &error))
}

fn parse_toml(text: &str) -> Result<Value, CriteriaError> {
    ::toml::from_str(text).map_err(|error| parse_error("TOML", &error))
}

fn parse_error(language: &'static str, error: &dyn std::error::Error) -> CriteriaError {
    CriteriaError::Unreadable { language, message: error.to_string().trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Criteria, String> {
        Template::read(name, text).map(|template| template.criteria).map_err(|error| error.to_string())
    }

    #[test]
    fn criteria_are_parsed_in_every_form_and_both_spellings() {
        let expected = Criteria {
            min_lines: Some(40),
            required_sections: vec!["Summary".to_owned(), "## Risks".to_owned()],
            forbidden_phrases: vec!["we hope".to_owned()],
            token_usage_warning_threshold: 0.7,
            ..Criteria::default()
        };
        for (name, text) in [
            (
                "t.md",
                "---\ntitle: T\nsuccessCriteria:\n  minLines: 40\n  requiredSections: [Summary, '## Risks']\n  forbiddenPhrases: [we hope]\n  tokenUsageWarningThreshold: 0.7\n---\n# T\n",
            ),
            (
                "t",
                "+++\n[success_criteria]\nmin_lines = 40\nrequired_sections = [\"Summary\", \"## Risks\"]\nforbidden_phrases = [\"we hope\"]\ntoken_usage_warning_threshold = 0.7\n+++\n",
            ),
            (
                "c.yaml",
                "min_lines: 40\nrequired_sections:\n  - Summary\n  - '## Risks'\nforbiddenPhrases:\n  - we hope\ntoken_usage_warning_threshold: 0.7\n",
            ),
            (
                "c.JSON",
                "\u{feff}{\"successCriteria\": {\"minLines\": 40, \"required_sections\": [\"Summary\", \"## Risks\"], \"forbidden_phrases\": [\"we hope\"], \"tokenUsageWarningThreshold\": 0.7}}",
            ),
        ] {
            assert_eq!(read(name, text).as_ref(), Ok(&expected), "{name}");
        }
    }

    #[test]
    fn a_custom_list_replaces_the_known_phrases() {
        let criteria = read("c.yml", "forbiddenPhrasesOnly: [bis dann]\nforbidden_phrases: [x]\n").unwrap();
        assert_eq!(
            (criteria.handoffs_are_forbidden, criteria.forbidden_phrases),
            (false, vec!["bis dann".to_owned()])
        );
        assert!(read("c.yml", "forbidden_phrases: [x]\n").unwrap().handoffs_are_forbidden);
    }

    #[test]
    fn an_unusable_template_is_refused_with_the_nearest_key() {
        for (name, text, said) in [
            ("t.md", "# T\n", "no front matter"),
            ("t.md", "---\ntitle: T\n---\n", "no `successCriteria`"),
            ("t.md", "---\nsuccesCriteria:\n  minLines: 1\n---\n", "the nearest is `successCriteria`"),
            ("t.md", "---\nminLines: 1\n---\n", "beside `successCriteria`"),
            ("t.md", "---\nsuccessCriteria:\n---\n", "is empty"),
            ("t.md", "---\nsuccessCriteria: {}\n---\n", "is empty"),
            ("t.md", "---\nsuccessCriteria: 3\n---\n", "must be a table"),
            ("t.md", "---\nsuccessCriteria: [\n---\n", "as YAML"),
            ("c.toml", "min_lines = \n", "as TOML"),
            ("c.json", "{", "as JSON"),
            ("c.yaml", "", "no criterion"),
            ("c.yaml", "minLine: 3\n", "the nearest is `min_lines`"),
            ("c.yaml", "required: [x]\n", "there is no criterion `required`"),
            ("c.yaml", "min_lines: 0\n", "from 1"),
            ("c.yaml", "min_lines: many\n", "a whole number"),
            ("c.yaml", "required_sections: Summary\n", "a list"),
            ("c.yaml", "forbidden_phrases: ['…']\n", "one letter"),
            ("c.yaml", "token_usage_warning_threshold: 1.5\n", "at most 1"),
            ("c.yaml", "minLines: 3\nmin_lines: 4\n", "twice"),
        ] {
            let error = read(name, text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
