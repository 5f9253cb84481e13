//! Shortens lists that do not fit into a response and have no pages, and adds a warning. (EN-5)
//!
//! When a list turns out to be too large, the command has already run, and must not run again without
//! permission. Therefore as much of its output as possible is kept.

use endmark_envelope::{Document, FieldPath, Size, Warning};
use serde_json::Value;

use super::page::warning_on_page;

/// Number of bytes that are reserved for the warning about one list.
const RESERVED_BYTES: usize = 600;
/// A text is not shortened to fewer bytes than this.
const MIN_TEXT_BYTES: usize = 512;

/// Returns the document, shortened to this many bytes. Shortens texts if that is enough, otherwise lists.
pub(crate) fn shorten_to(document: &Document, max_response_bytes: usize) -> Document {
    let capped = document.clone().within(max_response_bytes);
    if document.data.is_null() || !capped.data.is_null() {
        return capped;
    }
    let without_data = Document { data: Value::Null, ..document.clone() }.to_json().len();
    let mut room = max_response_bytes.saturating_sub(without_data + RESERVED_BYTES);
    while room > MIN_TEXT_BYTES {
        let mut shortened = document.clone();
        let mut lists = Vec::new();
        if shorten_lists(&mut shortened.data, room, &FieldPath::data(), &mut lists).is_none() {
            break;
        }
        for list in &lists {
            list.disclose(&mut shortened.warnings);
        }
        let shortened = shortened.within(max_response_bytes);
        if !shortened.data.is_null() {
            return shortened;
        }
        // The warnings need more room than was reserved.
        room = room / 8 * 7;
    }
    capped
}

/// A list of which only the first items are kept.
struct ListWithFirstItems {
    list: FieldPath,
    kept: usize,
    of: usize,
    original: Size,
}

impl ListWithFirstItems {
    /// Adds a warning about the list, and removes the warnings about removed items.
    fn disclose(&self, warnings: &mut Vec<Warning>) {
        let message = format!(
            "the first {} of {} items: more do not fit, and the manifest names no `pages`",
            self.kept, self.of
        );
        let is_known = |warning: &Warning| {
            warning.field.as_ref() == Some(&self.list) && warning.returned_bytes.is_some()
        };
        let known = warnings.iter().position(is_known).map(|at| warnings.remove(at));
        *warnings = warnings
            .iter()
            .filter_map(|warning| warning_on_page(warning, &self.list, 0, self.kept))
            .collect();
        // Keep what an earlier warning states about the whole list, for example that the tool returned only a
        // part of it.
        let warning = if let Some(known) = known {
            Warning { message: format!("{}; {message}", known.message), ..known }
        } else {
            // The size is set later, when the response is final.
            let returned = Size::default();
            Warning::field_truncated(self.list.clone(), returned, message).with_original(self.original)
        };
        warnings.push(warning);
    }
}

/// Removes as few items as possible from the ends of lists until the value fits, or would fit with shortened
/// texts. Returns `None` if that is impossible.
fn shorten_lists(
    value: &mut Value,
    room: usize,
    at: &FieldPath,
    lists: &mut Vec<ListWithFirstItems>,
) -> Option<()> {
    let text = value.to_string();
    if text.len() <= room {
        return Some(());
    }
    match value {
        Value::Array(items) => {
            let (mut bytes, mut kept) = (2, 0);
            for item in items.iter() {
                bytes += item.to_string().len() + 1;
                if bytes > room {
                    break;
                }
                kept += 1;
            }
            // A single item that exceeds the room is shortened itself.
            let before = lists.len();
            if kept == 0
                && let Some(first) = items.first_mut()
                && shorten_lists(first, room.checked_sub(2)?, &at.clone().index(0), lists).is_some()
            {
                kept = 1;
            }
            if kept == 0 {
                lists.truncate(before);
            }
            if kept < items.len() {
                let of = items.len();
                lists.push(ListWithFirstItems { list: at.clone(), kept, of, original: Size::of(&text) });
                items.truncate(kept);
            }
            Some(())
        }
        Value::Object(members) => {
            let sizes: Vec<usize> = members.values().map(|member| member.to_string().len()).collect();
            let around = text.len() - sizes.iter().sum::<usize>();
            let level = fair_size_limit(sizes, room.checked_sub(around)?);
            for (name, member) in members.iter_mut() {
                shorten_lists(member, level, &at.clone().key(name.as_str()), lists)?;
            }
            Some(())
        }
        // The text itself is cut later, when the whole response is capped.
        Value::String(_) => (room >= MIN_TEXT_BYTES).then_some(()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Returns the size to which larger members must be shortened so that all members fit into this room.
fn fair_size_limit(mut sizes: Vec<usize>, mut room: usize) -> usize {
    sizes.sort_unstable();
    let mut others = sizes.len();
    for size in sizes {
        let share = room / others;
        if size > share {
            return share;
        }
        room -= size;
        others -= 1;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shorten(data: Value) -> Document {
        let document = Document { data, error: None, warnings: Vec::new(), duration_ms: 0 };
        shorten_to(&document, 2000)
    }

    #[test]
    fn only_the_oversized_list_is_shortened() {
        let numbers: Vec<u32> = (0..10_000).collect();
        for (data, list) in [
            (json!(numbers), "data"),
            (json!({"total": 10_000, "items": numbers, "few": [1, 2, 3]}), "data.items"),
            (json!([{"items": numbers}]), "data[0].items"),
        ] {
            let document = shorten(data.clone());
            assert!(document.error.is_none() && document.to_json().len() < 2000);
            let [warning] = document.warnings.as_slice() else { panic!("{:?}", document.warnings) };
            let field = warning.field.as_ref().unwrap();
            assert_eq!(field.to_string(), list);
            let (here, all) = (
                field.without_first().find(&document.data).unwrap(),
                field.without_first().find(&data).unwrap(),
            );
            assert!(all.as_array().unwrap().starts_with(here.as_array().unwrap()));
            assert!(here.as_array().unwrap().len() > 100);
            assert_eq!(warning.returned_bytes, Some(here.to_string().len() as u64));
            assert_eq!(warning.original_bytes, Some(all.to_string().len() as u64));
        }
    }

    #[test]
    fn an_oversized_response_without_lists_or_texts_is_an_error() {
        let members: serde_json::Map<String, Value> =
            (0..1000).map(|number| (number.to_string(), json!(number))).collect();
        assert_eq!(shorten(Value::Object(members)).error.unwrap().code, "RESPONSE_TOO_LARGE");
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![any::<u32>().prop_map(|number| json!(number)), "[a-z]{0,900}".prop_map(Value::from)];
        leaf.prop_recursive(3, 256, 60, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..60).prop_map(Value::from),
                prop::collection::vec(inner, 0..5).prop_map(|items| {
                    items.into_iter().enumerate().map(|(at, item)| (format!("k{at}"), item)).collect()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_response_is_within_its_limit_with_correct_sizes(data in value()) {
            let document = shorten(data);
            prop_assert!(document.to_json().len() < 2000);
            for warning in &document.warnings {
                let found = warning.field.as_ref().map(FieldPath::without_first);
                if let Some(list @ Value::Array(_)) = found.as_ref().and_then(|field| field.find(&document.data))
                    && let Some(returned) = warning.returned_bytes
                {
                    prop_assert_eq!(returned, list.to_string().len() as u64);
                }
            }
        }
    }
}
