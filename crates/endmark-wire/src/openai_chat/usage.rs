//! How many tokens a call took, as the provider reports them.

use crate::edit::Edits;
use crate::json::{Kind, Value};

/// Tokens of one call, or of several together.
///
/// ```
/// use endmark_wire::openai_chat::Usage;
/// let first = Usage { prompt: 10, completion: 20, total: 30, cached: Some(8), reasoning: None };
/// let second = Usage { prompt: 31, completion: 4, total: 35, cached: None, reasoning: None };
/// let sum = Usage { prompt: 41, completion: 24, total: 65, cached: Some(8), reasoning: None };
/// assert_eq!(first + second, sum);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub prompt: u64,
    /// Tokens that were generated, reasoning included.
    pub completion: u64,
    /// Both together.
    pub total: u64,
    /// Tokens of the prompt that were read from a cache.
    pub cached: Option<u64>,
    /// Generated tokens that were reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Reads a `usage` object; none if it counts nothing.
    pub(super) fn read(value: Value<'_>) -> Option<Self> {
        let count = |path| value.at(path).and_then(Value::as_u64);
        let (prompt, completion) = (count("prompt_tokens"), count("completion_tokens"));
        if prompt.is_none() && completion.is_none() {
            return None;
        }
        let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
        Some(Self {
            prompt,
            completion,
            total: count("total_tokens").unwrap_or_else(|| prompt.saturating_add(completion)),
            cached: count("prompt_tokens_details.cached_tokens").or_else(|| count("prompt_cache_hit_tokens")),
            reasoning: count("completion_tokens_details.reasoning_tokens"),
        })
    }

    /// The counts as a `usage` object.
    pub(super) fn json(&self) -> String {
        use std::fmt::Write as _;
        let mut json = format!(
            "{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{}",
            self.prompt, self.completion, self.total
        );
        // Writing to a string cannot fail.
        if let Some(cached) = self.cached {
            let _ = write!(json, ",\"prompt_tokens_details\":{{\"cached_tokens\":{cached}}}");
        }
        if let Some(reasoning) = self.reasoning {
            let _ = write!(json, ",\"completion_tokens_details\":{{\"reasoning_tokens\":{reasoning}}}");
        }
        json.push('}');
        json
    }

    /// Writes the counts over those of the document's `usage`, whose other details stay.
    pub(super) fn write(&self, edits: &mut Edits<'_>) {
        let root = edits.original();
        let Some(usage) = root.field("usage").filter(|usage| usage.kind() == Kind::Object) else {
            edits.set_field(root, "usage", &self.json());
            return;
        };
        edits.set_field(usage, "prompt_tokens", &self.prompt.to_string());
        edits.set_field(usage, "completion_tokens", &self.completion.to_string());
        edits.set_field(usage, "total_tokens", &self.total.to_string());
        let mut detail = |details: &str, name: &str, count: Option<u64>| {
            let Some(count) = count else { return };
            match usage.field(details).filter(|details| details.kind() == Kind::Object) {
                Some(details) => edits.set_field(details, name, &count.to_string()),
                None => edits.set_field(usage, details, &format!("{{\"{name}\":{count}}}")),
            }
        };
        detail("prompt_tokens_details", "cached_tokens", self.cached);
        detail("completion_tokens_details", "reasoning_tokens", self.reasoning);
    }
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let both = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        Self {
            prompt: self.prompt.saturating_add(other.prompt),
            completion: self.completion.saturating_add(other.completion),
            total: self.total.saturating_add(other.total),
            cached: both(self.cached, other.cached),
            reasoning: both(self.reasoning, other.reasoning),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<Usage> {
        Usage::read(Value::parse_str(json).unwrap())
    }

    #[test]
    fn counts_under_every_name() {
        let counts = Usage { prompt: 10, completion: 3, total: 13, cached: Some(8), reasoning: None };
        assert_eq!(
            read(r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":8}"#),
            Some(counts)
        );
        assert_eq!(read(&counts.json()), Some(counts));
        assert_eq!(read(r#"{"prompt_tokens":1}"#), Some(Usage { prompt: 1, total: 1, ..Usage::default() }));
        for nothing in ["null", "{}", "[]", r#"{"prompt_tokens":"many"}"#] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_sum_does_not_overflow() {
        let most = Usage {
            prompt: u64::MAX,
            completion: u64::MAX,
            total: u64::MAX,
            cached: Some(u64::MAX),
            reasoning: None,
        };
        assert_eq!(most + most, most);
    }
}
