//! Matches names of models, which may have a provider prefix and a date suffix.

/// Returns the names under which the table may contain a model, the most specific one first. `name` must be
/// in lower case.
pub(super) fn candidate_names(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    let mut add = |name: &str| {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    add(without_date(name));
    // `openrouter/anthropic/claude-…`, `models/gemini-…`, `publishers/google/models/gemini-…`.
    let own = name.rsplit('/').next().unwrap_or(name);
    // `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
    let own = own.rsplit_once("anthropic.").map_or(own, |(_, own)| own);
    let own = own.split_once(':').map_or(own, |(own, _)| own);
    add(own);
    add(without_date(own));
    names
}

/// Removes a date suffix such as `-20250929`, `-2025-11-13` or `@20250929`. Bedrock's version after it is
/// removed, too.
fn without_date(name: &str) -> &str {
    let unversioned = match name.rsplit_once("-v") {
        Some((before, version)) if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) => {
            before
        }
        _ => name,
    };
    let separators = unversioned.char_indices().filter(|(_, c)| matches!(c, '-' | '@')).map(|(at, _)| at);
    for at in separators {
        let (before, date) = unversioned.split_at(at);
        let digits = date.bytes().filter(u8::is_ascii_digit).count();
        let is_of_digits = date.bytes().skip(1).all(|b| b.is_ascii_digit() || b == b'-');
        if digits == 8 && is_of_digits && !before.is_empty() {
            return before;
        }
    }
    name
}

/// Whether a name contains `*`, so that it is a pattern.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

/// Whether `name` matches `pattern`. A `*` matches any text, including an empty one.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_and_dates_are_removed_from_names() {
        for (name, last) in [
            ("gpt-5-2025-08-07", "gpt-5"),
            ("claude-opus-4-5@20251101", "claude-opus-4-5"),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
            ("openrouter/anthropic/claude-opus-4.6", "claude-opus-4.6"),
            ("models/gemini-2.5-pro", "gemini-2.5-pro"),
            ("-20250929", "-20250929"),
            ("a-b-c", "a-b-c"),
        ] {
            assert_eq!(candidate_names(name).last().map(String::as_str), Some(last), "{name}");
        }
    }

    #[test]
    fn a_star_matches_anything() {
        for (pattern, name, is) in [
            ("my-model*", "my-model-2", true),
            ("my-model*", "my-model", true),
            ("my-model", "my-model-2", false),
            ("*-mini", "gpt-5-mini", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("a*a", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
