//! Whole files in the spellings of others, beside what must be read of each.

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
    other_order_and_case: r#"
        whole crypto-1 [crypto]
          F001 complete | Fixed IV | Low | CWE-329 | src/crypto.rs:7 | the constant `iv` | Aes128Cbc::new |  | "  let iv = [0u8; 16];"
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
    fullwidth_punctuation: r#"
        whole 登录-1 [认证, 会话管理] declared 1
          F001 complete | 登录接口存在 SQL 注入 | High | CWE-89 | src/login.py:88-90 | 请求参数 user | cursor.execute |  | "cursor.execute(\"select * from u where n='\" + user + \"'\")"
    "#;
    dashes_and_equals: r#"
        whole api-4 [rate limits, csrf]
          F001 complete | No CSRF token | High | CWE-352 | app/forms.py:31 | any site | POST /transfer |  | "@csrf_exempt"
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
    indented_as_yaml: r#"
        whole yaml-1 [upload, download]
          F001 complete | Upload of any file | High | CWE-434 | app/upload.rb:20-31 | params[:file] | File.write | UploadController#create -> Store.put -> File.write | "File.write(path, params[:file].read)\n\n# no check of the type"
          F002 complete | Download of any file | High |  | app/download.rb:4 | params[:name] | send_file |  | "send_file params[:name]"
    "#;
    quoted: r#"
        whole quote-1 [logging]
          F001 complete | Password in the log | High | CWE-532 | src/log.ts:9 | `password` | console.log |  | "console.log(\"login\", user, password)"
    "#;
    table_of_fields: r#"
        whole table-1 [deserialisation]
          F001 complete | Pickle from the network | Critical | CWE-502 | worker.py:77 | socket | pickle.loads |  | "job = pickle.loads(sock.recv(65536))"
        3:1 ignored_text
        10:1 ignored_text
    "#;
    more_fields_than_asked_for: r#"
        whole more-1 [ssrf] declared 1
          F001 complete | Fetches any address | High | CWE-918 | src/fetch.js:3 | query.url | fetch |  | "await fetch(req.query.url)"
        3:1 unknown_field
        7:1 ignored_text
        11:1 unknown_field
        18:1 unknown_field
        19:1 unknown_field
        20:1 ignored_text
    "#;
    headings_without_brackets: r#"
        whole head-1 [races]
          F001 complete | Check, then use | High | CWE-367 | src/tmp.c:10-14 | access() | open() |  | "if (access(path, W_OK) == 0)\n    fd = open(path, O_WRONLY);"
          F002 complete | Double fetch | Low |  | src/tmp.c:44 | user memory | copy |  | "get_user(a, p); get_user(b, p);"
    "#;
    numbered_otherwise: r#"
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
    json_like_fields: r#"
        whole json-1 [redirects, headers] declared 1
          F001 complete | Open redirect | Medium | CWE-601 | src/go.ts:5 | query.next | res.redirect |  | "res.redirect(req.query.next)"
    "#;
    forgotten_fence: r#"
        whole fence-1 [a]
          F001 complete | The fence is never closed | Low |  | a.c:1 | s | k |  | "x();"
          F002 complete | And yet there is a second one | Low |  | a.c:9 | s | k |  | "y();"
    "#;
    text_behind_code: r#"
        whole text-1 [a]
          F001 complete | Text between pieces of code | High |  | src/a.py:3 | name | render |  | "render(name)\n# the same in b.py\n\nrender(title)\nand nowhere else."
          F002 complete | Text in the line of its name | Low |  | src/a.rs:1 | s | k |  | "Built by hand:\nq(s)\nThe helper is never called."
        30:3 unknown_field
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
        checkpoint 20 5 23 [csrf]
        checkpoint 30 7 31 []
        checkpoint 40 7 35 []
        checkpoint 50 8 35 []
        6:1 broken_checkpoint
    "#;
    checkpoints_without_brackets: r#"
        whole cp-2 [csrf]
          F001 complete | One | Low |  | a.c:1 | s | k |  | "`k(s)`"
        checkpoint 10 2 11 [csrf]
        checkpoint 20 3 12 []
    "#;
    inside_json: r"
        mild j-1 []
    ";
    headings_that_differ: r#"
        whole mix-1 [injection, files] declared 5
          F001 complete | SQL from a form field | Critical | CWE-89 | app/models/user.rb:18 | params[:name] | User.where |  | "User.where(\"name = '#{params[:name]}'\")"
          F002 complete | Path from a header | High | CWE-22 | app/files.rb:7-9 | X-File header | File.read |  | "File.read(\"/srv/\" + request.headers[\"X-File\"])"
          F003 complete | Open redirect | Medium | CWE-601 | app/login.rb:44 | params[:next] | redirect_to |  | "`redirect_to params[:next]`"
          F004 complete | Mass assignment | Low | CWE-915 | app/users.rb:5 | params[:user] | User.new |  | "`User.new(params[:user].permit!)`"
          F005 complete | Debug page in production | Info |  | config/routes.rb:3 | anyone | mount of the console |  | "`mount WebConsole::Engine`"
    "#;
    headings_of_several_languages: r#"
        whole lang-1 [auth]
          F001 complete | Befund 1: Passwort im Klartext | High | CWE-256 | src/Konto.java:30 | Anmeldeformular | INSERT INTO konto |  | "stmt.setString(2, passwort);"
          F002 complete | Vulnérabilité 2 : jeton prévisible | Medium | CWE-330 | src/Jeton.java:12 | java.util.Random | cookie de session |  | "`new Random().nextInt()`"
          F003 complete | 密码重置链接不过期 | Low | CWE-640 | src/Reset.java:55 | 重置链接 | resetPassword |  | "token.expires = null;"
          F004 complete | Уязвимость №4 — нет выхода из системы | Low |  | src/Session.java:8 | кнопка выхода | сессия |  | "`// session.invalidate()`"
    "#;
    json_behind_prose: r#"
        whole both-1 [xss, csrf] declared 3
          F001 complete | Name is shown unescaped | High | CWE-79 | web/name.erb:4 | profile name | raw |  | "<%= raw user.name %>"
          F002 complete | No token in the form | Medium | CWE-352 | web/transfer.erb:10 | any site | POST /transfer |  | "<form method=post action=/transfer>"
          F003 complete | Token is compared byte by byte | Low | CWE-208 | web/token.rb:2 | header X-Token | String#== |  | "`token == given`"
    "#;
    json_lines: r#"
        whole jl-1 [tokens, sessions] declared 1
          F001 complete | Secret "changeme" in the code | High | CWE-798 | src/jwt.ts:6 | the source code | jwt.sign |  | "const secret = \"changeme\";\nsign(body, secret)"
        checkpoint 10 1 14 [sessions]
        2:37 template
        2:37 template
    "#;
    escaped_in_a_log: r"
        severe - [] unread 1
        1:1 inside_json
    ";
    notes_at_markers: r#"
        whole note-1 [a]
          F001 complete | Weak hash | Medium | CWE-328 | a.py:3 | password | md5 |  | "md5(password)"
    "#;
    findings_in_prose_without_cwe: r"
        whole prose-1 [sql, xss] unread 2
        5:1 unread_finding
        8:1 unread_finding
        10:1 unknown_field
    ";
    finding_behind_the_end: r#"
        whole late-1 [a] unread 1
          F001 complete | First | Low |  | a.c:1 | s | k |  | "x();"
        16:1 unread_finding
    "#;
    prose_about_another: r#"
        whole more-1 [a] unread 2
          F001 complete | First | Low | CWE-20 | a.c:1 | s | k |  | "`x()`"
        13:1 ignored_text
        13:1 unread_finding
        14:1 unknown_field
        16:1 unknown_field
        16:1 unread_finding
        18:1 unknown_field
    "#;
    not_utf8: r#"
        mild bytes-1 [a]
          F001 truncated | Bad � byte | Low |  | a.c:1 | s | k |  | "x"
        4:12 not_utf8
    "#;
    bold_and_nested: r#"
        whole a-1 [sql]
          F001 complete | SQL injection in `login` (confirmed) | High | CWE-89, CWE-564 | src/a.py:10-12 | name | execute | login -> query | "def login():\n    q(name)"
          F002 needs_reaudit | XSS | Info |  | src/b.py |  |  |  |  | lacks source sink evidence
        20:4 unknown_field
        21:6 ignored_text
        25:4 says_nothing
        26:4 says_nothing
    "#;
    bold_labels: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:10 | q | render |  | "render(q)"
    "#;
    code_like_ids: r#"
        whole a-1 [sql] declared 2
          F001 complete | Array index | High |  | src/a.rs:10 | name | execute |  | "let y: \n[f32] = x;\n[f64]\nF1: the first field\nsource: not a field\nlines: 10"
          F002 complete | Other | Low |  | src/b.rs:1 | a | b |  | "x()"
        15:1 inside_evidence
    "#;
    code_without_fence: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "def login(name):\n    query = \"select \" + name\n    return db.execute(query)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "app.get(\"/\", (req, res) => {\n  res.send(req.query.q);\n});"
    "#;
    dash_behind_id: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:10 | q | render |  | "render(q)"
    "#;
    evidence_begins_in_its_line: r#"
        whole a-1 [sql] declared 1
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "q = \"select \" + name\ncursor.execute(q)"
    "#;
    fields_alone: r#"
        whole a-1 [sql, xss]
          F001 complete |  | High |  | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete |  | Low |  | src/b.py:10 | q | render |  | "render(q)"
    "#;
    findings_in_prose: r"
        whole a-1 [sql, xss] unread 2
        5:1 unread_finding
        6:1 unread_finding
    ";
    half_a_template: r"
        whole a-1 [sql] declared 1
          F001 needs_reaudit | SQL injection | - |  |  |  |  |  |  | lacks severity location source sink evidence
        7:1 says_nothing
        8:1 says_nothing
        9:1 says_nothing
        10:1 says_nothing
        11:1 says_nothing
    ";
    header_behind: r#"
        whole a-1 [sql] declared 3
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "cursor.execute(q)"
    "#;
    heading_for_each_field: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
    "#;
    headings_and_numbers: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL Injection in `login` | High | CWE-89 | src/a.py:10-12 | `request.args["name"]` | `cursor.execute` |  | "cursor.execute(\"select \" + name)"
          F002 complete | Reflected XSS | Medium | CWE-79 | src/b.py:3 | query | render |  | "render(q)"
    "#;
    severity_in_headings: r#"
        whole auth-2 [a] declared 3
          F001 complete | SQL | Critical |  | src/db/user.rs:41-58 | name | sqlx::query |  | "q(name)"
          F002 complete | Session | Low |  | src/web/session.rs:12 | Session::id | Redirect::to |  | "Redirect::to(id)"
          F003 complete | Other | High |  | src/web/other.rs:12 | x | y |  | "z(id)"
          F004 truncated | In none | - |  | src/web/none.rs:12 | x | y |  | "z(id)" | lacks severity
        6:1 ignored_text
        39:1 ignored_text
    "#;
    severity_above_tables: r#"
        whole auth-2 []
          F001 complete | SQL | High |  | src/a.rs:3 | name | query |  | "`q(name)`"
          F002 complete | Session | Low |  | src/b.rs:3 | id | redirect |  | "`r(id)`"
    "#;
    headings_for_groups: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "`x`"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "`y`"
    "#;
    http_as_evidence: r#"
        whole a-1 [sql, xss]
          F001 complete | Header injection | High |  | src/a.py:10 | header | response |  | "GET /?x=1 HTTP/1.1\nHost: example.com\nCookie: a=b\n\nHTTP/1.1 200 OK\nLocation: http://evil"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "x"
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
        7:95 broken_json
    "#;
    json_cut_between_findings: r#"
        mild j-1 [sql, xss] declared 2
          F001 complete | A | High | CWE-89 | a.py:3 | x | y |  | "e()"
          F002 complete | B | Low | CWE-79 | b.py:4 | r | send |  | "send(r)"
        5:143 broken_json
    "#;
    json_cut_and_ended: r#"
        whole j-1 [sql, xss] unread 1
          F001 complete | A | High | CWE-89 | a.py:3 | x | y |  | "e()"
          F002 complete | B | Low | CWE-79 | b.py:4 | r | send |  | "send(r)"
        6:1 broken_json
    "#;
    json_places: r#"
        whole j-1 [access] declared 10
          F001 complete | T1 | High | CWE-862 | src/a.rs (login) | p | q |  | "e1()"
          F002 complete | T2 | High | CWE-862 | src/a.rs (delete, Users) | p | q |  | "e2()"
          F003 complete | T3 | High | CWE-862 | src/a.rs:3-5 | p | q |  | "e3()"
          F004 complete | T4 | High | CWE-862 | src/a.rs:30-39 | p | q |  | "e4()"
          F005 complete | T5 | High | CWE-862 | src/a.rs:50-60 | p | q |  | "e5()"
          F006 complete | T6 | High | CWE-862 | src/a.rs:70 | p | q |  | "e6()"
          F007 complete | T7 | High | CWE-862 | src/a.rs | p | q |  | "e7()"
          F008 complete | T8 | High | CWE-862 | src/a.rs:80-82 src/b.rs:9-12 | p | q |  | "e8()"
          F009 complete | T9 | High | CWE-862 | src/a.rs (logout, Users) | p | q |  | "e9()"
          F010 complete | T10 | High | CWE-862 | src/a.rs:90-95 | p | q |  | "e10()"
    "#;
    functions_beside: r#"
        whole fn-1 [access] declared 6
          F001 complete | No check in login | High | CWE-862 | src/a.rs (login) | p | q |  | "one()"
          F002 complete | No check in delete | High | CWE-862 | src/a.rs (Users, delete, delete_all) | p | q |  | "`two()`"
          F003 complete |  | High | CWE-862 | src/a.rs (POST users) | p | q |  | "three()"
          F004 complete | Code that looks like it | High | CWE-862 | src/a.rs:7 | p | q |  | "fetch(url, {\nmethod: \"POST\",\nroute: here,\n})"
          F005 complete | Said already | High | CWE-862 | src/a.rs (send) | p | q |  | "five()"
          F006 complete | Nowhere else | Low | CWE-20 | src/z.rs | r | t |  | "`six()`"
        27:1 ignored_text
        60:1 unknown_field
        70:1 unknown_field
    "#;
    lines_beside: r#"
        whole ln-1 [access] declared 4
          F001 complete | No check in login | High | CWE-862 | src/a.rs:3-9 | p | q |  | "one()"
          F002 complete | No check in delete | High | CWE-862 | src/a.rs:50-60 | p | q |  | "`two()`"
          F003 complete | Lines that say it already | High | CWE-862 | src/b.rs:3-9 | p | q |  | "three()"
          F004 complete | Only the last one | High | CWE-862 | src/c.rs:9 | p | q |  | "four()"
        32:1 repeated_field
    "#;
    json_in_a_fence: r#"
        whole a-1 [sql] declared 2
          SQLI-1 complete | SQL | High | CWE-89, CWE-564 | src/a.py:10-12 | name | execute |  | "a()\nb()"
          2 complete | XSS | Low | CWE-79 | src/b.py:1 | q | render |  | "render(q)"
    "#;
    source_to_sink: r#"
        whole ends-1 [sql, hashes] declared 5
          F001 complete | SQL injection in login | High | CWE-89 | src/a.rs:7 | name | query |  | "query(name)"
          F002 complete | Weak hash | Medium |  | src/b.rs:7 | `password` | `md5` |  | "`md5(password)`"
          F003 complete | Three steps | Medium |  | src/c.rs:7 | password | md5 | password -> hash -> md5 | "md5(hash(password))"
          F004 complete | Said by other fields as well | Medium |  | src/d.rs:7 | the body | the log | body → log | "log(body)"
          F005 needs_reaudit | No arrow | Medium |  | src/e.rs:7 |  |  | body | "log(body)" | lacks source sink
    "#;
    json_evidence: r#"
        whole j [auth] declared 3
          F001 complete | No check in login | High | CWE-862 | src/a.rs:3 | p | q |  | "file: src/a.rs\nline: 3\none()\n  two()"
          F002 complete | No check in delete | High | CWE-862 | src/a.rs:50 | r | s |  | "line: 50\ntwo()\nfrom: r\nto: s\nto: t\nseen by hand"
          F003 complete | No check in list | Low | CWE-862 | src/a.rs:90 | r | s |  | "source: r()\nsink: s()"
    "#;
    json_in_fence_and_markers: r#"
        whole a-1 [sql] declared 2
          SQLI-1 complete | SQL | High | CWE-89, CWE-564 | src/a.py:10-12 | name | execute |  | "a()\nb()"
          2 complete | XSS | Low | CWE-79 | src/b.py:1 | q | render |  | "render(q)"
    "#;
    list_in_yaml: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)\ndone()"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
        4:1 unknown_field
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
    numbers_and_bold: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection in login — High | High | CWE-89 | src/a.py:10-12 | name | execute |  | "`execute(name)`"
          F002 complete | XSS | Low |  | src/b.py:4 | q | render |  | "`render(q)`"
    "#;
    numbers_in_front: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection in login | High |  | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
    "#;
    titles_in_the_column_of_ids: r#"
        whole log-1 [logging] declared 2
          F001 complete | Forged lines | High | CWE-117 | a.js:3 b.js:7-9 | header | `log.info` |  | "`log.info(h)`\n`log.warn(h)`"
          F002 complete | Addresses in logs | Low | CWE-532 | c.js:9 d.js | email of the customer | `log.debug` |  | "`log.debug(user.email)`"
    "#;
    summaries_of_details: r#"
        whole web-1 [xss] declared 2
          F001 complete | Comment that closes </b> | High | CWE-79 | page.js:4 | the comment | render |  | "render(\"<b>\" + comment + \"</b>\")"
          F002 complete | Script that ends with </script> | High | CWE-79 | page.js:9 | the name | render |  | "`render(name)`"
    "#;
    other_labels: r#"
        whole sql-1 [sql, xss]
          F001 complete | SQL built in the login | High | CWE-89 | src/login.py:10 | `request.form["name"]` | `cursor.execute` | login -> find | "`cursor.execute(\"…\" + name)`"
          F002 complete | Template that escapes nothing | Medium | CWE-79 | src/page.py:5 src/page.py:9 | the comment | render |  | "render(comment)"
        4:1 unknown_field
        8:1 unknown_field
        10:1 unknown_field
        11:3 ignored_text
        12:1 repeated_field
        14:1 ignored_text
        17:1 unknown_field
        19:1 ignored_text
        21:1 ignored_text
        23:1 ignored_text
        28:1 unknown_field
        32:1 unknown_field
        34:1 unknown_field
        36:1 ignored_text
        39:1 unknown_field
    "#;
    other_ids: r#"
        whole a-1 [sql, xss]
          SQLI-1 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
          XSS-1 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
    "#;
    overview_with_numbers: r#"
        whole web-1 [web] declared 3
          F003 needs_reaudit | Cookie for every page | Low |  |  |  |  |  |  | lacks location source sink evidence
          F001 complete | Link that leads anywhere | High | CWE-601 | go.ts:7 | next | redirect() |  | "`redirect(next)`"
          F002 complete | Cookie for every page | Low | CWE-614 | cookie.ts:3 | network | cookie() |  | "`cookie(id)`"
    "#;
    overview_before_a_cut: r#"
        mild web-1 [web] declared 2
          F001 complete | Link that leads anywhere | High | CWE-601 | go.ts:7 | next | redirect() |  | "`redirect(next)`"
          F002 needs_reaudit | Cookie for every page | Low | CWE-614 |  |  |  |  |  | lacks location source sink evidence
    "#;
    paragraphs_between: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
        7:1 ignored_text
        21:1 unknown_field
        23:1 ignored_text
        29:1 ignored_text
    "#;
    pictures: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
    "#;
    prose_before_code: r#"
        whole a-1 [sql] declared 2
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10-12 | request.args | cursor.execute |  | "The handler concatenates:\nq = \"select \" + name\ncursor.execute(q)"
          F002 complete | Two snippets | Low |  | src/b.py:1 | argv | os.system |  | "cmd = sys.argv[1]\n\nand then\n\nos.system(cmd)"
    "#;
    rules_between: r#"
        whole a-1 [sql, xss] declared 2
          F001 complete | SQL in login | High | CWE-89 | src/a.py:10 | `request.args["name"]` | `cursor.execute` |  | "[F002] = x\n===AGENT_RESULT_END===\nq(name)\n\nr()"
          F002 complete | XSS | Low |  | src/b.py:3 | name | render |  | "`render(name)`"
        17:1 inside_evidence
    "#;
    several_fields_in_a_line: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
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
    struck_out: r#"
        whole a-1 [sql, xss]
          F001 needs_reaudit | ~~SQL injection~~ (false positive) | - |  |  |  |  |  |  | lacks severity location source sink evidence
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
    "#;
    summary_before_and_behind: r#"
        whole a-1 [sql]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "cursor.execute(q)"
          F002 complete | XSS | Low | CWE-79 | src/b.py:3 | name | render |  | "render(name)"
        5:1 ignored_text
        25:1 ignored_text
        26:1 unknown_field
        27:1 unknown_field
    "#;
    summary_behind: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
        21:1 ignored_text
        25:1 unknown_field
    "#;
    table_of_findings: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "`execute(a | b)`"
          F002 complete | XSS | Low | CWE-79 | src/b.py:1-3 | q | render |  | "`render(q)`"
    "#;
    table_then_details: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "`execute(name)`"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "`render(q)`"
        5:1 ignored_text
    "#;
    thinking_before: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "def login(name):\n    query = \"select \" + name\n    return db.execute(query)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "app.get(\"/\", (req, res) => {\n  res.send(req.query.q);\n});"
    "#;
    titles_in_yaml: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
    "#;
    two_transcripts: r#"
        whole a-1 [sql, xss]
          F001 complete | SQL injection | High |  | src/a.py:10 | name | execute |  | "def login(name):\n    query = \"select \" + name\n    return db.execute(query)"
          F002 complete | XSS | Low |  | src/b.py:1 | q | render |  | "app.get(\"/\", (req, res) => {\n  res.send(req.query.q);\n});"
        whole a-2 [sql, xss]
          SQLI-1 complete | SQL injection | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
          XSS-1 complete | XSS | Low |  | src/b.py:1 | q | render |  | "render(q)"
    "#;
    header_as_table: r#"
        whole table-2 [sql, xss] declared 2
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute |  | "if name:\n    execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)"
    "#;
    header_as_table_of_two: r#"
        whole table-3 [sql, xss]
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute |  | "if name:\n    execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)"
    "#;
    fullwidth_letters: r#"
        whole wide-1 [认证, 会话] declared 2
          F001 complete | 登录（旧） | High | CWE-89 | src/login.py:88-90 | 参数 user | execute |  | "execute(user)"
          F002 needs_reaudit | 会话 | Low |  | src/s.py:3 |  | cookie |  | "set_cookie(\"Ａ\")" | lacks source
        16:1 unknown_field
        19:1 says_nothing
    "#;
    colours: r#"
        whole colour-1 [sql, xss] declared 2
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute |  | "if name:\n    execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)"
        checkpoint 10 1 2 [xss]
        21:1 ignored_text
    "#;
    carriage_returns: r#"
        whole mac-1 [sql, xss] declared 2
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute |  | "if name:\n    execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)"
    "#;
    log_with_times: r#"
        whole log-1 [sql, xss] declared 2
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute |  | "if name:\n    execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)"
        checkpoint 10 1 2 [xss]
    "#;
    log_with_a_name: r#"
        whole log-2 [sql, xss] declared 2
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute |  | "if name:\n    execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)"
    "#;
    numbered_lines: r#"
        whole num-2 [sql, xss] declared 2
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute |  | "if name:\n    execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)"
    "#;
    bars_before_lines: r#"
        whole bar-1 [sql, xss] declared 2
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute |  | "if name:\n    execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)"
    "#;
    plain_headings: r#"
        whole plain-1 [payment, redirects] declared 5
          F001 complete | No token | Medium |  | web/b.js:40 | form | POST /pay |  | "app.post(pay)"
          F002 complete | Open redirect | Low | CWE-601 | web/c.js:7 | ?n | r | a -> b | "r(n)"
          F003 complete | Name in a page | High | CWE-79 | web/d.js:3 | ?name | innerHTML | n -> page | "el.innerHTML = name"
          F004 complete | Key in the source | High | CWE-798 | web/e.js:9 | file | sign |  | "sign(key)\n\nsign(key, twice)"
          F005 complete | Log in the clear | Low |  | web/f.js:2 | password | log | password -> log | "log(password)"
    "#;
    fields_in_another_order: r#"
        whole order-1 [redirects, keys] declared 4
          F001 complete |  | Medium |  | web/b.js:40 | form | POST /pay |  | "app.post(pay)"
          F002 complete |  | Low | CWE-601 | web/c.js:7 | ?n | r | a -> b | "r(n)"
          F003 complete | Name in a page: behind the search | High | CWE-79 | web/d.js:3 | ?name | innerHTML |  | "el.innerHTML = name"
          F004 complete | Key in the source: of the signer | High | CWE-798 | web/e.js:9 | file | sign | file -> sign | "sign(key)"
        20:1 unknown_field
        29:1 unknown_field
    "#;
    values_that_go_on: r#"
        whole lists-1 [sql, xss, files] declared 1
          F001 complete | Name in a query | High | CWE-89, CWE-564 | src/a.py:10 src/b.py:3-9 | name | execute | login -> find -> execute | "execute(name)"
    "#;
    underlined_headings: r#"
        whole setext-1 [sql, xss] declared 3
          F001 complete | Name in a query | High | CWE-89 | src/a.py:10 | name | execute |  | "execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)"
          F003 complete | Redirect | Low |  | src/c.py:3 | next | redirect |  | "redirect(next)"
        6:1 ignored_text
        20:1 ignored_text
    "#;
    dashes_and_tasks: r#"
        whole tasks-1 [sql, xss] declared 3
          F001 complete | Name in a query | High |  | src/a.py:10 | name | execute |  | "  execute(name)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "`render(name)`"
          F003 complete | Redirect | Low |  | src/c.py:3 | next | redirect |  | "`redirect(next)`"
    "#;
    texts_between_code: r#"
        whole between-1 [sql, xss] declared 4
          F001 complete | Name in a query | High |  | src/a.py:10 | name | execute |  | "query = \"select \" + name\n\nwhich is run as it is:\n\nand without a check:\n\nexecute(query)"
          F002 complete | Name in a page | Low |  | src/b.py:20 | name | render |  | "render(name)\nThe name is stored.\n\nIt is shown to others."
          F003 complete | Name in a shell | High |  | src/c.py:3 | name | sh |  | "sh(\"cat \" + name + \" | sort\")\nlog(a | b)"
          F004 complete | Fixed | Low |  | src/d.py:3 | key | sign |  | "sign(\"key\")"
        37:1 ignored_text
        54:1 unknown_field
        55:1 ignored_text
    "#;
    html_fields: r#"
        whole auth-2 [authentication, session handling] declared 2
          F001 complete | SQL | High | CWE-89 | src/db/user.rs:41-58 | request parameter name | sqlx::query |  | "<pre><code>\nlet q = format!(\"{name}\");\n</code></pre>"
          F002 complete | Session | Low |  | src/web/session.rs:12 | Session::id | Redirect::to |  | "<code>Redirect::to(id)</code>"
    "#;
    html_containers: r#"
        whole auth-2 [authentication, session handling] declared 5
          F001 complete | SQL | High |  | src/db/user.rs:41 | name | execute |  | "q(name);"
          F002 complete | Session | Low |  | src/web/session.rs:12 | <ul><li>id</li></ul> | </div> |  | "<ul><li>{{ id }}</li></ul>"
          F003 complete | Cookie | Low |  | src/web/session.rs:20 | id | set |  | "row += \"<td>\" + id + \"</td></tr>\""
          F004 complete | Cache | Low |  | src/web/cache.rs:20 | <a href="x">id</a> | set |  | "<td>id</td></tr>"
          F005 complete | Log | Low |  | src/web/log.rs:20 | <mark>id</mark> | <font>id</font> |  | "log(id)"
        6:1 ignored_text
        8:1 ignored_text
    "#;
    html_details: r#"
        whole auth-2 [authentication, session handling]
          F001 complete | SQL | High | CWE-89 | src/db/user.rs:41-58 | a | sqlx::query |  | "<code>q(name)</code>"
          F002 complete | Session | Low |  | src/web/session.rs:12 | Session::id | &lt;Redirect::to&gt; |  | "Redirect::to(id)"
          F003 complete | Reflected | Medium |  | web/a.php:3 | <img src=x onerror=f()> | <p>echo</p> |  | "<details>\n<p>Severity: Low</p>\n<li>Source: echo $q</li>\n</details>"
          F004 complete | Stored | High |  | web/b.php:9 | comment | echo |  | "&lt;p&gt;"
    "#;
    severities_in_signs: r#"
        whole auth-2 [authentication] declared 4
          F001 complete | Named | High |  | a.rs:1 | a | b |  | "f()"
          F002 complete | Tagged | Critical |  | a.rs:2 | a | b |  | "f()"
          F003 complete | Pointed | Low |  | a.rs:3 | a | b |  | "f()"
          F004 complete | Unknown | :skull: Apocalyptic |  | a.rs:4 | a | b |  | "f()"
        29:1 unknown_severity
    "#;
    pictures_in_labels: r#"
        whole auth-2 [authentication, session handling] declared 2
          F001 complete | SQL | High | CWE-89 | src/db/user.rs:41-58 | request parameter name | sqlx::query |  | "let q = format!(\"{name}\");"
          F002 complete | Session | Medium |  | src/web/session.rs:12 | Session::id | Redirect::to |  | "`Redirect::to(id)`"
    "#;
}
