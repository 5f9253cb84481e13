use super::{failed_checks, names};

const OMISSIONS: &[&str] = &[
    "// ... rest of the code remains unchanged ...",
    "# ... (existing code)",
    "// rest of the code unchanged",
    "/* ... other methods ... */",
    "<!-- rest of the markup stays the same -->",
    "{/* ... existing components ... */}",
    "-- remaining columns omitted for brevity",
    "; rest of the function here",
    "# The rest of the implementation remains the same",
    "// [... existing code ...]",
    "// … unchanged …",
    "# Rest des Codes bleibt unverändert",
    "// ... reste du code inchangé",
    "# resto del código sin cambios",
    "// 其余代码保持不变",
    "# 残りのコードは変更なし",
    "// 나머지 코드는 동일",
    "// остальной код без изменений",
    "+    # ... keep the existing imports",
    "... (rest of the file is unchanged) ...",
    "# ... 150 more lines ...",
    "# 42 lines omitted",
];

#[test]
fn omissions_are_found_in_comments_of_any_language() {
    for comment in OMISSIONS {
        let markdown = format!("Here it is:\n\n```\nfn a() {{\n    {comment}\n}}\n```\n\nThat is all.\n");
        assert_eq!(names(&markdown), ["omission"], "{comment}");
        let code = format!("fn a() {{\n    let x = 1;\n    {comment}\n}}\n");
        assert_eq!(names(&code), ["omission"], "{comment}");
    }
}

#[test]
fn comments_that_describe_code_are_not_omissions() {
    for comment in [
        "// fall back to the rest of the list if the first is empty",
        "# same as before, but with a lock",
        "// existing files are not overwritten",
        "# Loading files...",
        "// the other methods take a lock, too",
        "# keep the existing value if there is one",
        "// unchanged files are skipped",
        "/* remaining bytes of the frame */",
        "// is the same as:",
        "// If function is omitted in the constructor, it can be set later",
        "# 3 lines omitted because of privacy",
    ] {
        let code = format!("fn a() {{\n    {comment}\n    let x = 1;\n    run(x);\n}}\n");
        assert_eq!(failed_checks(&code), [], "{comment}");
    }
}

#[test]
fn a_finding_reports_its_position() {
    let text = "fn a() {\n    let ü = 1; // ... rest of the code\n}\n";
    let report = super::judge(text);
    let [finding] = report.findings() else { panic!("{report:?}") };
    assert_eq!((finding.line, finding.column, finding.text.as_str()), (2, 19, "... rest of the code"));
}

#[test]
fn truncated_code_and_data_are_found() {
    for text in [
        "fn a() {\n    if x {\n        run(",
        "int main(void) {\n    printf(\"x\");\n    for (;;) {\n",
        "import os\n\ndef f():\n    \"\"\"Says that",
        "const a = {\n    b: 1,\n    c: [\n        2,",
        "{\"a\": [1, 2",
        "int x = 1;\nint y = 2;\n/* a comment\n   that goes on",
    ] {
        assert_eq!(names(text), ["open_code"], "{text}");
    }
    for text in [
        "fn a() {\n    if x {\n        run();\n    }\n}\n",
        "import os\n\ndef f():\n    \"\"\"Says it.\"\"\"\n    return {'a': (1, 2)}\n",
        "{\"a\": [1, 2]}\n",
        "fn f<'a>(x: &'a str) -> &'a str {\n    x\n}\n",
        "let s = \"a ( b\"; // it's (\nrun(s);\n",
    ] {
        assert_eq!(names(text), [] as [&str; 0], "{text}");
    }
}
