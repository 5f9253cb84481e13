//! Measures the returned part of lists and objects once their content is final. (EN-2)

use serde_json::Value;

use crate::document::{Document, measure_json};
use crate::path::FieldPath;

/// Corrects the sizes of lists and objects in warnings, because texts in them may have been shortened or have
/// got markers. Warnings about texts already state the size without the marker.
pub(super) fn correct_sizes(mut document: Document) -> Document {
    let data = FieldPath::data();
    for warning in &mut document.warnings {
        let Some(field) =
            warning.truncated_field().filter(|field| field.segments().first() == data.segments().first())
        else {
            continue;
        };
        if let Some(value @ (Value::Array(_) | Value::Object(_))) = field.without_first().find(&document.data)
        {
            let size = measure_json(value);
            warning.returned_bytes = warning.returned_bytes.map(|_| size.bytes);
            warning.truncated_length = warning.truncated_length.map(|_| size.chars);
        }
    }
    document
}
