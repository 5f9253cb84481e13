//! Whether an artifact is finished.

use endmark::guard::{Artifact, CriteriaError, Guard, Template};
use serde::Deserialize;

use crate::failure::Failure;
use crate::options::{answer, parse, text};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// The artifact's file name, by which code is recognised.
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedTemplate {
    name: String,
    text: String,
}

pub(crate) fn guard(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (artifact, options): (_, Options) = (text(inputs, 0)?, parse(options)?);
    let invalid =
        |error: CriteriaError| Failure::invalid("invalid_criteria", format!("{error}. {}", error.hint()));
    let template = options.template.map(|template| Template::read(&template.name, &template.text));
    let mut template = template.transpose().map_err(invalid)?.unwrap_or_default();
    let named = options.required_sections.iter().chain(&options.forbidden_phrases);
    if let Some(empty) = named.into_iter().find(|name| !name.contains(char::is_alphanumeric)) {
        let message = format!("a section or phrase needs a letter or a digit: `{empty}`");
        return Err(Failure::invalid("invalid_criteria", message));
    }
    let criteria = &mut template.criteria;
    criteria.min_lines = options.min_lines.or(criteria.min_lines);
    criteria.required_sections.extend(options.required_sections);
    criteria.forbidden_phrases.extend(options.forbidden_phrases);
    criteria.handoffs_are_forbidden &= !options.forbidden_phrases_only;
    let guard = Guard::of_template(template);
    let artifact = match &options.name {
        Some(name) => Artifact::read_file(artifact, name),
        None => Artifact::read(artifact),
    };
    answer(&guard.judge(&artifact))
}
