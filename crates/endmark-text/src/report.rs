//! Detections and closed texts as JSON, in the form that commands and packages return.

use std::borrow::Cow;

use serde::Serialize;

use crate::{CompletedText, Detection, Format, Hint, InToken, Verdict};

/// A detection as JSON. Offsets are UTF-8 bytes unless [`DetectionReport::with_offsets`] changes their unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DetectionReport<'d> {
    /// `whole`, `truncated` or `malformed`. The command can also return `undecided`.
    pub verdict: &'static str,
    /// Length of the text in which all tokens are settled: no continuation can change them.
    pub truncation_index: Option<usize>,
    /// The last offset at which all brackets are closed. 0 if there is no such offset.
    pub balanced_index: Option<usize>,
    /// The raw source of the last settled token.
    pub last_valid_token: Option<&'d str>,
    /// The opening characters of the open constructs, outermost first.
    pub open: Vec<Cow<'static, str>>,
    /// The kind of token that contains the cut.
    pub in_token: Option<&'static str>,
    /// For malformed text: the first invalid byte.
    pub index: Option<usize>,
    /// For malformed text: whether it would be whole or cut with `--lenient`, which accepts raw control
    /// characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repairable: Option<bool>,
    /// The reason, if the text is malformed, undecided or empty.
    pub reason: Option<&'d str>,
    /// `mid_sentence` or `control_characters`.
    pub hint: Option<&'static str>,
    /// The format that `auto` detected.
    pub detected: Option<&'static str>,
}

impl<'d> DetectionReport<'d> {
    /// Creates the report of a detection.
    pub fn new(detection: &'d Detection) -> Self {
        Self {
            hint: detection.hint.map(Hint::name),
            detected: detection.detected.as_ref().map(Format::name),
            ..Self::from_verdict(&detection.verdict)
        }
    }

    /// Creates the report of a verdict, without a hint or a detected format.
    pub fn from_verdict(verdict: &'d Verdict) -> Self {
        let cut = verdict.truncation();
        let (index, reason) = match verdict {
            Verdict::Malformed { index, reason } => (Some(*index), Some(reason.as_str())),
            Verdict::Whole | Verdict::Truncated(_) => (None, None),
        };
        Self {
            verdict: verdict.name(),
            truncation_index: cut.map(|cut| cut.truncation_index),
            balanced_index: cut.map(|cut| cut.balanced_index),
            last_valid_token: cut.map(|cut| cut.last_valid_token.as_str()),
            open: cut.map(|cut| cut.open.iter().map(|open| open.opener()).collect()).unwrap_or_default(),
            in_token: cut.and_then(|cut| cut.in_token).map(InToken::name),
            index,
            repairable: None,
            reason,
            hint: None,
            detected: None,
        }
    }

    /// Converts all offsets to another unit.
    #[must_use]
    pub fn with_offsets(self, convert: impl Fn(usize) -> usize) -> Self {
        Self {
            truncation_index: self.truncation_index.map(&convert),
            balanced_index: self.balanced_index.map(&convert),
            index: self.index.map(&convert),
            ..self
        }
    }
}

/// Maximum total size of the pointers in a [`CompletionReport`], in bytes. If deep nesting exceeds it, the
/// report lists the outermost parts and the innermost one.
const MAX_POINTER_BYTES: usize = 1 << 17;

/// A closed text as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompletionReport {
    /// The closed text.
    pub text: String,
    /// Index of the value that contains the unfinished parts, from 0.
    pub value: usize,
    /// The unfinished parts, outermost first.
    pub unfinished: Vec<UnfinishedReport>,
    /// Number of open brackets that the list omits before its last entry.
    pub unfinished_omitted: usize,
}

/// An unfinished part of a closed text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnfinishedReport {
    /// The JSON Pointer of the part. It is empty for the root.
    pub pointer: String,
    /// The kind of the part, such as `string` or `array`.
    pub kind: &'static str,
    /// Whether the closed text omits the part.
    pub left_out: bool,
}

impl CompletionReport {
    /// Creates the report of a closed text.
    pub fn new(completed: &CompletedText) -> Self {
        let of = |place: crate::UnfinishedPart<'_>| UnfinishedReport {
            pointer: place.pointer.to_owned(),
            kind: place.kind.name(),
            left_out: place.is_omitted,
        };
        let places = completed.unfinished();
        let count = places.len();
        let mut bytes = 0;
        let is_listed = |place: &crate::UnfinishedPart<'_>| {
            bytes += place.pointer.len();
            bytes <= MAX_POINTER_BYTES
        };
        let mut unfinished: Vec<_> = places.clone().take_while(is_listed).map(of).collect();
        if unfinished.len() < count {
            unfinished.extend(places.last().map(of));
        }
        Self {
            text: completed.text.clone(),
            value: completed.value,
            unfinished_omitted: count - unfinished.len(),
            unfinished,
        }
    }
}
