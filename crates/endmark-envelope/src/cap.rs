//! Keeps an answer within its limit. The longest texts are shortened first, each with a warning. (EN-5)

mod fold;
mod measure;

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::cursor::is_cursor;
use crate::document::{Document, measure_json};
use crate::error::{ErrorBody, Phase, RESPONSE_TOO_LARGE};
use crate::marker::TRUNCATION_MARKER;
use crate::path::FieldPath;
use crate::rules::FieldRules;
use crate::shorten::{json_bytes, longest_prefix};
use crate::walk::walk;
use crate::warning::{Size, Warning, WarningKind};

/// The default limit of an answer, in bytes (EN-5).
pub const DEFAULT_MAX_RESPONSE_BYTES: usize = 1_000_000;

/// Minimum limit of an answer in bytes. The error about an answer that is too large fits into it.
pub const MIN_RESPONSE_LIMIT_BYTES: usize = 1024;

/// The message of a warning about a text that Endmark shortened.
const SHORTENED_MESSAGE: &str = "shortened to fit the limit of the answer";

/// The exit code of an answer that is too large. It is the code for a negative result.
const EXIT_CODE_NO: u8 = 1;

/// Reduces a document to at most this many bytes, including its newline (EN-5).
///
/// It shortens the longest texts to a common length, and as few texts as possible. Each text ends in
/// [`TRUNCATION_MARKER`], is cut between two graphemes, and has a warning with its sizes. The shape of the
/// document stays the same, and lists keep their items (they are paged instead).
///
/// If the warnings about truncated fields take too much space, only some are kept. A last warning,
/// [`crate::MORE_TRUNCATED`], reports how many more values are cut, and where. If that is not enough, the
/// answer becomes the error `RESPONSE_TOO_LARGE`. An answer that is already an error keeps that error and
/// loses its data, with a warning.
///
/// A limit below [`MIN_RESPONSE_LIMIT_BYTES`] is raised to it.
///
/// ```
/// use endmark_envelope::{Envelope, MIN_RESPONSE_LIMIT_BYTES, cap};
///
/// let document = Envelope::success(["short".to_owned(), "long ".repeat(500)]).document()?;
/// let document = cap(document, MIN_RESPONSE_LIMIT_BYTES);
/// assert_eq!(document.data[0], "short");
/// assert!(document.data[1].as_str().unwrap().ends_with("…[truncated]"));
/// assert_eq!(document.warnings[0].original_bytes, Some(2500));
/// assert!(document.to_json().len() < MIN_RESPONSE_LIMIT_BYTES);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn cap(document: Document, max_response_bytes: usize) -> Document {
    cap_with_rules(document, max_response_bytes, &FieldRules::default())
}

/// Caps a document like [`cap`], but also adds the handles in these rules to the warnings.
pub(crate) fn cap_with_rules(document: Document, max_response_bytes: usize, rules: &FieldRules) -> Document {
    let limit = max_response_bytes.max(MIN_RESPONSE_LIMIT_BYTES);
    let document = measure::correct_sizes(document);
    let size = document.bytes();
    if size <= limit {
        return document;
    }
    let mut candidates = candidates(&document, rules);
    let planned = plan(&candidates, size - limit);
    let Some((count, length)) = planned.or_else(|| plan_folding(&document, &mut candidates, limit)) else {
        return without_data(document, limit, size);
    };
    let mut document = document;
    let mut shortened = HashSet::new();
    for candidate in candidates.into_iter().take(count) {
        shortened.insert(candidate.path.clone());
        shorten(&mut document, candidate, length);
    }
    let document = fold::fold(document, limit, &shortened);
    if document.bytes() > limit {
        without_data(document, limit, size)
    } else {
        measure::correct_sizes(document)
    }
}

/// Plans an answer in which one warning may replace all warnings about truncated fields. Returns the number
/// of texts to shorten, which may be 0, and their length.
fn plan_folding(
    document: &Document,
    candidates: &mut [ShorteningCandidate],
    limit: usize,
) -> Option<(usize, usize)> {
    let least = fold::folded_bytes(document)?;
    if least <= limit {
        return Some((0, 0));
    }
    for candidate in candidates.iter_mut() {
        // The existing warning about this text is folded, so a new warning does not replace it.
        candidate.warning_bytes += candidate.known_bytes;
        candidate.known_bytes = 0;
    }
    plan(candidates, least - limit)
}

/// A text that can be shortened.
struct ShorteningCandidate {
    path: FieldPath,
    /// Size of the text in the document, in bytes.
    bytes: usize,
    /// The warning with the largest possible numbers.
    warning: Warning,
    /// The number of bytes that the warning adds to the document.
    warning_bytes: usize,
    /// The index of the existing warning about this text.
    known_position: Option<usize>,
    /// The size in bytes of that existing warning with its comma.
    known_bytes: usize,
}

