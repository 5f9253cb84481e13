//! A cut text that was closed, as it is answered. (PC-1)

use endmark_text::{CompleteError, Completed, Detection, Format, Unfinished, Verdict, complete};
use serde::{Serialize, Serializer};

/// How many bytes the pointers of an answer take together. Where brackets are nested so deeply that they
/// take more, those nearest to the root are named, and the innermost.
const MOST_POINTER_BYTES: usize = 1 << 17;

/// How many places are worth reading on a terminal.
const SHOWN_PLACES: usize = 8;

/// What came of closing a text: null in an answer where there is nothing that could be closed.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transparent))]
pub(super) struct Closing(#[cfg_attr(test, schemars(with = "Option<Closed>"))] Result<Closed, Problem>);

/// The closed text, and what is unfinished in it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Closed {
    pub(super) text: String,
    /// Which value of the text the unfinished places are in.
    value: usize,
    unfinished: Vec<Place>,
    /// How many open brackets are not among them, all on the way to the last one.
    pub(super) unfinished_omitted: usize,
    /// How many raw control characters in strings were escaped.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) escaped: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Place {
    pointer: String,
    kind: &'static str,
    left_out: bool,
}

/// Why a text cannot be closed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Problem {
    code: &'static str,
    pub(super) message: String,
}

impl Closing {
    /// Closes a text that reads like this; a malformed one is not closed.
    pub(super) fn of(raw: &[u8], format: &Format, detection: &Detection) -> Self {
        let completed = match &detection.verdict {
            Verdict::Malformed { index, reason } => {
                Err(CompleteError::Malformed { index: *index, reason: reason.clone() })
            }
            Verdict::Whole | Verdict::Truncated(_) => complete(raw, format),
        };
        Self(completed.map(|completed| Closed::of(&completed)).map_err(|error| Problem::of(&error)))
    }

    /// The closed text, or why there is none.
    pub(super) fn closed(&self) -> Result<&Closed, &Problem> {
        self.0.as_ref()
    }
}

impl Serialize for Closing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().ok().serialize(serializer)
    }
}

impl Closed {
    fn of(completed: &Completed) -> Self {
        let places = completed.unfinished();
        let count = places.len();
        let mut bytes = 0;
        let mut unfinished: Vec<Place> = places
            .clone()
            .take_while(|place| {
                bytes += place.pointer.len();
                bytes <= MOST_POINTER_BYTES
            })
            .map(Place::of)
            .collect();
        if unfinished.len() < count {
            unfinished.extend(places.last().map(Place::of));
        }
        let unfinished_omitted = count - unfinished.len();
        let (text, escaped) = (completed.text.clone(), completed.escaped);
        Self { text, value: completed.value, unfinished, unfinished_omitted, escaped }
    }

    /// What is unfinished, the innermost first, in one line; empty if nothing is.
    pub(super) fn for_people(&self) -> String {
        let shown = self.unfinished.iter().rev().take(SHOWN_PLACES).map(Place::for_people);
        let more = self.unfinished.len().saturating_sub(SHOWN_PLACES) + self.unfinished_omitted;
        let more = (more > 0).then(|| format!("{more} more around them"));
        shown.chain(more).collect::<Vec<_>>().join(", ")
    }
}

impl Place {
    fn of(place: Unfinished<'_>) -> Self {
        Self { pointer: place.pointer.to_owned(), kind: place.kind.name(), left_out: place.left_out }
    }

    fn for_people(&self) -> String {
        let pointer = if self.pointer.is_empty() { "the root" } else { self.pointer.as_str() };
        let left_out = if self.left_out { ", left out" } else { "" };
        format!("{pointer} ({}{left_out})", self.kind)
    }
}

impl Problem {
    fn of(error: &CompleteError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}
