//! Output of any size is answered within the limit, in bounded memory, with its exact size. (EN-2, EN-5)

use std::process::Command;

use serde_json::{Value, json};

use super::{error_codes, exec, folder_with_manifest, warning_about};

/// A Python script that runs the command, prints its envelope, and then its peak memory in KiB.
const MEASURING_SCRIPT: &str = "
import json, os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
answer = json.loads(child.stdout.read())
_, status, usage = os.wait4(child.pid, 0)
print(json.dumps({'answer': answer, 'code': os.waitstatus_to_exitcode(status), 'peak': usage.ru_maxrss}))
";

/// Maximum memory in KiB, far less than the output.
const MAX_PEAK_MEMORY_KIB: u64 = 64 << 10;

const GIGABYTE_BYTES: u64 = 1_000_000_000;

fn measure(manifest: &str, script: &str) -> (Value, u64) {
    let place = folder_with_manifest(manifest);
    let mut python = Command::new("python3");
    python.args(["-c", MEASURING_SCRIPT, env!("CARGO_BIN_EXE_endmark"), "exec", "--manifest"]);
    python.arg(place.path().join("tool.toml")).args(["--", "sh", "-c", script]);
    let output = python.current_dir(place.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    (measured["answer"].clone(), measured["peak"].as_u64().unwrap())
}

#[test]
fn a_gigabyte_of_text_keeps_head_tail_and_size() {
    let script =
        "(printf 'the head\\n'; yes 'été, a line of text' | head -c 999999981; printf '\\nthe tail\\n')";
    let (answer, peak) = measure("timeout_seconds = 0\n", script);
    assert!(peak < MAX_PEAK_MEMORY_KIB, "{peak} KiB");
    let cut = warning_about(&answer, "data.text");
    assert_eq!((&answer["ok"], &answer["meta"]["truncated"]), (&json!(true), &json!(true)));
    assert_eq!(cut["original_bytes"], GIGABYTE_BYTES);
    // Each line of 22 bytes has 20 characters. The cut may be inside a line.
    let lines = 999_999_981 / 22;
    let characters = 9 + 10 + lines * 20 + "été, a line of text\n".chars().count() as u64;
    let counted = cut["original_length"].as_u64().unwrap();
    assert!(counted.abs_diff(characters) <= 22, "{counted} {characters}");
    let (head, tail) = (answer["data"]["text"].as_str().unwrap(), answer["data"]["tail"].as_str().unwrap());
    assert!(head.starts_with("the head\nété") && head.ends_with("…[truncated]"));
    assert!(tail.ends_with("\nthe tail\n"));
    assert_eq!(cut["returned_bytes"], head.len() - "…[truncated]".len());
    assert_eq!(answer["data"]["tail_from_byte"], GIGABYTE_BYTES - tail.len() as u64);
    assert!(answer.to_string().len() <= 1_000_000);
}

#[test]
fn a_gigabyte_of_json_is_closed_after_its_beginning() {
    let item = format!("{{\"id\": 7, \"text\": \"{}\"}},", "x".repeat(1000));
    let script = format!("printf '['; yes '{item}' | head -c 999999999");
    let (answer, peak) = measure("timeout_seconds = 0\n[output]\nkind = \"json\"\n", &script);
    assert!(peak < MAX_PEAK_MEMORY_KIB, "{peak} KiB");
    assert_eq!((&answer["ok"], &answer["data"][0]["id"]), (&json!(true), &json!(7)));
    assert_eq!(warning_about(&answer, "data")["original_bytes"], GIGABYTE_BYTES);
    assert_eq!(answer["meta"]["truncated"], true);
}

#[test]
fn the_manifest_sets_the_answer_limit() {
    let place = folder_with_manifest("[output]\nmax_response_bytes = 1500\n");
    let answer = exec(&place, &["seq", "100000"]);
    assert!(answer.to_string().len() < 1500);
    let cut = warning_about(&answer, "data.text");
    assert_eq!((&cut["original_bytes"], &cut["original_length"]), (&json!(588_895), &json!(588_895)));
    assert!(answer["data"]["text"].as_str().unwrap().starts_with("1\n2\n3\n"));
    assert!(answer["data"]["tail"].as_str().unwrap().ends_with("\n99999\n100000\n"));
}

#[test]
fn a_list_without_pages_is_shortened_with_a_warning() {
    let place = folder_with_manifest("[output]\nkind = \"jsonl\"\nmax_response_bytes = 1500\n");
    let run = place.run(&["exec", "--manifest", "tool.toml", "--", "seq", "1000"]);
    let answer = super::checked_envelope(&run);
    assert!(run.output.len() <= 1500);
    assert_eq!((&answer["ok"], &answer["meta"]["truncated"]), (&json!(true), &json!(true)));
    let list = answer["data"].as_array().unwrap();
    assert!(list.len() > 200 && list.iter().zip(1..).all(|(item, number)| *item == number), "{answer}");
    let cut = warning_about(&answer, "data");
    assert_eq!(cut["returned_bytes"], answer["data"].to_string().len());
    assert_eq!(cut["original_bytes"], 3894);
    let message = format!("the first {} of 1000 items", list.len());
    assert!(
        cut["message"].as_str().unwrap().starts_with(&message)
            && cut["message"].as_str().unwrap().contains("`pages`")
    );
    // Shortening lists or texts would not help here.
    let place = folder_with_manifest("[output]\nmax_response_bytes = 1500\n");
    let answer =
        exec(&place, &["python3", "-c", "import json; print(json.dumps({i: i for i in range(1000)}))"]);
    assert_eq!((error_codes(&answer), &answer["data"]), (("RESPONSE_TOO_LARGE", 1), &Value::Null));
}

#[test]
fn a_list_reports_its_size_after_its_texts_were_shortened() {
    let place =
        folder_with_manifest("[output]\nkind = \"jsonl\"\npages = \"data\"\nmax_response_bytes = 2000\n");
    let script = "import json; [print(json.dumps('é' * 3000)) for _ in range(3)]";
    let answer = exec(&place, &["python3", "-c", script]);
    assert_eq!(answer["data"].as_array().unwrap().len(), 1);
    assert!(answer["data"][0].as_str().unwrap().ends_with("…[truncated]"));
    let more = warning_about(&answer, "data");
    assert!(more["handle"].is_string());
    assert_eq!(more["returned_bytes"], answer["data"].to_string().len());
    assert_eq!(more["truncated_length"], answer["data"].to_string().chars().count());
}

#[test]
fn a_paged_list_arrives_whole_page_by_page() {
    let place =
        folder_with_manifest("[output]\nkind = \"jsonl\"\npages = \"data\"\nmax_response_bytes = 20_000\n");
    let (mut cursor, mut seen) = (None, Vec::new());
    loop {
        let continue_reading = cursor.as_deref().map(|cursor| vec!["--cursor", cursor]).unwrap_or_default();
        let command = ["--", "seq", "10000"];
        let run = place
            .run(&[&["exec", "--manifest", "tool.toml"], continue_reading.as_slice(), &command].concat());
        let answer = super::checked_envelope(&run);
        assert!(run.output.len() <= 20_000, "{}", run.output.len());
        seen.extend(answer["data"].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()));
        if answer["meta"]["truncated"] == false {
            break;
        }
        let more = warning_about(&answer, "data");
        assert_eq!(more["original_bytes"], 48_895, "{more}");
        cursor = Some(more["handle"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, (1..=10_000).collect::<Vec<u64>>());
    let continue_reading = |cursor: &str, last: &str| {
        let arguments = ["exec", "--manifest", "tool.toml", "--cursor", cursor, "--", "seq", last];
        super::checked_envelope(&place.run(&arguments))
    };
    assert_eq!(error_codes(&continue_reading(cursor.as_deref().unwrap(), "9999")), ("INVALID_CURSOR", 2));
    assert_eq!(error_codes(&continue_reading("nonsense", "10000")), ("INVALID_CURSOR", 2));
    let arguments = ["exec", "--manifest", "tool.toml", "--cursor", "nonsense", "--", "touch", "started"];
    assert_eq!(error_codes(&super::checked_envelope(&place.run(&arguments))), ("INVALID_CURSOR", 2));
    assert!(!place.path().join("started").exists());
    // Empty output is not a last page.
    let script = "[ -e gone ] || seq 10000";
    let json = "[output]\nkind = \"json\"\npages = \"data\"\nmax_response_bytes = 20_000\n";
    let place = folder_with_manifest(json);
    let script = format!("{script} | paste -sd, | sed 's/.*/[&]/; s/^\\[\\]$//'");
    let first = exec(&place, &["sh", "-c", &script]);
    let cursor = warning_about(&first, "data")["handle"].as_str().unwrap();
    std::fs::write(place.path().join("gone"), "").unwrap();
    let arguments = ["exec", "--manifest", "tool.toml", "--cursor", cursor, "--", "sh", "-c", &script];
    assert_eq!(error_codes(&super::checked_envelope(&place.run(&arguments))), ("LIST_CHANGED", 1));
    let place = folder_with_manifest("");
    let none = place.run(&["exec", "--manifest", "tool.toml", "--cursor", "x", "--", "true"]);
    assert_eq!(error_codes(&super::checked_envelope(&none)), ("usage", 2));
}
