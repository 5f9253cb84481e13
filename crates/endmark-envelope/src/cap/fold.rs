//! Folds warnings into one if they make an answer too large, so that no data is dropped because of warnings.
//! (EN-2, EN-5)

use std::collections::HashSet;

use super::json_size;
use crate::document::Document;
use crate::path::FieldPath;
use crate::warning::{MORE_TRUNCATED, Warning};

/// Returns the size of the document in bytes after all foldable warnings are folded into one. Returns `None`
/// if there are no such warnings.
pub(super) fn folded_bytes(document: &Document) -> Option<usize> {
    let fold = FoldPlan::plan(document, 0, &HashSet::new())?;
    Some(fold.bytes)
}

/// Folds warnings until the document has at most this many bytes, if that is possible. It keeps as many
/// warnings about truncated fields as fit, in order, and one more warning summarises the others. The warnings
/// of `kept` fields are always kept.
pub(super) fn fold(mut document: Document, limit: usize, kept: &HashSet<FieldPath>) -> Document {
    let Some(FoldPlan { positions, warning, .. }) = FoldPlan::plan(&document, limit, kept) else {
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

/// A plan to fold warnings.
struct FoldPlan {
    /// The indexes of the omitted warnings.
    positions: HashSet<usize>,
    /// The warning that replaces them.
    warning: Warning,
    /// The largest possible size of the folded document, in bytes.
    bytes: usize,
}

impl FoldPlan {
    fn plan(document: &Document, limit: usize, kept: &HashSet<FieldPath>) -> Option<Self> {
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
        // The common path of all fields is at most as long as the path of any of them.
        bytes += json_size(&folded_warning((*last).clone(), foldable.len())) + 1;
        let mut place = (*last).clone();
        let mut positions = HashSet::new();
        while bytes > limit
            && let Some((position, warning, field)) = foldable.pop()
        {
            bytes -= json_size(warning) + 1;
            place = place.common_prefix(field);
            positions.insert(position);
        }
        let warning = folded_warning(place, positions.len());
        (positions.len() > 1).then_some(Self { positions, warning, bytes })
    }
}

/// Returns one warning for this many values at a path.
fn folded_warning(place: FieldPath, count: usize) -> Warning {
    let message =
        format!("{count} more values in it are incomplete: there is no room for a warning for each");
    let field = Some(place).filter(|place| *place != FieldPath::root());
    Warning { field, ..Warning::truncation(MORE_TRUNCATED, message) }
}
