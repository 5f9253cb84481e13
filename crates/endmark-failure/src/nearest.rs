//! Suggests a known name for a misspelled one.

/// Minimum similarity, from 0 to 1. Names below it are unrelated.
const MIN_SIMILARITY: f64 = 0.6;

/// Returns the most similar known name, or `None` if no name is similar enough.
///
/// A name with the correct last part counts as very similar, even if its section is wrong.
pub fn nearest(name: &str, known: impl IntoIterator<Item = String>) -> Option<String> {
    let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
    let likeness = |candidate: &String| {
        let whole = strsim::normalized_damerau_levenshtein(name, candidate);
        if last(name) == last(candidate) { whole.max(0.9) } else { whole }
    };
    known
        .into_iter()
        .map(|candidate| (likeness(&candidate), candidate))
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_names() -> Vec<String> {
        ["listen", "resume.mode", "resume.max_attempts", "correct.max_attempts"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_typo_finds_the_intended_word_and_nonsense_finds_nothing() {
        assert_eq!(nearest("resume.max_atempts", known_names()).as_deref(), Some("resume.max_attempts"));
        assert_eq!(nearest("resum.mode", known_names()).as_deref(), Some("resume.mode"));
        assert_eq!(nearest("mode", known_names()).as_deref(), Some("resume.mode"));
        assert_eq!(nearest("lisetn", known_names()).as_deref(), Some("listen"));
        assert_eq!(nearest("colour.of.sky", known_names()), None);
    }
}
