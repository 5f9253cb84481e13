use super::*;
use crate::conversation::{Call, ToolResult};

fn anchors_of_kind<'a>(anchors: &'a [Anchor<'_>], kind: AnchorKind) -> Vec<(&'a str, &'a str)> {
    let of_kind = anchors.iter().filter(|anchor| anchor.kind == kind);
    of_kind.map(|anchor| (anchor.key.as_ref(), anchor.value.as_ref())).collect()
}

#[test]
fn result_values_are_stored_under_their_names() {
    let text = r#"{"user": {"name": "Mia Li", "born": "1990-04-05", "cards": {"card_4421486": {"brand": "visa"},
        "card_77": {"brand": "visa"}}}, "plain": {"qxkrtz": {"id": 1, "n": 2}, "lmnop": {"id": 3, "n": 4}}, "ok": true}"#;
    let mut anchors = Vec::new();
    add_result_anchors(text, false, &mut anchors);
    let identifiers = anchors_of_kind(&anchors, AnchorKind::Identifier);
    for expected in
        [("name", "Mia Li"), ("born", "1990-04-05"), ("cards", "card_4421486"), ("plain", "lmnop")]
    {
        assert!(identifiers.contains(&expected), "{expected:?}: {identifiers:?}");
    }
}

#[test]
fn errors_files_and_ids_are_found_in_output() {
    let text = "Compiling a\n  src/main.rs:12 error[E0308]: mismatched types\nsee https://example.com/E0308\nbuild b-4471 done";
    let mut anchors = Vec::new();
    add_result_anchors(text, false, &mut anchors);
    assert_eq!(
        anchors_of_kind(&anchors, AnchorKind::Error),
        [("", "src/main.rs:12 error[E0308]: mismatched types")]
    );
    assert_eq!(anchors_of_kind(&anchors, AnchorKind::Url), [("", "https://example.com/E0308")]);
    assert!(anchors_of_kind(&anchors, AnchorKind::Identifier).contains(&("", "b-4471")), "{anchors:?}");
}

#[test]
fn plans_and_decisions_are_found_by_their_form() {
    let mut anchors = Vec::new();
    text::add_assistant_lines("Decision: keep SQLite\n- [ ] write the docs\n- [x] done", &mut anchors);
    assert_eq!(anchors_of_kind(&anchors, AnchorKind::Decision), [("", "Decision: keep SQLite")]);
    assert_eq!(anchors_of_kind(&anchors, AnchorKind::Todo), [("", "write the docs")]);
    let plan = r#"{"todos": [{"content": "ship it", "status": "pending"}, {"content": "plan", "status": "completed"}]}"#;
    let mut anchors = Vec::new();
    tree::add_json_anchors(&tree::parse(plan).unwrap(), AnchorSource::Argument, &mut anchors);
    assert_eq!(anchors_of_kind(&anchors, AnchorKind::Todo), [("", "ship it")]);
}

#[test]
fn a_call_records_its_outcome() {
    let ended = |text: &'static str, is_error| {
        call::describe_outcome(Some(&ToolResult { text: text.into(), is_error, ..ToolResult::default() }))
    };
    assert_eq!(ended("{\"exit_code\": 0, \"stdout\": \"\"}", false), "exit 0");
    assert_eq!(
        ended("thread panicked at a.rs\nprocess exited with code 101", false),
        "exit 101: thread panicked at a.rs"
    );
    assert_eq!(ended("no such file", true), "failed: no such file");
    assert_eq!(ended("[1, 2, 3]", false), "3 items");
    assert_eq!(ended("a\nb", false), "2 lines");
    assert_eq!(call::describe_outcome(None), "no result");
    // The placeholder for a missing result has the same outcome in every format.
    assert_eq!(ended("No result was recorded for this call.", true), "no result");
    assert_eq!(ended(r#"{"error":"No result was recorded for this call."}"#, true), "no result");
    let call = Call {
        id: None,
        name: "run".into(),
        arguments: r#"{"cmd": "make -j", "n": 2}"#.into(),
        can_be_answered: true,
    };
    assert_eq!(call::describe_call(&call, tree::parse(&call.arguments).as_ref()), "run(make -j, 2)");
}
