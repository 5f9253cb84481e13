//! How much of a list is there, measured when everything in it is as it is written. (EN-2)

use serde_json::Value;

use crate::document::{Document, counted};
use crate::path::FieldPath;

/// The document with the sizes that its warnings give of lists and objects set right: texts in them may have got their
/// markers, or been shortened, since. Of a text the warning knows the size without its marker.
pub(super) fn measured(mut document: Document) -> Document {
    let data = FieldPath::data();
    for warning in &mut document.warnings {
        let Some(field) =
            warning.truncated_field().filter(|field| field.segments().first() == data.segments().first())
        else {
            continue;
        };
        if let Some(value @ (Value::Array(_) | Value::Object(_))) = field.without_first().find(&document.data)
        {
            let size = counted(value);
            warning.returned_bytes = warning.returned_bytes.map(|_| size.bytes);
            warning.truncated_length = warning.truncated_length.map(|_| size.chars);
        }
    }
    document
}
