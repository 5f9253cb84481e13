//! Tests with unsupported spellings. Such findings count as lost, so that the parsed part does not look complete.
//! (AR-6)

use std::path::Path;

use crate::read;

#[test]
fn unreadable_parts_are_counted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/read/tests/unread");
    let mut files = 0;
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let results = read(&std::fs::read(&path).unwrap()).results;
        let is_disclosed = results
            .iter()
            .any(|result| !result.cut.is_whole() || result.lost_count() > 0 || result.agent_id.is_none());
        let has_all_fields =
            || results.iter().flat_map(|result| &result.findings).all(|read| read.missing.is_empty());
        assert!(is_disclosed || !has_all_fields(), "{}: {results:#?}", path.display());
        files += 1;
    }
    assert!(files > 40, "{files}");
}

#[test]
fn json_nested_too_deeply_is_counted() {
    let finding = format!(
        r#"{{"id": "F001", "title": "t", "severity": "High", "evidence": {}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let text = format!("===AGENT_RESULT===\n{{\"agent_id\": \"a\"}}\n{finding}\n===AGENT_RESULT_END===\n");
    assert_eq!(read(text.as_bytes()).results[0].unread, 1);
}
