//! Computes the features of many cases, from which `cargo xtask fit` derives the weights of the decision.

use endmark_text::{Format, Verdict};

use super::joint::Joint;
use super::seam::AskedFrom;
use super::{best_candidate, decision, is_same_value, plain, survivor};

/// The features of the best seam of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct SeamFeatures {
    /// The values, in the order of [`names`].
    pub row: Vec<f64>,
    /// The joined text.
    pub text: String,
    /// Whether the text is whole, as far as its format determines this.
    pub is_whole: bool,
}

/// Returns the names of the features, in the order of a row.
pub fn names() -> Vec<String> {
    decision::weight_names()
}

/// Returns the features of the best seam of two parts. Returns `None` if there is no candidate, or if
/// likelihood cannot decide the case.
pub fn seam_features(
    initial: &str,
    continuation: &str,
    format: &Format,
    from: AskedFrom,
) -> Option<SeamFeatures> {
    let joint = Joint::new(initial, continuation, format, from);
    if matches!(joint.verdict, Verdict::Malformed { .. }) || joint.continuation.trim().is_empty() {
        return None;
    }
    let (survivor, weighed) = best_candidate(&joint)?;
    if weighed.is_tie
        || weighed.is_likelier_unrelated
        || !joint.has_grammar() && plain::adds_nothing(&joint, &survivor)
    {
        return None;
    }
    let merged = survivor::into_merged(&joint, &survivor, weighed.confidence, weighed.alternatives);
    let is_whole = joint.format == Format::Text || merged.verdict.is_whole();
    Some(SeamFeatures { row: weighed.row.to_vec(), text: merged.text, is_whole })
}

/// Whether the seam of a joined text is the intended one. Text after the seam may be missing.
pub fn is_correct(judged: &SeamFeatures, intended: &str, format: &Format) -> bool {
    let joined = judged.text.as_str();
    let has_values = matches!(format, Format::Json | Format::Jsonl);
    joined.starts_with(intended.trim_end())
        || has_values && is_same_value(joined, intended)
        || (!judged.is_whole || !has_values) && intended.starts_with(joined)
}
