//! The model table: prices, limits and capabilities, as dated data (CX-6).

mod file;
mod name;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::price::Prices;
use name::{candidates, is_pattern, matches};

/// The table that `cargo xtask models` generates from the packages that it names.
const BUILTIN: &str = include_str!("../data/models.json");

/// A model in the table. Unknown fields are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// Its name, in lower case.
    pub id: String,
    /// The company that serves it.
    pub provider: String,
    /// Size of the context window in tokens, for a prompt and its reply together.
    pub context_tokens: Option<u64>,
    /// Longest prompt, in tokens.
    pub max_input_tokens: Option<u64>,
    /// Longest reply, in tokens.
    pub max_output_tokens: Option<u64>,
    /// Whether the model continues an unfinished message of its own. `None` if this is unknown.
    pub prefill: Option<bool>,
    /// Prompts below this many tokens are not cached.
    pub cache_minimum_tokens: Option<u64>,
    /// The day on which it is retired, as `YYYY-MM-DD`.
    pub retires: Option<String>,
    /// The prices of its tokens.
    pub prices: Prices,
}

impl Model {
    /// Returns the most tokens of a request: the smaller of the longest prompt and the context window.
    pub fn prompt_limit_tokens(&self) -> Option<u64> {
        match (self.max_input_tokens, self.context_tokens) {
            (Some(input), Some(window)) => Some(input.min(window)),
            (input, window) => input.or(window),
        }
    }
}

/// A package that the table was generated from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence.
    pub licence: String,
    /// What was taken from it.
    pub of: String,
}

/// Error of a model table that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// The table is not JSON of the expected form.
    #[error("the table of models cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// A day is invalid.
    #[error("the table of models has `{0}` for a day: write YYYY-MM-DD")]
    Day(String),
    /// An hour is invalid.
    #[error("the table of models has `{0}` for an hour: write HH:MM")]
    Hour(String),
}

/// Models by name. Clones share the table.
#[derive(Debug, Clone, Default)]
pub struct Models {
    table: Arc<Table>,
    /// The user's models, by patterns with `*`. They come before the table, the last one first.
    own: Vec<(String, Model)>,
}

#[derive(Debug, Default)]
struct Table {
    as_of: String,
    sources: Vec<Source>,
    entries: Vec<Model>,
    /// The first model with each exact name.
    by_name: HashMap<String, usize>,
    /// Prefixes of names, the longest first.
    beginnings: Vec<(String, usize)>,
}

impl Models {
    /// Returns the builtin table.
    ///
    /// ```
    /// let models = endmark_context::Models::builtin();
    /// let model = models.find("openrouter/anthropic/claude-sonnet-4.5-20250929").unwrap();
    /// assert_eq!((model.id.as_str(), model.prefill), ("claude-sonnet-4-5", Some(true)));
    /// assert!(models.find("no-such-model").is_none());
    /// ```
    pub fn builtin() -> &'static Self {
        static TABLE: OnceLock<Models> = OnceLock::new();
        // A test parses the table, so this cannot fail in a released program.
        TABLE.get_or_init(|| Self::parse(BUILTIN).unwrap_or_default())
    }

    /// Parses a table of the same form as the builtin one.
    pub fn parse(json: &str) -> Result<Self, ModelsError> {
        Ok(Self { table: Arc::new(file::read(json)?), own: Vec::new() })
    }

    /// Returns the date of the prices, as `YYYY-MM-DD`.
    pub fn as_of(&self) -> &str {
        &self.table.as_of
    }

    /// Returns the packages that the table was generated from.
    pub fn sources(&self) -> &[Source] {
        &self.table.sources
    }

    /// Iterates over all models of the table.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.table.entries.iter()
    }

    /// Adds a model of the user, by a name or a pattern with `*`.
    ///
    /// It has priority over the table and over models that were added earlier. For a name, missing limits and
    /// capabilities come from the model found so far.
    pub fn add(&mut self, pattern: &str, model: Model) {
        let mut model = model;
        if let Some(known) = self.find(pattern).filter(|_| !is_pattern(pattern)) {
            model.context_tokens = model.context_tokens.or(known.context_tokens);
            model.max_input_tokens = model.max_input_tokens.or(known.max_input_tokens);
            model.max_output_tokens = model.max_output_tokens.or(known.max_output_tokens);
            model.prefill = model.prefill.or(known.prefill);
            model.cache_minimum_tokens = model.cache_minimum_tokens.or(known.cache_minimum_tokens);
        }
        self.own.push((pattern.to_lowercase(), model));
    }

    /// Returns the model that a request or a reply names.
    ///
    /// Returns `None` if it is unknown; its price is then unknown too.
    ///
    /// The name is looked up unchanged, then without its date, then without the providers before it. Last comes the
    /// longest prefix in the table.
    pub fn find(&self, name: &str) -> Option<&Model> {
        let lower = name.trim().to_lowercase();
        if let Some((_, own)) = self.own.iter().rev().find(|(pattern, _)| matches(pattern, &lower)) {
            return Some(own);
        }
        // Fast path: most names are exactly those of the table, and each call looks them up several times.
        let table = &*self.table;
        if let Some(index) = table.by_name.get(&lower) {
            return table.entries.get(*index);
        }
        let names = candidates(&lower);
        let exact = names.iter().find_map(|name| table.by_name.get(name.as_str()).copied());
        let begun = || names.iter().find_map(|name| table.longest_beginning(name));
        exact.or_else(begun).and_then(|index| table.entries.get(index))
    }
}

impl Table {
    fn longest_beginning(&self, name: &str) -> Option<usize> {
        self.beginnings
            .iter()
            .find(|(beginning, _)| name.starts_with(beginning.as_str()))
            .map(|(_, index)| *index)
    }
}

#[cfg(test)]
mod tests;
