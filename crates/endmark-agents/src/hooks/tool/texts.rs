//! Finds the texts in a tool result of any shape.

use serde_json::{Map, Value};

/// Returns all texts in a value, except those in images and other media, which cannot be shortened.
pub(super) fn collect_texts(value: &mut Value) -> Vec<&mut String> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter_mut().flat_map(collect_texts).collect(),
        Value::Object(object) if is_media(object) => Vec::new(),
        Value::Object(object) => object.values_mut().flat_map(collect_texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Whether an object is media, judging by its declared type or its bytes.
fn is_media(object: &Map<String, Value>) -> bool {
    let kind = object.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| ["image", "audio", "video", "document", "pdf"].contains(&kind))
        || object.get("isImage").and_then(Value::as_bool) == Some(true)
        || ["base64", "blob", "inlineData", "fileData"].iter().any(|key| object.contains_key(*key))
        || object.contains_key("mimeType") && object.contains_key("data")
}

/// Returns a result as the text that a model reads. Returns `None` if it contains media.
pub(super) fn result_text(response: &Value) -> Option<String> {
    match response {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        Value::Array(parts) => {
            let texts = parts.iter().map(result_text).collect::<Option<Vec<_>>>()?;
            Some(texts.join("\n"))
        }
        Value::Object(object) if is_media(object) => None,
        Value::Object(object) => {
            let inner = ["llmContent", "content", "text"].iter().find_map(|key| object.get(*key));
            match inner {
                Some(inner) => result_text(inner),
                None => serde_json::to_string(object).ok(),
            }
        }
        Value::Bool(_) | Value::Number(_) => Some(response.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn media_are_not_text() {
        let mut value = json!({"stdout": "a", "n": 1, "list": ["b", {"type": "image", "data": "xxxx"}]});
        assert_eq!(collect_texts(&mut value).len(), 2);
        assert_eq!(
            collect_texts(&mut json!({"stdout": "data:", "isImage": true})),
            Vec::<&mut String>::new()
        );
        assert_eq!(
            result_text(&json!({"llmContent": [{"text": "a"}, {"text": "b"}]})).as_deref(),
            Some("a\nb")
        );
        assert_eq!(result_text(&json!({"llmContent": [{"inlineData": {"data": "x"}}]})), None);
    }
}
