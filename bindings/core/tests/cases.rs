//! Runs the cases that all packages share: `bindings/cases.json`.
//!
//! `ENDMARK_UPDATE_CASES=1 cargo test -p endmark-bindings` writes the answers into the file.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::{env, fs};

use endmark_bindings::{Failure, Object, call};
use serde_json::{Map, Value, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cases.json");

fn inputs(case: &Value) -> Vec<&[u8]> {
    case["inputs"].as_array().unwrap().iter().map(|input| input.as_str().unwrap().as_bytes()).collect()
}

/// Returns the answer or the failure, in exactly the bytes that each package must return.
fn answer_bytes(answer: Result<String, Failure>) -> Value {
    match answer {
        Ok(answer) => json!({"answer": answer}),
        Err(failure) => json!({"failure": failure.to_json()}),
    }
}

fn run_case(case: &Value) -> Value {
    let options = case["options"].to_string();
    let Some(class) = case["class"].as_str() else {
        return answer_bytes(call(case["function"].as_str().unwrap(), &inputs(case), &options));
    };
    let object = Object::new(class, &inputs(case), &options).map_err(|failure| failure.message).unwrap();
    let calls = case["calls"].as_array().unwrap();
    let answers = calls.iter().map(|step| {
        answer_bytes(object.call(
            step["method"].as_str().unwrap(),
            &inputs(step),
            &step["options"].to_string(),
        ))
    });
    json!({"answers": answers.collect::<Vec<_>>()})
}

#[test]
fn every_case_has_its_expected_answer() {
    let file = fs::read_to_string(FILE).unwrap();
    let mut cases: Vec<Map<String, Value>> = serde_json::from_str(&file).unwrap();
    let is_update = env::var_os("ENDMARK_UPDATE_CASES").is_some();
    for case in &mut cases {
        let expected = case.remove("expected");
        let found = run_case(&Value::Object(case.clone()));
        if !is_update {
            assert_eq!(Some(&found), expected.as_ref(), "{}", case["name"]);
        }
        case.insert("expected".to_owned(), found);
    }
    if is_update {
        let lines: Vec<String> = cases.iter().map(|case| serde_json::to_string(case).unwrap()).collect();
        fs::write(FILE, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
    }
}

#[test]
fn the_log_equals_the_table_of_the_store() {
    let store = include_str!("../../../crates/endmark-store/migrations/0001_store.sqlite.sql");
    assert!(store.contains(endmark_bindings::LOG_TABLE));
}
