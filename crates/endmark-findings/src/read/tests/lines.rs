//! Tests of single lines: markers, findings, fields, and text that only looks like them.

use super::super::grammar::{LineEvent, classify_line};
use crate::FindingId;

#[test]
fn markers_must_be_alone_on_their_line() {
    for (text, expected) in [
        ("===AGENT_RESULT===", LineEvent::Start),
        ("  **===AGENT_RESULT===**", LineEvent::Start),
        ("===AGENT_RESULT_END===", LineEvent::End),
        ("===AGENT_RESULT_END==", LineEvent::Text),
        ("===AGENT_RESULT=== begins it.", LineEvent::Text),
        ("[CHECKPOINT] turn:10", LineEvent::Checkpoint),
        ("Human: go on", LineEvent::Turn),
        ("<|im_start|>assistant", LineEvent::Turn),
        ("### User", LineEvent::Turn),
        ("User: nobody", LineEvent::Text),
        ("* * *", LineEvent::Rule),
        (" \t", LineEvent::Blank),
    ] {
        assert_eq!(classify_line(text), expected, "{text}");
    }
}

#[test]
fn a_finding_begins_with_its_id() {
    for (text, id, title) in [
        ("[F001] SQL", "F001", "SQL"),
        ("[F001]", "F001", ""),
        ("- **[F2]** SQL", "F002", "SQL"),
        ("**[F2] SQL**", "F002", "SQL"),
        ("## [F-3]: SQL", "F003", "SQL"),
        ("[F3] - `a` is *b*", "F003", "`a` is *b*"),
        ("[F3] **a** is b", "F003", "**a** is b"),
        ("[Finding 4] SQL", "F004", "SQL"),
        ("### Finding #6: SQL", "F006", "SQL"),
        ("**F007 - SQL**", "F007", "SQL"),
        ("F008: SQL", "F008", "SQL"),
        ("[F-AUTH-3] SQL", "F-AUTH-3", "SQL"),
        ("[SQLI-1] SQL", "SQLI-1", "SQL"),
        ("3. [F1] SQL", "F001", "SQL"),
    ] {
        let id = FindingId::from_name(id).unwrap();
        assert_eq!(classify_line(text), LineEvent::Head(id, title), "{text}");
    }
    for text in [
        "[F001](#f001)",
        "[FOO] bar",
        "[file1] bar",
        "[f32] = x;",
        "[Findings 1-2]",
        "see [F001]",
        "F16 is a jet",
        "[CWE-89] SQL",
        "## Figure 3",
        "[",
        "[F001",
    ] {
        assert!(!matches!(classify_line(text), LineEvent::Head(..)), "{text}");
    }
}

#[test]
fn a_field_is_a_known_name_with_a_value() {
    for (text, values) in [
        ("severity: High", &["High"][..]),
        ("**Severity:** High", &["High"]),
        ("**Severity**: High", &["High"]),
        ("**Severity: High**", &["High"]),
        ("- *severity*: **High**", &["**High**"]),
        ("* **Severity** - High", &["High"]),
        ("`sink`: `a` or `b`", &["`a` or `b`"]),
        ("__Sink:__ __init__", &["__init__"]),
        ("source: a: b", &["a: b"]),
        ("Source (of taint): a", &["a"]),
        ("**Severity:** High | **CWE:** CWE-89", &["High", "CWE-89"]),
        ("source: a | place of b", &["a | place of b"]),
    ] {
        let LineEvent::Fields(fields) = classify_line(text) else { panic!("{text}") };
        let found: Vec<&str> = fields.iter().map(|field| field.value).collect();
        assert_eq!(found, values, "{text}");
    }
    for (text, expected) in [
        ("Impact: bad", LineEvent::Other),
        ("**Steps → Result:** in", LineEvent::Other),
        ("source::read", LineEvent::Text),
        ("impacts: bad", LineEvent::Text),
        ("if a == b", LineEvent::Text),
        ("a well-known sentence; with a colon: here", LineEvent::Text),
    ] {
        assert_eq!(classify_line(text), expected, "{text}");
    }
}
