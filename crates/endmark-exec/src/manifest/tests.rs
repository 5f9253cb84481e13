use endmark_envelope::FieldPath;
use proptest::prelude::*;

use super::*;

const MANIFEST_WITH_ALL_KEYS: &str = r#"
description = "notes"
command = ["notes", "add"]
flags_with_value = "--tag"
max_argument_bytes = 100_000
timeout_seconds = 1.5
grace_seconds = 0

[[arguments]]
name = "title"
flag = ["-t", "--title"]
max_bytes = 255

[[arguments]]
name = "body"
position = -1
max_bytes = 0x10

[[arguments]]
name = "token"
environment = "NOTES_TOKEN"
max_bytes = 64

[stdin]
max_bytes = 10

[stderr]
max_bytes = 0

[output]
kind = "jsonl"
max_captured_bytes = 1024
max_response_bytes = 2048
pages = "data"

[[output.fields]]
path = 'data[*].title'
max_bytes = 255
marker = "~"

[[output.fields]]
path = 'data[*]["odd key"]'
characters_field = "length"

[exit_codes]
1 = "ok"
4 = "no_such_note"
5 = { error = "busy", exit_code = 1, message = "the notes are in use", hint = "Try again." }
"#;

#[test]
fn every_manifest_setting_is_parsed() {
    let manifest = parse(MANIFEST_WITH_ALL_KEYS).unwrap();
    assert_eq!(manifest.command, ["notes", "add"]);
    assert_eq!((manifest.timeout, manifest.grace), (Some(Duration::from_millis(1500)), Duration::ZERO));
    assert_eq!((manifest.max_stdin_bytes, manifest.max_stderr_bytes), (Some(10), 0));
    let limits: Vec<_> =
        manifest.arguments.iter().map(|limit| (limit.name.as_str(), limit.max_bytes)).collect();
    assert_eq!(limits, [("title", 255), ("body", 16), ("token", 64)]);
    assert_eq!(manifest.arguments[1].source, ArgumentSource::Position { index: 0, from_end: true });
    assert_eq!((manifest.output.kind, manifest.output.max_captured_bytes), (OutputKind::Jsonl, 1024));
    assert_eq!(manifest.output.pages, Some(FieldPath::data()));
    let title = FieldPath::data().index(3).key("title");
    assert_eq!(manifest.output.fields.rule_for(&title).max_bytes, Some(255));
    let odd = FieldPath::data().index(0).key("odd key");
    assert_eq!(manifest.output.fields.rule_for(&odd).chars_in.as_deref(), Some("length"));
    assert_eq!(manifest.exit_codes[&1], ExitMeaning::Success);
    assert!(matches!(&manifest.exit_codes[&5], ExitMeaning::Error { exit: ExitStatus::Negative, .. }));
    assert_eq!(parse(""), Ok(Manifest::default()));
    assert_eq!(parse("timeout_seconds = 0").unwrap().timeout, None);
}

/// Invalid manifests, each with the line of the error, its message and its hint.
const INVALID_MANIFESTS: &[(&str, usize, &str, Option<&str>)] = &[
    ("a = ", 1, "", None),
    (
        "\nmax_argumnt_bytes = 1",
        2,
        "unknown key `max_argumnt_bytes`",
        Some("Did you mean `max_argument_bytes`?"),
    ),
    (
        "[output]\nkind = \"xml\"",
        2,
        "`kind` in `output` must be one of `json`, `jsonl`, `text`, `auto`",
        None,
    ),
    ("[output]\n\n[output.field]\n", 3, "unknown key `field` in `output`", Some("Did you mean `fields`?")),
    (
        "[[arguments]]\nname = \"x\"\nmax_bytes = 1",
        1,
        "state where `x` is: `position`, `flag` or `environment`",
        None,
    ),
    (
        "[[arguments]]\nname = \"x\"\nmax_bytes = -1",
        3,
        "`max_bytes` in `arguments` must be a whole number, 0 or more",
        None,
    ),
    ("[[arguments]]\nflag = \"-x\"\nmax_bytes = 1", 1, "`name` is missing in `arguments`", None),
    (
        "[[arguments]]\nname = \"x\"\nmax_bytes = 1\nflag = \"-x\"\nposition = 1",
        1,
        "`x` has two positions: use one of `position`, `flag`, `environment`",
        None,
    ),
    (
        "[[arguments]]\nname = \"x\"\nmax_bytes = 1\nflag = \"x\"",
        4,
        "`flag` in `arguments` must be a flag, like \"--title\" or [\"-t\", \"--title\"]",
        None,
    ),
    ("arguments = 1", 1, "`arguments` must be a list of tables: write each under `[[arguments]]`", None),
    ("stdin = 1", 1, "`stdin` must be a table", None),
    (
        "[[output.fields]]\npath = \"items[*]\"",
        2,
        "`path` in `output.fields` must be the path of a field, like `data.items[*].title` or `data[\"odd key\"]`",
        None,
    ),
    (
        "[output]\npages = \"items\"",
        2,
        "`pages` in `output` must be the path of a list, like `data` or `data.items`",
        None,
    ),
    ("[exit_codes]\n256 = \"x\"", 2, "`256` is not an exit code: write a number from 0 to 255", None),
    (
        "[exit_codes]\n1 = 7",
        2,
        "`1` in `exit_codes` must be `ok`, the word for an error, or { error = \"word\", … }",
        None,
    ),
    ("[exit_codes]\n1 = { exit_code = 1 }", 2, "`error` is missing in `exit_codes.1`", None),
    ("timeout_seconds = inf", 1, "`timeout_seconds` must be a number of seconds from 0 to 31536000", None),
    ("nonsense = 1", 1, "unknown key `nonsense`", Some("docs/exec.md lists every key there is.")),
];

#[test]
fn a_manifest_error_has_its_line_and_suggests_the_nearest_key() {
    for (text, line, message, hint) in INVALID_MANIFESTS {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, *line, "{text}: {error}");
        if !message.is_empty() {
            assert_eq!(error.problem.to_string(), *message, "{text}");
        }
        assert_eq!(error.hint().as_deref(), *hint, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_manifest_or_an_error_with_a_line(text in "\\PC{0,200}") {
        if let Err(error) = parse(&text) {
            prop_assert!((1..=text.lines().count().max(1) + 1).contains(&error.line));
        }
    }

    #[test]
    fn a_damaged_manifest_is_valid_or_an_error(
        at in 0..MANIFEST_WITH_ALL_KEYS.len(), length in 0_usize..12, insert in "[\\[\\]=\"{}\\-_a-z0-9\n]{0,6}",
    ) {
        let (begin, end) = (MANIFEST_WITH_ALL_KEYS.floor_char_boundary(at), MANIFEST_WITH_ALL_KEYS.floor_char_boundary((at + length).min(MANIFEST_WITH_ALL_KEYS.len())));
        let text = format!("{}{insert}{}", &MANIFEST_WITH_ALL_KEYS[..begin], &MANIFEST_WITH_ALL_KEYS[end..]);
        if let Err(error) = parse(&text) {
            prop_assert!((1..=text.lines().count() + 1).contains(&error.line));
        }
    }
}
