//! The model table: dated prices, limits and capabilities of models (CX-6).

mod file;
mod name;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::price::Prices;
use name::{candidate_names, is_pattern, matches};

/// The built-in table. `cargo xtask models` generates it from the packages that it lists.
const BUILTIN_TABLE_JSON: &str = include_str!("../data/models.json");

/// A model in the table. A field is `None` if its value is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// The model's name, in lower case.
    pub id: String,
    /// The company that serves the model.
    pub provider: String,
    /// Size of the context window in tokens. The window contains the prompt and its reply.
    pub context_tokens: Option<u64>,
    /// Maximum prompt size in tokens.
    pub max_input_tokens: Option<u64>,
    /// Maximum reply size in tokens.
    pub max_output_tokens: Option<u64>,
    /// Whether the model can continue its own unfinished message. `None` if unknown.
    pub prefill: Option<bool>,
    /// The minimum number of tokens in a prompt that the provider caches.
    pub cache_minimum_tokens: Option<u64>,
    /// The day on which the model is retired, as `YYYY-MM-DD`.
    pub retires: Option<String>,
    /// The prices of the model's tokens.
    pub prices: Prices,
}

impl Model {
    /// Returns the maximum prompt size in tokens: the prompt limit or the context window, whichever is
    /// smaller.
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
pub struct SourcePackage {
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence.
    pub licence: String,
    /// What the table uses the package for.
    pub of: String,
}

/// Error of a model table that cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// The table is not JSON, or does not have the expected form.
    #[error("the table of models cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// A day is not written as `YYYY-MM-DD`, or does not exist.
    #[error("the table of models has `{0}` for a day: write YYYY-MM-DD")]
    Day(String),
    /// An hour is not written as `HH:MM`, or does not exist.
    #[error("the table of models has `{0}` for an hour: write HH:MM")]
    Hour(String),
}

/// Models by name. Clones share the built-in table.
#[derive(Debug, Clone, Default)]
pub struct Models {
    table: Arc<ModelTable>,
    /// Models that the user added, with names or patterns that may contain `*`. They override the table, and
    /// a later one overrides earlier ones.
    user_models: Vec<(String, Model)>,
}

#[derive(Debug, Default)]
struct ModelTable {
    as_of: String,
    sources: Vec<SourcePackage>,
    entries: Vec<Model>,
    /// Index of the first model with each exact name.
    by_name: HashMap<String, usize>,
    /// Prefixes of model names with the index of the model, longest prefix first.
    prefixes: Vec<(String, usize)>,
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
        // A test parses the table, so parsing cannot fail in a released program.
        TABLE.get_or_init(|| Self::parse(BUILTIN_TABLE_JSON).unwrap_or_default())
    }

    /// Parses a table in the format of the built-in one.
    pub fn parse(json: &str) -> Result<Self, ModelsError> {
        Ok(Self { table: Arc::new(file::read(json)?), user_models: Vec::new() })
    }

    /// Returns the date of the prices as `YYYY-MM-DD`.
    pub fn as_of(&self) -> &str {
        &self.table.as_of
    }

    /// Returns the packages that the table was generated from.
    pub fn sources(&self) -> &[SourcePackage] {
        &self.table.sources
    }

    /// Returns all models of the table, in its order.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.table.entries.iter()
    }

    /// Adds a model of the user under a name or a pattern with `*`.
    ///
    /// The model overrides the table and the models that were added before it. If the name is exact, missing
    /// limits and capabilities are copied from the model that the name has matched so far.
    pub fn add(&mut self, pattern: &str, model: Model) {
        let mut model = model;
        if let Some(known) = self.find(pattern).filter(|_| !is_pattern(pattern)) {
            model.context_tokens = model.context_tokens.or(known.context_tokens);
            model.max_input_tokens = model.max_input_tokens.or(known.max_input_tokens);
            model.max_output_tokens = model.max_output_tokens.or(known.max_output_tokens);
            model.prefill = model.prefill.or(known.prefill);
            model.cache_minimum_tokens = model.cache_minimum_tokens.or(known.cache_minimum_tokens);
        }
        self.user_models.push((pattern.to_lowercase(), model));
    }

    /// Returns the model for a name from a request or a reply. Returns `None` for an unknown model.
    ///
    /// The lookup tries the unchanged name, the name without its date, the name without provider prefixes,
    /// and finally the longest matching prefix in the table.
    pub fn find(&self, name: &str) -> Option<&Model> {
        let lower = name.trim().to_lowercase();
        if let Some((_, own)) = self.user_models.iter().rev().find(|(pattern, _)| matches(pattern, &lower)) {
            return Some(own);
        }
        // Fast path: most names are exactly as in the table, and each call looks its model up several times.
        let table = &*self.table;
        if let Some(index) = table.by_name.get(&lower) {
            return table.entries.get(*index);
        }
        let names = candidate_names(&lower);
        let exact = names.iter().find_map(|name| table.by_name.get(name.as_str()).copied());
        let longest_prefix = || names.iter().find_map(|name| table.longest_prefix(name));
        exact.or_else(longest_prefix).and_then(|index| table.entries.get(index))
    }
}

impl ModelTable {
    fn longest_prefix(&self, name: &str) -> Option<usize> {
        self.prefixes
            .iter()
            .find(|(beginning, _)| name.starts_with(beginning.as_str()))
            .map(|(_, index)| *index)
    }
}

#[cfg(test)]
mod tests;
