//! Functions that check whether an artifact is finished.

use endmark::guard::{Artifact, CriteriaError, Guard, Template};
use serde::Deserialize;

use crate::failure::Failure;
use crate::options::{answer, input_text, parse};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// The artifact's file name, which shows whether the artifact is code.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    template: Option<NamedTemplate>,
    #[serde(default)]
    min_lines: Option<usize>,
    #[serde(default)]
    required_sections: Vec<String>,
    #[serde(default)]
    forbidden_phrases: Vec<String>,
    #[serde(default)]
    forbidden_phrases_only: bool,
    /// The share of the model's context above which a run is at risk.
    #[serde(default)]
    token_usage_warning_threshold: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedTemplate {
    name: String,
    text: String,
}

pub(crate) fn guard(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (text, options): (_, Options) = (input_text(inputs, 0)?, parse(options)?);
    let (guard, name) = options.read()?;
    answer(&guard.judge(&artifact(text, name.as_deref())))
}

pub(crate) fn artifact<'t>(text: &'t str, name: Option<&str>) -> Artifact<'t> {
    name.map_or_else(|| Artifact::read(text), |name| Artifact::read_file(text, name))
}

impl Options {
    /// Returns the guard and the artifact's name.
    pub(crate) fn read(self) -> Result<(Guard, Option<String>), Failure> {
        let invalid =
            |error: CriteriaError| Failure::invalid("invalid_criteria", format!("{error}. {}", error.hint()));
        let template = self.template.map(|template| Template::read(&template.name, &template.text));
        let mut template = template.transpose().map_err(invalid)?.unwrap_or_default();
        let named = self.required_sections.iter().chain(&self.forbidden_phrases);
        if let Some(empty) = named.into_iter().find(|name| !name.contains(char::is_alphanumeric)) {
            let message = format!("a section or phrase needs a letter or a digit: `{empty}`");
            return Err(Failure::invalid("invalid_criteria", message));
        }
        let criteria = &mut template.criteria;
        criteria.min_lines = self.min_lines.or(criteria.min_lines);
        criteria.required_sections.extend(self.required_sections);
        criteria.forbidden_phrases.extend(self.forbidden_phrases);
        criteria.handoffs_are_forbidden &= !self.forbidden_phrases_only;
        if let Some(threshold) = self.token_usage_warning_threshold {
            if !(threshold > 0.0 && threshold <= 1.0) {
                let message = "`token_usage_warning_threshold` must be above 0 and at most 1";
                let option = "token_usage_warning_threshold";
                return Err(Failure::invalid("invalid_criteria", message).about(&[option]));
            }
            criteria.token_usage_warning_threshold = threshold;
        }
        Ok((Guard::from_template(template), self.name))
    }
}
