use serde_json::json;

use super::*;

fn rules(rules: &[(&str, FieldRule)]) -> FieldRules {
    let mut all = FieldRules::default();
    for (places, rule) in rules {
        all.add(places.parse().unwrap(), rule.clone());
    }
    all
}

#[test]
fn a_cut_is_marked_and_has_one_warning_with_sizes() {
    let mut data = json!({
        "items": [{"title": "ähnlich", "body": "whole", "body_bytes": 5}, {"title": "ok", "body": "ha", "body_bytes": 40}],
    });
    let rules = rules(&[
        (
            "data.items[*].title",
            FieldRule { max_bytes: Some(8), handle: Some("out_1".into()), ..FieldRule::default() },
        ),
        ("data.items[*].body", FieldRule { bytes_in: Some("body_bytes".into()), ..FieldRule::default() }),
    ]);
    let warnings = serde_json::to_value(rules.mark_cuts(&mut data)).unwrap();
    assert_eq!(data["items"][0]["title"], "ähnlich…[truncated]");
    assert_eq!(data["items"][0]["body"], "whole");
    assert_eq!(data["items"][1]["body"], "ha…[truncated]");
    assert_eq!(
        warnings,
        json!([
            {"code": "FIELD_TRUNCATED", "kind": "TRUNCATION", "message": "it is as large as the backend can keep",
             "field": "data.items[0].title", "returned_bytes": 8, "truncated_length": 7, "handle": "out_1"},
            {"code": "FIELD_TRUNCATED", "kind": "TRUNCATION", "message": "the backend returned less than it declares",
             "field": "data.items[1].body", "returned_bytes": 2, "truncated_length": 2, "original_bytes": 40},
        ])
    );
}

#[test]
fn a_declared_length_proves_a_full_column_whole() {
    let title =
        |bytes: usize| json!({"title": "t".repeat(255), "title_bytes": bytes, "title_characters": bytes});
    let mut data = json!({"notes": [title(255), title(256)]});
    let rule = FieldRule {
        max_bytes: Some(255),
        bytes_in: Some("title_bytes".into()),
        chars_in: Some("title_characters".into()),
        ..FieldRule::default()
    };
    let warnings = rules(&[("data.notes[*].title", rule)]).mark_cuts(&mut data);
    assert_eq!(data["notes"][0], title(255));
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert_eq!(warning.field.as_ref().unwrap().to_string(), "data.notes[1].title");
    assert_eq!((warning.returned_bytes, warning.original_bytes), (Some(255), Some(256)));
}

#[test]
fn an_existing_marker_is_unchanged() {
    let mut data = json!({"a": "cut[...]", "b": "cut…[truncated]", "c": "cut~", "d": "whole"});
    let own = FieldRule { markers: vec!["~".into()], ..FieldRule::default() };
    let before = data.clone();
    let warnings = rules(&[("data.c", own)]).mark_cuts(&mut data);
    assert_eq!(data, before);
    let bytes: Vec<_> = warnings.iter().map(|warning| warning.returned_bytes).collect();
    assert_eq!(bytes, [Some(8), Some(3), Some(4)]);
}

#[test]
fn a_token_without_pages_reports_its_neighbouring_list() {
    for (mut data, is_cut) in [
        (json!({"items": [1], "nextPageToken": "x"}), true),
        (json!({"items": [1], "nextPageToken": ""}), false),
        (json!({"items": [1], "nextPageToken": null}), false),
        (json!({"items": [1], "after": 7}), false),
    ] {
        let warnings = FieldRules::default().mark_cuts(&mut data);
        assert_eq!(warnings.len(), usize::from(is_cut), "{data}");
    }
    let mut data = json!({"items": [1], "after": 7});
    let rule = FieldRule { page_token_in: Some("after".into()), ..FieldRule::default() };
    let warnings = rules(&[("data.items", rule)]).mark_cuts(&mut data);
    assert_eq!((warnings[0].returned_bytes, warnings[0].truncated_length), (Some(3), Some(3)));
}

#[test]
fn a_list_shorter_than_its_count_reports_both() {
    let mut data = json!({"items": [1, 2], "total": 9});
    let rule = FieldRule { items_in: Some("total".into()), ..FieldRule::default() };
    let warnings = rules(&[("data.items", rule)]).mark_cuts(&mut data);
    assert_eq!(warnings[0].message, "the backend returned less than it declares: 2 of 9 items");
    assert_eq!(data["items"], json!([1, 2]));
}

#[test]
fn the_last_rule_for_a_path_wins() {
    let mut data = json!({"a": "cut[...]", "b": {"a": "cut[...]"}});
    let rules = rules(&[("data.a", FieldRule::default()), ("data.a", FieldRule::exact())]);
    let warnings = rules.mark_cuts(&mut data);
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].field, Some(FieldPath::data().key("b").key("a")));
}

#[test]
fn an_ellipsis_is_a_cut_only_near_a_limit_or_next_to_a_longer_text() {
    let near = FieldRule { max_chars: Some(30), ..FieldRule::default() };
    let far = FieldRule { max_chars: Some(300), ..FieldRule::default() };
    for (rule, mut data, is_cut) in [
        (FieldRule::default(), json!({"a": "Loading..."}), false),
        (FieldRule::default(), json!({"a": "Loading…", "b": "Loading"}), false),
        (FieldRule::default(), json!({"a": "The harbour…", "b": "The harbour was quiet."}), true),
        (near, json!({"a": "The harbour was..."}), true),
        (far, json!({"a": "The harbour was..."}), false),
    ] {
        let before = data.clone();
        let warnings = rules(&[("data.a", rule)]).mark_cuts(&mut data);
        assert_eq!((warnings.len(), &data), (usize::from(is_cut), &before), "{data}");
    }
}
