//! Tests with whole files in the spellings of other programs and models, each with its expected result.

use super::read_summary;

macro_rules! foreign {
    ($($name:ident: $expected:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let text = include_bytes!(concat!("foreign/", stringify!($name), ".txt"));
                let expected: &str = $expected;
                let expected: Vec<&str> = expected.lines().map(|line| line.strip_prefix("        ").unwrap_or(line)).collect();
                let found = read_summary(text);
                assert_eq!(found, expected.join("\n").trim(), "\nfound\n{found}\n");
            }
        )*

        #[test]
        fn every_file_has_its_test() {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/read/tests/foreign");
            let mut names: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            names.sort();
            let mut tested = vec![$(stringify!($name)),*];
            tested.sort_unstable();
            assert_eq!(names, tested);
            assert!(names.len() >= 20);
        }
    };
}

foreign! {
    bold_bullets: r#"
        whole auth-2 [authentication, session handling] declared 2
          F001 complete | SQL built from a request parameter | High | CWE-89 | src/db/user.rs:41-58 | request parameter `name` | `sqlx::query` in `find_user` | handler::get -> db::find_user | "let q = format!(\"select * from users where name = '{name}'\");\nsqlx::query(&q)"
          F002 complete | Session id in the URL | Medium | CWE-598 | src/web/session.rs:12 | `Session::id` | `Redirect::to` |  | "Redirect::to(&format!(\"/home?sid={}\", session.id))"
    "#;
    crlf: r#"
        whole web-1 [xss]
          F001 complete | Reflected | High | CWE-79 | a.php:3 | $_GET | echo |  | "echo $_GET[\"q\"];"
          F002 complete | Stored | High |  | b.php:9 | comment | echo |  | "echo $c;"
    "#;
    bom_and_tabs: r#"
        whole bom-1 [files]
          F001 complete | Path traversal | Critical | CWE-22 | src/get.go:15 | the path | os.Open |  | "f, err := os.Open(base + path)\nif err != nil {\n\treturn err\n}"
    "#;
    whole_result_in_a_fence: r#"
        whole deps-1 [dependencies] declared 1
          F001 complete | Old library | Medium | CWE-1104 | Cargo.toml:14 | crates.io | build |  | "openssl = \"0.9\""
    "#;
    spellings_of_cwe: r#"
        whole cwe-1 [all]
          F001 complete | One | High | CWE-89 | a.c:1 | s | k |  | "x"
          F002 complete | Two | Critical | CWE-79 | a.c:2 | s | k |  | "x"
          F003 complete | Three | Info | CWE-200, CWE-209 | a.c:3 | s | k |  | "x"
          F004 complete | Four | Medium-High |  | a.c:4 | s | k |  | "x"
        30:1 unknown_severity
        31:1 says_nothing
    "#;
    two_results_in_one_transcript: r#"
        whole one [a]
          F001 complete | First | Low |  | a.c:1 | s | k |  | "x"
        whole two [b]
          F001 complete | Second | Low |  | b.c:1 | s | k |  | "y"
        checkpoint 10 1 7 [b]
    "#;
    restarted_after_a_cut: r#"
        mild re-1 [a, b]
          F001 complete | First | Low |  | a.c:1 | s | k |  | "x();"
          F002 needs_reaudit | Secon | - |  |  |  |  |  |  | lacks severity location source sink evidence
        whole re-1 [a, b]
          F001 complete | First | Low |  | a.c:1 | s | k |  | "x();"
          F002 complete | Second | Low |  | a.c:9 | s | k |  | "y();"
        14:1 ignored_text
    "#;
    markers_inside_evidence: r#"
        whole self-1 [parser]
          F001 complete | The parser takes any line for a marker | Medium | CWE-20 | src/read.rs:5 | a transcript | `marker` |  | "const START: &str = \"===AGENT_RESULT===\";\n===AGENT_RESULT_END===\n[F002] is a line of the code\nseverity: none, this is code too"
          F003 complete | Again, in a fence | Medium |  | src/read.rs:9 | a transcript | `marker` | a -> b | "===AGENT_RESULT_END===\n[F004] in code\nsource: code"
        13:3 inside_evidence
        14:3 inside_evidence
        24:1 inside_evidence
        25:1 inside_evidence
    "#;
    more_fields_than_asked_for: r#"
        whole more-1 [ssrf] declared 1
          F001 complete | Fetches any address | High | CWE-918 | src/fetch.js:3 | query.url | fetch |  | "await fetch(req.query.url)"
        7:1 ignored_text
    "#;
    headings_without_brackets: r#"
        whole head-1 [races]
          F001 complete | Check, then use | High | CWE-367 | src/tmp.c:10-14 | access() | open() |  | "if (access(path, W_OK) == 0)\n    fd = open(path, O_WRONLY);"
          F002 complete | Double fetch | Low |  | src/tmp.c:44 | user memory | copy |  | "get_user(a, p); get_user(b, p);"
    "#;
    other_numbering: r#"
        whole num-1 [x] declared 3
          F101 complete | A | Low |  | a.c:1 | s | k |  | "`x`"
          F102 complete | B | Low |  | a.c:5 | s | k |  | "`y`"
          F-AUTH-3 complete | C | Low |  | a.c:9 | s | k |  | "`z`"
    "#;
    missing_fields: r#"
        whole miss-1 []
          F001 truncated | No evidence | High |  | a.c:1 | s | k |  |  | lacks evidence
          F002 needs_reaudit | No sink | High |  | a.c:2 | s |  |  | "x" | lacks sink
          F003 complete | All but what is optional | High |  | a.c:3 | s | k |  | "x"
    "#;
    no_start_marker: r"
        severe - [] discarded 2
        19:1 end_without_start
    ";
    cut_before_the_agent: r"
        severe - [a, b] discarded 1
        checkpoint 10 4 12 [a,b]
    ";
    prompt_echoed: r#"
        whole echo-1 [a] declared 1
          F001 complete | Reads <stdin> | Low |  | a.c:1 | <stdin> | <eval> |  | "eval(input)"
        2:1 template
        7:1 template
        18:1 template
    "#;
    no_findings: r"
        whole none-1 [licences] declared 0
        6:1 ignored_text
    ";
    text_after_code: r#"
        whole text-1 [a]
          F001 complete | Text between pieces of code | High |  | src/a.py:3 | name | render |  | "render(name)\n# the same in b.py\n```python\nrender(title)\n```\nand nowhere else."
          F002 complete | Text in the line of its name | Low |  | src/a.rs:1 | s | k |  | "Built by hand:\n\nq(s)\nThe helper is never called.\n**Fix:** call it"
    "#;
    blank_lines_everywhere: r#"
        mild blank-1 [a]
          F001 complete | Spread out | Low |  | a.c:1 | s | k |  | "a();\n\nb();"
          F002 complete | Spread out, too | Low |  | a.c:9 | s | k |  | "c();"
    "#;
    checkpoints: r#"
        whole cp-1 [csrf]
          F001 complete | In the middle of a result | Low |  | a.c:1 | s | k |  | "[CHECKPOINT] turn:99 findings:99 files_read:99 remaining_dims:[]"
        checkpoint 10 2 11 [csrf,session handling]
        checkpoint 20 5 - -
        checkpoint 30 7 31 []
        checkpoint 40 7 35 []
        checkpoint 50 8 35 []
        6:1 broken_checkpoint
    "#;
    checkpoints_without_brackets: r#"
        whole cp-2 [csrf]
          F001 complete | One | Low |  | a.c:1 | s | k |  | "`k(s)`"
        6:1 unknown_field
    "#;
    inside_json: r"
        mild j-1 []
    ";
    json_lines: r#"
        whole jl-1 [tokens, sessions] declared 1
          F001 complete | Secret "changeme" in the code | High | CWE-798 | src/jwt.ts:6 | the source code | jwt.sign |  | "const secret = \"changeme\";\nsign(body, secret)"
        checkpoint 10 1 14 [sessions]
        2:1 template
        2:1 template
    "#;
    escaped_in_a_log: r"
        severe - [] unread 1
        1:1 inside_json
    ";
    findings_in_prose_without_cwe: r"
        whole prose-1 [sql, xss] unread 2
        5:1 unknown_field
        5:1 unread_finding
        7:1 ignored_text
        8:1 unread_finding
        10:1 ignored_text
    ";
    finding_after_the_end: r#"
        whole late-1 [a] unread 1
          F001 complete | First | Low |  | a.c:1 | s | k |  | "x();"
        16:1 unread_finding
    "#;
    prose_about_other_findings: r#"
        whole more-1 [a] unread 2
          F001 complete | First | Low | CWE-20 | a.c:1 | s | k |  | "`x()`"
        13:1 ignored_text
        13:1 unread_finding
        16:1 ignored_text
        16:1 unread_finding
        18:1 ignored_text
    "#;
    not_utf8: r#"
        mild bytes-1 [a]
          F001 truncated | Bad � byte | Low |  | a.c:1 | s | k |  | "x"
        4:12 not_utf8
    "#;
    bold_labels: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:10 | q | render |  | "render(q)"
    "#;
    code_like_ids: r#"
        whole a-1 [sql] declared 2
          F001 complete | Array index | High |  | src/a.rs:10 | name | execute |  | "let y: \n[f32] = x;\n[f64]\nF1: the first field"
          F002 complete | Other | Low |  | src/b.rs:1 | a | b |  | "x()"
        16:1 repeated_field
        17:1 repeated_field
    "#;
    code_without_fence: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "def login(name):\n    query = \"select \" + name\n    return db.execute(query)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "app.get(\"/\", (req, res) => {\n  res.send(req.query.q);\n});"
    "#;
    evidence_begins_in_its_line: r#"
        whole a-1 [sql] declared 1
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "q = \"select \" + name\ncursor.execute(q)"
    "#;
    findings_in_prose: r"
        whole a-1 [sql, xss] unread 1
        5:1 ignored_text
        5:1 unread_finding
    ";
    partly_filled_template: r"
        whole a-1 [sql] declared 1
          F001 needs_reaudit | SQL injection | - |  |  |  |  |  |  | lacks severity location source sink evidence
        7:1 says_nothing
        8:1 says_nothing
        9:1 says_nothing
        10:1 says_nothing
        11:1 says_nothing
    ";
    header_after_findings: r#"
        whole a-1 [sql] declared 3
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "cursor.execute(q)"
    "#;
    headings_for_groups: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "`x`"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "`y`"
        5:1 unknown_field
        14:1 unknown_field
    "#;
    http_as_evidence: r#"
        whole a-1 [sql, xss] unread 1
          F001 complete | Header injection | High |  | src/a.py:10 | header | response |  | "GET /?x=1 HTTP/1.1\nHost: example.com\nCookie: a=b"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "x"
        15:1 ignored_text
        16:1 unread_finding
    "#;
    json_between_markers: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL | High |  | src/a.py:10 | name | execute |  | "x"
          F002 complete | XSS | Low |  | src/b.py:4 | q | render |  | "y"
    "#;
    json_cut: r#"
        mild a-1 [sql] declared 2
          SQLI-1 complete | SQL | High | CWE-89, CWE-564 | src/a.py:10-12 | name | execute |  | "a()\nb()"
          2 needs_reaudit | XSS | Low | CWE-79 | src/b.py:1 |  |  |  |  | lacks source sink evidence
        1:1 broken_json
    "#;
    json_cut_between_findings: r#"
        mild j-1 [sql, xss] declared 2
          F001 complete | A | High | CWE-89 | a.py:3 | x | y |  | "e()"
          F002 complete | B | Low | CWE-79 | b.py:4 | r | send |  | "send(r)"
        3:1 broken_json
    "#;
    json_cut_and_ended: r#"
        whole j-1 [sql, xss]
          F001 complete | A | High | CWE-89 | a.py:3 | x | y |  | "e()"
          F002 complete | B | Low | CWE-79 | b.py:4 | r | send |  | "send(r)"
        3:1 broken_json
    "#;
    separate_line_fields: r#"
        whole ln-1 [access] declared 4
          F001 complete | No check in login | High | CWE-862 | src/a.rs:3-9 | p | q |  | "one()"
          F002 complete | No check in delete | High | CWE-862 | src/a.rs:50-60 | p | q |  | "`two()`"
          F003 complete | Lines that say it already | High | CWE-862 | src/b.rs:3-9 | p | q |  | "three()"
          F004 complete | Only the last one | High | CWE-862 | src/c.rs | p | q |  | "four()"
    "#;
    json_in_a_fence: r#"
        whole a-1 [sql] declared 2
          SQLI-1 complete | SQL | High | CWE-89, CWE-564 | src/a.py:10-12 | name | execute |  | "a()\nb()"
          2 complete | XSS | Low | CWE-79 | src/b.py:1 | q | render |  | "render(q)"
    "#;
    json_in_fence_and_markers: r#"
        whole a-1 [sql] declared 2
          SQLI-1 complete | SQL | High | CWE-89, CWE-564 | src/a.py:10-12 | name | execute |  | "a()\nb()"
          2 complete | XSS | Low | CWE-79 | src/b.py:1 | q | render |  | "render(q)"
    "#;
    nested_bullets: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "- `execute(name)`"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "`render(q)`"
        7:3 ignored_text
        10:3 ignored_text
    "#;
    no_findings_in_prose: r"
        whole a-1 [sql, xss]
        5:1 ignored_text
    ";
    not_available: r#"
        whole a-1 [sql, xss]
          F001 needs_reaudit | Hard-coded key | High | CWE-798 | src/k.py:1 |  | encrypt |  | "KEY = \"x\"" | lacks source
        9:1 says_nothing
    "#;
    other_labels: r#"
        whole sql-1 [sql, xss]
          F001 complete | SQL built in the login | High | CWE-89 | src/login.py:10 | `request.form["name"]` | `cursor.execute` | login -> find | "`cursor.execute(\"…\" + name)`"
          F002 complete | Template that escapes nothing | Medium | CWE-79 | src/page.py:5 src/page.py:9 | the comment | render |  | "render(comment)"
        4:1 unknown_field
        8:1 unknown_field
        10:1 unknown_field
        12:1 repeated_field
        14:1 unknown_field
        15:1 unknown_field
        21:1 unknown_field
        23:1 unknown_field
        28:1 ignored_text
        34:1 ignored_text
        36:1 ignored_text
    "#;
    other_ids: r#"
        whole a-1 [sql, xss]
          SQLI-1 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
          XSS-1 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
    "#;
    overview_before_a_cut: r#"
        mild web-1 [web] declared 2
          F001 complete | Link that leads anywhere | High | CWE-601 | go.ts:7 | next | redirect() |  | "`redirect(next)`"
          F002 needs_reaudit | Cookie for every page | Low | CWE-614 |  |  |  |  |  | lacks location source sink evidence
        6:1 ignored_text
    "#;
    paragraphs_between: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
        7:1 ignored_text
        29:1 ignored_text
    "#;
    prose_before_code: r#"
        whole a-1 [sql] declared 2
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10-12 | request.args | cursor.execute |  | "The handler concatenates:\n\nq = \"select \" + name\ncursor.execute(q)"
          F002 complete | Two snippets | Low |  | src/b.py:1 | argv | os.system |  | "cmd = sys.argv[1]"
        27:1 ignored_text
        28:1 ignored_text
    "#;
    rules_between: r#"
        whole a-1 [sql, xss] declared 2
          F001 complete | SQL in login | High | CWE-89 | src/a.py:10 | `request.args["name"]` | `cursor.execute` |  | "[F002] = x\n===AGENT_RESULT_END===\nq(name)\n\nr()"
          F002 complete | XSS | Low |  | src/b.py:3 | name | render |  | "`render(name)`"
        16:1 inside_evidence
        17:1 inside_evidence
    "#;
    stars_and_spaces: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | `name` | `execute` | `a` -> `b` | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
    "#;
    steps_of_flow: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute | `a` receives -> `b` calls with x -> `c` runs | "x"
    "#;
    struck_through_findings: r#"
        whole a-1 [sql, xss]
          F001 needs_reaudit | ~~SQL injection~~ (false positive) | - |  |  |  |  |  |  | lacks severity location source sink evidence
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
    "#;
    summaries_before_and_after: r#"
        whole a-1 [sql]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "cursor.execute(q)"
          F002 complete | XSS | Low | CWE-79 | src/b.py:3 | name | render |  | "render(name)"
        5:1 ignored_text
        25:1 unknown_field
    "#;
    summary_after_findings: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
        21:1 unknown_field
        25:1 ignored_text
    "#;
    table_then_details: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "`execute(name)`"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "`render(q)`"
        5:1 unknown_field
        7:1 ignored_text
        12:1 unknown_field
    "#;
    thinking_before_the_result: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "def login(name):\n    query = \"select \" + name\n    return db.execute(query)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "app.get(\"/\", (req, res) => {\n  res.send(req.query.q);\n});"
    "#;
    two_transcripts: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "def login(name):\n    query = \"select \" + name\n    return db.execute(query)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "app.get(\"/\", (req, res) => {\n  res.send(req.query.q);\n});"
        whole a-2 [sql, xss]
          SQLI-1 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
          XSS-1 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
    "#;
    multi_line_values: r#"
        whole lists-1 [sql] declared 1 unread 1
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute | login -> | "execute(name)"
        4:1 ignored_text
        11:1 ignored_text
        11:1 unread_finding
        13:1 ignored_text
        16:1 ignored_text
    "#;
}
