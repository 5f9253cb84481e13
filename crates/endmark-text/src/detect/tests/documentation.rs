//! Checks the examples in `docs/detect.md`.

use serde_json::Value;

use crate::detect::detect;
use crate::{Format, InToken};

#[test]
fn the_documented_examples_are_correct() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/detect.md")).unwrap();
    let examples: Vec<&str> = page.split("```jsonl\n").skip(1).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let mut lines = example.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let (question, answer) = (lines.next().unwrap(), lines.next().unwrap());
        let format = Format::parse(question["format"].as_str().unwrap(), None).unwrap();
        let detection = detect(question["text"].as_str().unwrap().as_bytes(), &format);
        assert_eq!(detection.verdict.name(), answer["verdict"], "{question}");
        assert_eq!(detection.detected.map(|format| format.name()), answer["detected"].as_str(), "{question}");
        let found = detection.verdict.truncation().unwrap();
        assert_eq!(found.truncation_index, answer["truncation_index"], "{question}");
        assert_eq!(found.balanced_index, answer["balanced_index"], "{question}");
        assert_eq!(found.last_valid_token, answer["last_valid_token"], "{question}");
        let open: Vec<Value> = found.open.iter().map(|open| open.opener().into()).collect();
        assert_eq!(Value::from(open), answer["open"], "{question}");
        assert_eq!(found.in_token.map(InToken::name), answer["in_token"].as_str(), "{question}");
    }
}
