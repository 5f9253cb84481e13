//! Single lines: what is a marker, a finding, a field, and what only looks like one.

use super::super::heads::head;
use super::super::words::{Marker, fields, marker, said};

#[test]
fn markers_stand_alone_and_are_closed_as_they_were_opened() {
    for text in [
        "===AGENT_RESULT===",
        "== Agent Result ==",
        "**===AGENT_RESULT===**",
        "### ===AGENT_RESULT_START===",
        "===AGENT_RESULT=== (final)",
        "**===AGENT_RESULT===** [auth-2, second try]",
        "===AGENT_RESULT=== <!-- begins -->",
        "===AGENT_RESULT=== auth-2",
        "===AGENT_RESULT=== — final version",
    ] {
        assert_eq!(marker(text), Some(Marker::Start), "{text}");
    }
    for text in [
        "===AGENT_RESULT_END===",
        "  ===END_AGENT_RESULT===",
        "`===agent_result_end===`",
        "===AGENT_RESULT_END=== (2 of 2)",
    ] {
        assert_eq!(marker(text), Some(Marker::End), "{text}");
    }
    for text in [
        "===AGENT_RESULT_END==",
        "AGENT_RESULT",
        "===AGENT_RESULT=== and more",
        "===AGENT_RESULT=== begins it.",
        "===AGENT_RESULT_END===\";",
        "===AGENT_RESULT_END===) and (so on)",
        "=AGENT_RESULT=",
        "======",
        "",
    ] {
        assert_eq!(marker(text), None, "{text}");
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
        ("［F005］SQL", "", ""),
        ("［F005］ SQL", "F005", "SQL"),
        ("### Finding #6: SQL", "F006", "SQL"),
        ("**F007 - SQL**", "F007", "SQL"),
        ("F008: SQL", "F008", "SQL"),
        ("[F001](#f001)", "", ""),
        ("[F001][0]", "", ""),
        ("[FOO] bar", "", ""),
        ("[file1] bar", "", ""),
        ("[f32] = x;", "", ""),
        ("[F1] = x;", "", ""),
        ("[f32] x", "", ""),
        ("[Findings 1-2]", "", ""),
        ("[F1] and [F2] are the worst", "", ""),
        ("[F-AUTH-3] SQL", "F-AUTH-3", "SQL"),
        ("**[F2] SQL** (confirmed)", "F002", "SQL (confirmed)"),
        ("🔴 [F001] SQL", "F001", "SQL"),
        ("### ⚠️ [F001] SQL", "F001", "SQL"),
        ("**1. [F001] SQL**", "F001", "SQL"),
        ("see [F001]", "", ""),
        ("F16 is a jet", "", ""),
        ("## Figure 3: SQL", "", ""),
        ("[", "", ""),
        ("[F001", "", ""),
    ] {
        let found = head(text)
            .map(|head| (head.id.unwrap().to_string(), head.title.into_owned()))
            .unwrap_or_default();
        assert_eq!(found, (id.to_owned(), title.to_owned()), "{text}");
    }
}

#[test]
fn a_field_is_a_name_and_a_value() {
    for (text, name, value) in [
        ("severity: High", "severity", "High"),
        ("**Severity:** High", "Severity", "High"),
        ("**Severity**: High", "Severity", "High"),
        ("**Severity: High**", "Severity", "High"),
        ("- *severity*: **High**", "severity", "**High**"),
        ("* Severity - High", "Severity", "High"),
        ("Severity = High", "Severity", "High"),
        ("`sink`: `a` or `b`", "sink", "`a` or `b`"),
        ("__Sink:__ __init__", "Sink", "__init__"),
        ("source: a: b", "source", "a: b"),
        ("\"sink\": \"x\",", "sink", "x"),
        ("| **Sink** | x |", "Sink", "x"),
        ("Impact: bad", "Impact", "bad"),
        ("std::fs::read", "", ""),
        ("if a == b", "", ""),
        ("impact = bad", "", ""),
        ("| a | b | c |", "", ""),
        ("a well-known sentence; with a colon: here", "", ""),
    ] {
        let found = said(text).map(|said| (said.name, said.value)).unwrap_or_default();
        assert_eq!(found, (name, value), "{text}");
    }
}

#[test]
fn a_line_may_have_several_fields() {
    for (text, expected) in [
        ("**Severity:** High | **CWE:** CWE-89", &["**Severity:** High", "**CWE:** CWE-89"][..]),
        ("**Source:** a → **Sink:** b", &["**Source:** a", "**Sink:** b"]),
        (
            "severity: High | cwe: CWE-89 · location: a.c:1",
            &["severity: High", "cwe: CWE-89", "location: a.c:1"],
        ),
        ("- 📍 **Location**: `a.c`", &["- 📍 **Location**: `a.c`"]),
        ("source: a | sink: b", &["source: a", "sink: b"]),
        ("source: a; Sink: b; file: c", &["source: a", "Sink: b", "file: c"]),
        // A text with signs of all kinds.
        ("source: a | place: b", &["source: a | place: b"]),
        ("source: a, sink: b", &["source: a, sink: b"]),
        ("sink: `a; source: b`", &["sink: `a; source: b`"]),
        ("flow: source: a; sink: b", &["flow: source: a; sink: b"]),
        ("**Evidence:** a | **Sink:** b", &["**Evidence:** a | **Sink:** b"]),
        ("**Source:** the **name** of it", &["**Source:** the **name** of it"]),
        ("| **Sink** | x |", &["| **Sink** | x |"]),
    ] {
        assert_eq!(fields(text), expected, "{text}");
    }
}
