//! The table of models: prices, limits and capabilities, as dated data (CX-6).

mod file;
mod name;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::price::Prices;
use name::{candidates, is_pattern, matches};

/// The table that `cargo xtask models` makes from the packages that it names.
const BUILTIN: &str = include_str!("../data/models.json");

/// A model, as far as the table knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// Its name, in small letters.
    pub id: String,
    /// Who serves it.
    pub provider: String,
    /// Tokens of a prompt and its reply together.
    pub context_tokens: Option<u64>,
    /// The longest prompt, in tokens.
    pub max_input_tokens: Option<u64>,
    /// The longest reply, in tokens.
    pub max_output_tokens: Option<u64>,
    /// Whether it goes on with an unfinished message of its own; none: not known.
    pub prefill: Option<bool>,
    /// Prompts below this many tokens are not cached.
    pub cache_minimum_tokens: Option<u64>,
    /// The day on which it is switched off, as `YYYY-MM-DD`.
    pub retires: Option<String>,
    /// What its tokens cost.
    pub prices: Prices,
}

impl Model {
    /// The most tokens that a request may bring: what the model takes, and what its window leaves for a reply.
    pub fn prompt_limit_tokens(&self) -> Option<u64> {
        match (self.max_input_tokens, self.context_tokens) {
            (Some(input), Some(window)) => Some(input.min(window)),
            (input, window) => input.or(window),
        }
    }
}

/// A package that the table was made from.
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

/// A table of models that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// It is no JSON of the table's form.
    #[error("the table of models cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// A day that is none.
    #[error("the table of models has `{0}` for a day: write YYYY-MM-DD")]
    Day(String),
    /// An hour that is none.
    #[error("the table of models has `{0}` for an hour: write HH:MM")]
    Hour(String),
}

/// Models by name. Its copies share the table.
#[derive(Debug, Clone, Default)]
pub struct Models {
    table: Arc<Table>,
    /// The user's own, by patterns with `*`; they are asked first, the last one before the others.
    own: Vec<(String, Model)>,
}

#[derive(Debug, Default)]
struct Table {
    as_of: String,
    sources: Vec<Source>,
    entries: Vec<Model>,
    /// By every name that is exactly a model's, the first one that has it.
    by_name: HashMap<String, usize>,
    /// What names begin with, the longest first.
    beginnings: Vec<(String, usize)>,
}

impl Models {
    /// The table in the program.
    ///
    /// ```
    /// let models = endmark_context::Models::builtin();
    /// let model = models.find("openrouter/anthropic/claude-sonnet-4.5-20250929").unwrap();
    /// assert_eq!((model.id.as_str(), model.prefill), ("claude-sonnet-4-5", Some(true)));
    /// assert!(models.find("no-such-model").is_none());
    /// ```
    pub fn builtin() -> &'static Self {
        static TABLE: OnceLock<Models> = OnceLock::new();
        // A test reads it: in a program that was built it can be read.
        TABLE.get_or_init(|| Self::parse(BUILTIN).unwrap_or_default())
    }

    /// Reads a table of the builtin one's form.
    pub fn parse(json: &str) -> Result<Self, ModelsError> {
        Ok(Self { table: Arc::new(file::read(json)?), own: Vec::new() })
    }

    /// The day that the prices are from, as `YYYY-MM-DD`.
    pub fn as_of(&self) -> &str {
        &self.table.as_of
    }

    /// The packages that the table was made from.
    pub fn sources(&self) -> &[Source] {
        &self.table.sources
    }

    /// Every model of the table.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.table.entries.iter()
    }

    /// Adds a model of the user's, by a name or a pattern with `*`. It stands before the table and before what was added
    /// earlier; what it does not say, the table's model of that name says.
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

    /// The model that a request or a reply names, or none: then nothing is known of its price.
    ///
    /// A name is looked up as it is, without the date behind it, and without the providers before it, in this order;
    /// then by the longest beginning that the table knows.
    pub fn find(&self, name: &str) -> Option<&Model> {
        let lower = name.trim().to_lowercase();
        if let Some((_, own)) = self.own.iter().rev().find(|(pattern, _)| matches(pattern, &lower)) {
            return Some(own);
        }
        // Most are named as the table names them, and each call asks several times.
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
