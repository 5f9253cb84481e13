//! Checks the examples in `docs/complete.md`.

use serde_json::{Value, json};

use crate::{Format, complete};

#[test]
fn the_documented_examples_are_correct() {
    let page = include_str!("../../../../../docs/complete.md");
    let examples: Vec<&str> = page.split("```jsonl\n").skip(1).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let mut lines = example.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let (question, answer) = (lines.next().unwrap(), lines.next().unwrap());
        let format = Format::parse(question["format"].as_str().unwrap(), None).unwrap();
        let found = complete(question["text"].as_str().unwrap().as_bytes(), &format).unwrap();
        let unfinished: Vec<Value> = found
            .unfinished()
            .map(|place| {
                json!({"pointer": place.pointer, "kind": place.kind.name(), "left_out": place.is_omitted})
            })
            .collect();
        let completed = json!({
            "text": found.text, "value": found.value, "unfinished": unfinished, "unfinished_omitted": 0
        });
        assert_eq!(completed, answer["completed"], "{question}");
    }
}
