//! Many warnings in one, where they are what makes an answer too large: no data is given up for them. (EN-2, EN-5)

use std::collections::HashSet;

use super::json_size;
use crate::document::Document;
use crate::path::FieldPath;
use crate::warning::{MORE_TRUNCATED, Warning};

/// How many bytes the document has with all that can be folded in one warning; none if there is nothing to fold.
pub(super) fn least_bytes(document: &Document) -> Option<usize> {
    let fold = Fold::of(document, 0, &HashSet::new())?;
    Some(fold.bytes)
}

/// The document within so many bytes, if fewer warnings make that possible: of those about truncated fields as many stay
/// as fit, in their order, and one more tells of the others. These places keep theirs.
pub(super) fn fold(mut document: Document, limit: usize, kept: &HashSet<FieldPath>) -> Document {
    let Some(Fold { positions, warning, .. }) = Fold::of(&document, limit, kept) else {
        return document;
    };
    let mut position = 0;
    document.warnings.retain(|_| {
        position += 1;
        !positions.contains(&(position - 1))
    });
    document.warnings.push(warning);
    document
}

/// What is folded.
struct Fold {
    /// Where the warnings are that are left out.
    positions: HashSet<usize>,
    /// What tells of them.
    warning: Warning,
    /// How many bytes the document has at most when this is done.
    bytes: usize,
}

impl Fold {
    fn of(document: &Document, limit: usize, kept: &HashSet<FieldPath>) -> Option<Self> {
        let mut bytes = document.bytes();
        if bytes <= limit {
            return None;
        }
        let mut foldable: Vec<(usize, &Warning, &FieldPath)> = Vec::new();
        for (position, warning) in document.warnings.iter().enumerate() {
            if let Some(field) = warning.truncated_field().filter(|field| !kept.contains(field)) {
                foldable.push((position, warning, field));
            }
        }
        let (_, _, last) = foldable.last()?;
        // No place that all of them have in common is longer than that of one of them.
        bytes += json_size(&folded((*last).clone(), foldable.len())) + 1;
        let mut place = (*last).clone();
        let mut positions = HashSet::new();
        while bytes > limit
            && let Some((position, warning, field)) = foldable.pop()
        {
            bytes -= json_size(warning) + 1;
            place = place.in_common_with(field);
            positions.insert(position);
        }
        let warning = folded(place, positions.len());
        (positions.len() > 1).then_some(Self { positions, warning, bytes })
    }
}

/// What tells of so many values in a place.
fn folded(place: FieldPath, count: usize) -> Warning {
    let message = format!("{count} more values in it are not there in full: a warning for each does not fit");
    let field = Some(place).filter(|place| *place != FieldPath::root());
    Warning { field, ..Warning::truncation(MORE_TRUNCATED, message) }
}
