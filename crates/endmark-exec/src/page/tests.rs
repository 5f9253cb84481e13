use proptest::prelude::*;
use serde_json::json;

use super::*;

fn document(data: Value) -> Document {
    Document { data, error: None, warnings: Vec::new(), duration_ms: 0 }
}

fn request_page(items: &[Value], limit: usize, cursor: Option<&str>) -> Result<Document, PageError> {
    let list = FieldPath::data().key("items");
    let command = ["list".into()];
    let paging = PageRequest { list: &list, command: &command, cursor, max_response_bytes: limit };
    paginate(document(json!({"items": items, "more": "text"})), &paging)
}

fn error_code(error: PageError) -> String {
    ErrorBody::from(error).code
}

fn next_cursor(document: &Document) -> Option<String> {
    document.warnings.iter().find_map(|warning| warning.handle.clone())
}

#[test]
fn a_fitting_list_is_unchanged_and_a_cursor_belongs_to_its_command() {
    let items = vec![json!(1), json!(2)];
    let whole = request_page(&items, 2000, None).unwrap();
    assert_eq!((whole.data["items"].clone(), whole.warnings.len()), (json!([1, 2]), 0));
    let items: Vec<Value> = (0..1000).map(|number| json!(number)).collect();
    let first = request_page(&items, 2000, None).unwrap();
    let cursor = next_cursor(&first).unwrap();
    assert_eq!(first.warnings[0].field, Some(FieldPath::data().key("items")));
    assert_eq!(first.warnings[0].original_bytes, Some(serde_json::to_string(&items).unwrap().len() as u64));
    let list = FieldPath::data().key("items");
    let other = PageRequest {
        list: &list,
        command: &["other".into()],
        cursor: Some(&cursor),
        max_response_bytes: 2000,
    };
    assert_eq!(
        paginate(document(json!({"items": items})), &other).map_err(error_code),
        Err("INVALID_CURSOR".to_owned())
    );
    assert_eq!(
        request_page(&items, 2000, Some("nonsense")).map_err(error_code),
        Err("INVALID_CURSOR".to_owned())
    );
    let gone = Vec::from(&items[900..]);
    assert_eq!(request_page(&gone, 2000, Some(&cursor)).map_err(error_code), Err("LIST_CHANGED".to_owned()));
}

/// Returns the same response with the longest possible duration.
fn with_longest_duration(document: &Document) -> Document {
    Document { duration_ms: u64::MAX, ..document.clone() }
}

#[test]
fn the_page_reserves_space_for_the_duration() {
    let items: Vec<Value> = (100..500).map(|number| json!(number)).collect();
    let whole = document(json!({"items": items, "more": "text"})).to_json().len();
    for limit in whole - 30..whole + 30 {
        let shown = request_page(&items, limit, None).unwrap();
        assert!(with_longest_duration(&shown).to_json().len() < limit, "{limit}");
    }
}

#[test]
fn a_warning_is_on_the_page_of_its_item() {
    let list = FieldPath::data();
    let items: Vec<Value> = (0..200).map(|number| json!({"n": format!("item {number}")})).collect();
    let mut document = document(json!(items));
    for index in [0, 3, 199] {
        let field = FieldPath::data().index(index).key("n");
        document.warnings.push(Warning::field_truncated(field, Size::default(), "cut"));
    }
    let (mut cursor, mut seen) = (None, Vec::new());
    let mut before = 0;
    loop {
        let paging =
            PageRequest { list: &list, command: &[], cursor: cursor.as_deref(), max_response_bytes: 2000 };
        let page = paginate(document.clone(), &paging).unwrap();
        for warning in &page.warnings {
            if let Some([_, Segment::Index(index), _]) = warning.field.as_ref().map(FieldPath::segments) {
                seen.push(before + index);
            }
        }
        before += page.data.as_array().unwrap().len();
        cursor = next_cursor(&page);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((before, seen), (200, vec![0, 3, 199]));
}

proptest! {
    #[test]
    fn every_item_appears_once_while_items_are_added(
        lengths in prop::collection::vec(0_usize..300, 1..120),
        added in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4), 0..30),
        limit in 1500_usize..4000,
        are_equal: bool,
    ) {
        let item = |number: usize, length: usize| {
            if are_equal { json!("same") } else { json!([number, "x".repeat(length)]) }
        };
        let mut items: Vec<Value> = lengths.iter().enumerate().map(|(number, length)| item(number, *length)).collect();
        let original = items.clone();
        let (mut cursor, mut seen) = (None, Vec::new());
        let mut added = added.into_iter();
        loop {
            let document = request_page(&items, limit, cursor.as_deref()).unwrap();
            prop_assert!(with_longest_duration(&document).to_json().len() < limit);
            prop_assert_eq!(&document.data["more"], "text");
            seen.extend(document.data["items"].as_array().unwrap().iter().cloned());
            cursor = next_cursor(&document);
            if cursor.is_none() {
                break;
            }
            // Equal items that change places cannot be distinguished.
            if let Some((at, count)) = added.next().filter(|_| !are_equal) {
                for number in 0..count {
                    let at = at.index(items.len() + 1);
                    items.insert(at, json!(["new", items.len(), number]));
                }
            }
        }
        let old: Vec<Value> = seen.into_iter().filter(|item| item[0] != "new").collect();
        prop_assert_eq!(old, original);
    }
}
