//! Rules for the fields of an answer, and the cuts that they detect. (EN-3)

use serde_json::Value;

use crate::detect::{Cut, FieldRule, detect_cut};
use crate::document::measure_json;
use crate::marker::{TRUNCATION_MARKER, before_ellipsis, ends_in_marker};
use crate::path::{FieldPath, FieldPattern};
use crate::walk::{Members, walk};
use crate::warning::{Size, Warning};

/// Members that backends use to announce another page.
const PAGE_TOKEN_MEMBERS: [&str; 7] = [
    "next_page_token",
    "nextPageToken",
    "nextToken",
    "NextToken",
    "continuation_token",
    "continuationToken",
    "@odata.nextLink",
];

/// Rules for the fields of an answer. The last matching rule counts.
///
/// ```
/// use endmark_envelope::{FieldRule, FieldRules};
///
/// let mut data = serde_json::json!({"issues": [{"title": "A title that was cu"}]});
/// let mut rules = FieldRules::default();
/// rules.add("data.issues[*].title".parse()?, FieldRule { max_bytes: Some(19), ..FieldRule::default() });
///
/// let warnings = rules.mark_cuts(&mut data);
/// assert_eq!(data["issues"][0]["title"], "A title that was cu…[truncated]");
/// assert_eq!(warnings[0].field.as_ref().unwrap().to_string(), "data.issues[0].title");
/// # Ok::<(), endmark_envelope::PathError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldRules {
    rules: Vec<(FieldPattern, FieldRule)>,
    default_rule: FieldRule,
}

impl FieldRules {
    /// Creates rules that detect nothing unless a rule is added, for data that does not come from a backend.
    pub fn exact() -> Self {
        Self { default_rule: FieldRule::exact(), ..Self::default() }
    }

    /// Adds a rule for these paths.
    pub fn add(&mut self, places: FieldPattern, rule: FieldRule) {
        self.rules.push((places, rule));
    }

    /// Returns the rule for a path, which may be the default rule.
    pub fn rule_for(&self, path: &FieldPath) -> &FieldRule {
        let matching = self.rules.iter().rev().find(|(places, _)| places.matches(path));
        matching.map_or(&self.default_rule, |(_, rule)| rule)
    }

    /// Returns the patterns with their rules.
    pub fn iter(&self) -> impl Iterator<Item = &(FieldPattern, FieldRule)> {
        self.rules.iter()
    }

    /// Finds the values that a backend cut in an envelope's data, adds missing markers to texts, and returns one
    /// warning for each value (EN-3).
    pub fn mark_cuts(&self, data: &mut Value) -> Vec<Warning> {
        let mut found: Vec<(FieldPath, Cut)> = Vec::new();
        walk(data, FieldPath::data(), |path, value, members| {
            if !matches!(value, Value::String(_) | Value::Array(_)) {
                return;
            }
            let rule = self.rule_for(path);
            let cut = match (members, value) {
                (Some(members), _) => detect_cut(value, &resolve(rule, value, members)),
                (None, _) => detect_cut(value, rule),
            };
            found.extend(cut.map(|cut| (path.clone(), cut)));
        });
        let disclosed = found.into_iter().filter_map(|(path, cut)| {
            let value = path.without_first().find_mut(data)?;
            let rule = self.rule_for(&path);
            let items = value.as_array().map_or(0, Vec::len);
            let size = match value {
                Value::String(text) => add_marker(text, rule),
                other => measure_json(other),
            };
            let mut warning = Warning::field_truncated(path, size, cut.evidence.message());
            warning.original_bytes = cut.original_bytes;
            warning.original_length = cut.original_chars;
            if let Some(all) = cut.original_items {
                warning.message = format!("{}: {items} of {all} items", cut.evidence.message());
            }
            warning.handle.clone_from(&rule.handle);
            Some(warning)
        });
        disclosed.collect()
    }
}

/// Returns the rule, completed with the values of sibling members.
fn resolve(rule: &FieldRule, value: &Value, members: &Members) -> FieldRule {
    let mut rule = rule.clone();
    let number = |name: &Option<String>| members.get(name.as_deref()?)?.as_u64();
    rule.declared_bytes = rule.declared_bytes.or_else(|| number(&rule.bytes_in));
    rule.declared_chars = rule.declared_chars.or_else(|| number(&rule.chars_in));
    rule.declared_items = rule.declared_items.or_else(|| number(&rule.items_in));
    if value.as_str().is_some_and(|text| has_longer_original(text, members)) {
        rule.markers.extend(["…", "..."].map(str::to_owned));
    }
    if value.is_array() {
        let is_token = |name: &str| match members.get(name) {
            Some(Value::String(token)) => !token.is_empty(),
            Some(Value::Number(_)) => true,
            Some(_) | None => false,
        };
        let named = rule.page_token_in.as_deref().is_some_and(is_token);
        rule.has_page_token |= named || PAGE_TOKEN_MEMBERS.into_iter().any(is_token);
    }
    rule
}

/// Returns whether a sibling of a text is longer and has the same beginning: `summary: "The harb…"` and
/// `body: "The harbour …"`.
fn has_longer_original(text: &str, members: &Members) -> bool {
    /// Maximum number of compared members, so that the time is linear in the size of the document.
    const MAX_MEMBERS: usize = 64;
    let texts = members.values().take(MAX_MEMBERS).filter_map(Value::as_str);
    before_ellipsis(text).is_some_and(|before| {
        before.len() >= MIN_COMMON_BYTES
            && texts.filter(|other| other.len() > text.len()).any(|other| other.starts_with(before))
    })
}

/// Minimum length of a common beginning in bytes. A shorter one may be a coincidence.
const MIN_COMMON_BYTES: usize = 8;

/// Adds the marker to a text that has none, and returns the size of the text without the marker.
fn add_marker(text: &mut String, rule: &FieldRule) -> Size {
    if let Some(own) = text.strip_suffix(TRUNCATION_MARKER) {
        return Size::of(own);
    }
    let size = Size::of(text);
    if !ends_in_marker(text, &rule.markers) && before_ellipsis(text).is_none() {
        text.push_str(TRUNCATION_MARKER);
    }
    size
}

#[cfg(test)]
mod tests;