/// Returns all texts, longest first. Texts of the same length are in document order.
fn candidates(document: &Document, rules: &FieldRules) -> Vec<ShorteningCandidate> {
    let mut found = Vec::new();
    let mut add = |place: &FieldPath, text: &str| {
        let bytes = json_bytes(text);
        if bytes > TRUNCATION_MARKER.len() {
            found.push((place.clone(), bytes, Size::of(text)));
        }
    };
    walk(&document.data, FieldPath::data(), |path, value, _| {
        // A shortened cursor would be useless.
        if let Value::String(text) = value
            && !is_cursor(text)
        {
            add(path, text);
        }
    });
    if let Some(error) = &document.error {
        let member = |name| FieldPath::root().key("error").key(name);
        add(&member("message"), &error.message);
        add(&member("hint"), error.hint.as_deref().unwrap_or_default());
    }
    found.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    let mut known = HashMap::new();
    for (position, warning) in document.warnings.iter().enumerate() {
        if let Some(field) = warning.truncated_field() {
            known.entry(field).or_insert(position);
        }
    }
    let candidate = |(place, bytes, size): (FieldPath, usize, Size)| {
        let position = known.get(&place).copied();
        let known = position.and_then(|position| document.warnings.get(position));
        let handle = rules.rule_for(&place).handle.clone();
        let warning = match known {
            Some(known) => known.clone(),
            None => Warning::field_truncated(place.clone(), size, SHORTENED_MESSAGE).with_original(size),
        };
        let handle = warning.handle.clone().or(handle);
        let message = if known.is_some() {
            format!("{}; {SHORTENED_MESSAGE}", warning.message)
        } else {
            warning.message
        };
        let warning = Warning { message, handle, ..warning };
        // The comma counts, too. The new warning replaces an existing one, so subtract the size of that one.
        let known_bytes = known.map_or(0, |known| json_size(known) + 1);
        let warning_bytes = (json_size(&warning) + 1).saturating_sub(known_bytes);
        ShorteningCandidate {
            path: place,
            bytes,
            warning,
            warning_bytes,
            known_position: position,
            known_bytes,
        }
    };
    found.into_iter().map(candidate).collect()
}

/// Returns the size of a warning in bytes, without its comma.
fn json_size(warning: &Warning) -> usize {
    usize::try_from(measure_json(warning).bytes).unwrap_or(usize::MAX - 1)
}

/// Returns how many texts to shorten, and to which length in the document, in order to save `excess` bytes.
/// Returns `None` if that is impossible.
///
/// Another text is added as long as that increases the common length. A text that is hardly longer than its
/// warning is not shortened.
fn plan(candidates: &[ShorteningCandidate], excess: usize) -> Option<(usize, usize)> {
    let signed = |number: usize| i128::try_from(number).unwrap_or(i128::MAX);
    let gain = |candidate: &ShorteningCandidate| signed(candidate.bytes) - signed(candidate.warning_bytes);
    let (mut count, mut left, mut length) = (0, -signed(excess), i128::MIN);
    for candidate in candidates {
        if count > 0 && gain(candidate) <= length {
            break;
        }
        count += 1;
        left += gain(candidate);
        length = left.div_euclid(signed(count));
    }
    let length = usize::try_from(length).ok()?;
    (length >= TRUNCATION_MARKER.len()).then_some((count, length))
}

/// Shortens one text to at most `length` bytes in the document, including its marker, and adds a warning.
fn shorten(document: &mut Document, candidate: ShorteningCandidate, length: usize) {
    let ShorteningCandidate { path: place, warning, known_position: known, .. } = candidate;
    let Some(text) = text_at(document, &place) else {
        return;
    };
    // An existing marker does not belong to the value.
    let own = text.strip_suffix(TRUNCATION_MARKER).unwrap_or(text);
    let kept = longest_prefix(own, length - TRUNCATION_MARKER.len());
    let size = Size::of(kept);
    *text = format!("{kept}{TRUNCATION_MARKER}");
    let warning = Warning { returned_bytes: Some(size.bytes), truncated_length: Some(size.chars), ..warning };
    match known.and_then(|position| document.warnings.get_mut(position)) {
        Some(known) => *known = warning,
        None => document.warnings.push(warning),
    }
}

fn text_at<'a>(document: &'a mut Document, place: &FieldPath) -> Option<&'a mut String> {
    let inside = place.without_first();
    if place.segments().first() == FieldPath::data().segments().first() {
        return match inside.find_mut(&mut document.data)? {
            Value::String(text) => Some(text),
            _ => None,
        };
    }
    let error = document.error.as_mut()?;
    if inside == FieldPath::root().key("message") { Some(&mut error.message) } else { error.hint.as_mut() }
}

/// Returns the document without its data, for an answer that cannot be shortened enough.
fn without_data(document: Document, limit: usize, size: usize) -> Document {
    let warnings_size = usize::try_from(measure_json(&document.warnings).bytes).unwrap_or(usize::MAX);
    let cause = if document.bytes().saturating_sub(warnings_size) <= limit {
        format!("{warnings_size} bytes are its warnings")
    } else {
        "shortening its texts is not enough".to_owned()
    };
    let Document { data, error, warnings, duration_ms } = document;
    let exit_code = error.as_ref().map_or(EXIT_CODE_NO, |error| error.exit_code);
    let too_large = ErrorBody {
        limit: Some(limit as u64),
        actual: Some(size as u64),
        ..ErrorBody::new(
            RESPONSE_TOO_LARGE,
            exit_code,
            format!("the answer has {size} bytes, at most {limit}, and {cause}"),
        )
        .in_phase(Phase::Output)
        .with_hint("Ask for fewer items at once, or raise the limit.")
    };
    let omission = (error.is_some() && !data.is_null()).then(|| {
        let message = "left out: the answer would be over its limit";
        Warning::field_truncated(FieldPath::data(), Size::default(), message)
            .with_original(measure_json(&data))
    });
    let kept = warnings.into_iter().filter(|warning| warning.kind == WarningKind::Notice);
    let attempts = [
        (error.clone(), kept.chain(omission.clone()).collect()),
        (error, omission.clone().into_iter().collect()),
        (None, omission.into_iter().collect::<Vec<_>>()),
    ];
    let documents = attempts.into_iter().map(|(error, warnings)| Document {
        data: Value::Null,
        error: Some(error.unwrap_or_else(|| too_large.clone())),
        warnings,
        duration_ms,
    });
    let last =
        Document { data: Value::Null, error: Some(too_large.clone()), warnings: Vec::new(), duration_ms };
    documents.into_iter().find(|document| document.bytes() <= limit).unwrap_or(last)
}

#[cfg(test)]
mod tests;
