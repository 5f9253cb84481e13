//! The texts in a tool's result, whatever its shape.

use serde_json::{Map, Value};

/// Every text in a value, but for those of images and the like: they cannot be shortened.
pub(super) fn texts_in(value: &mut Value) -> Vec<&mut String> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter_mut().flat_map(texts_in).collect(),
        Value::Object(object) if is_media(object) => Vec::new(),
        Value::Object(object) => object.values_mut().flat_map(texts_in).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Whether an object holds a medium: it says so itself, or it has its bytes or their kind.
fn is_media(object: &Map<String, Value>) -> bool {
    let kind = object.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| ["image", "audio", "video", "document", "pdf"].contains(&kind))
        || object.get("isImage").and_then(Value::as_bool) == Some(true)
        || ["base64", "blob", "inlineData", "fileData"].iter().any(|key| object.contains_key(*key))
        || object.contains_key("mimeType") && object.contains_key("data")
}

/// A result as the text that a model would read; none where there is a medium in it.
pub(super) fn text_of(response: &Value) -> Option<String> {
    match response {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        Value::Array(parts) => {
            let texts = parts.iter().map(text_of).collect::<Option<Vec<_>>>()?;
            Some(texts.join("\n"))
        }
        Value::Object(object) if is_media(object) => None,
        Value::Object(object) => {
            let inner = ["llmContent", "content", "text"].iter().find_map(|key| object.get(*key));
            match inner {
                Some(inner) => text_of(inner),
                None => serde_json::to_string(object).ok(),
            }
        }
        Value::Bool(_) | Value::Number(_) => Some(response.to_string()),
    }
}

/// How much each of several texts may have, so that all of them have at most `most` together and no short one gives way to
/// a long one. None where they have no more as they are.
pub(super) fn share(sizes: &[usize], most: usize) -> Option<usize> {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut room = most;
    for (index, size) in sorted.iter().enumerate() {
        let share = room / (sorted.len() - index);
        if *size > share {
            return Some(share);
        }
        room -= size;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_medium_is_no_text_and_short_texts_do_not_give_way() {
        let mut value = json!({"stdout": "a", "n": 1, "list": ["b", {"type": "image", "data": "xxxx"}]});
        assert_eq!(texts_in(&mut value).len(), 2);
        assert_eq!(texts_in(&mut json!({"stdout": "data:", "isImage": true})), Vec::<&mut String>::new());
        assert_eq!(text_of(&json!({"llmContent": [{"text": "a"}, {"text": "b"}]})).as_deref(), Some("a\nb"));
        assert_eq!(text_of(&json!({"llmContent": [{"inlineData": {"data": "x"}}]})), None);
        assert_eq!(share(&[10, 1000, 2000], 1010), Some(500));
        assert_eq!(share(&[10, 20], 30), None);
    }

    proptest! {
        #[test]
        fn all_together_never_have_more(sizes in prop::collection::vec(0usize..5_000, 0..40), most in 0usize..20_000) {
            let total = |share: usize| sizes.iter().map(|size| (*size).min(share)).sum::<usize>();
            match share(&sizes, most) {
                None => prop_assert!(sizes.iter().sum::<usize>() <= most),
                Some(share) => prop_assert!(total(share) <= most && total(usize::MAX) > most),
            }
        }
    }
}
