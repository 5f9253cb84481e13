//! `endmark mcp wrap` with a small server. The folder tests/mcp tests published servers and the official
//! client.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

use crate::run::TestFolder;

/// A server with unusual JSON formatting, so that unchanged messages can be recognised.
const SERVER_SCRIPT: &str = r#"
import json, os, subprocess, sys
STRICT = {"type": "object", "required": ["rows", "count"], "additionalProperties": False,
          "properties": {"rows": {"type": "array", "items": {"type": "string", "pattern": "^row "}}, "count": {"type": "integer"}}}
PAGES = {"type": "object", "properties": {"rows": {"type": "array", "minItems": 200_000}}}
ISSUES = {"type": "object", "required": ["total", "a/b"], "additionalProperties": False, "properties": {"total": {"type": "integer"},
          "a/b": {"type": "array", "items": {"type": "object", "required": ["id", "text", "tags"]}}}}
rows = "".join(f"row {n} ok\n" for n in range(200_000)).replace("row 123456 ok", "row 123456 ERROR: disk is full")
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "log", "inputSchema": {}, "outputSchema": STRICT}, {"name": "pages", "inputSchema": {}, "outputSchema": PAGES}, {"name": "issues", "inputSchema": {}, "outputSchema": ISSUES}]}
    elif asked["method"] == "tools/call" and asked["params"]["name"] == "log":
        answer["result"] = {"content": [{"type": "text", "text": rows}, {"type": "image", "data": "aGk="}], "n": 1.50,
                            "structuredContent": {"rows": rows.splitlines(), "count": 200_000}}
    elif asked["method"] == "tools/call" and asked["params"]["name"] == "pages":
        answer["result"] = {"content": [], "structuredContent": {"rows": rows.splitlines()}}
    elif asked["method"] == "tools/call" and asked["params"]["name"] == "issues":
        issues = [{"id": n, "text": f"{n} " + "x" * 20_000, "tags": list(range(900))} for n in range(1_000)]
        answer["result"] = {"content": [], "structuredContent": {"total": 1_000, "a/b": issues}}
    elif asked["method"] == "tools/call" and asked["params"]["name"] == "many":
        answer["result"] = {"content": [{"type": "text", "text": f"part {n}: " + "x" * 100} for n in range(2_000)]}
    elif asked["method"] == "tools/call" and asked["params"]["name"] == "raw":
        text = asked["params"]["arguments"]["line"].replace("LONG", rows[1_500_000:1_800_000].replace("\n", "\\n"))
        sys.stdout.buffer.write(text.encode("latin-1") + b"\n")
        sys.stdout.flush()
        continue
    elif asked["method"] == "tools/call" and asked["params"]["name"] == "huge":
        print('{"result": "' + "x" * (256 << 20) + '", "id": %s}' % json.dumps(asked["id"]), flush=True)
        continue
    elif asked["method"] == "die":
        os._exit(3)
    elif asked["method"] == "die and leave somebody":
        subprocess.Popen(["sleep", "600"])
        os._exit(3)
    else:
        answer["result"] = {"asked": asked}
    print(json.dumps(answer, indent=None, separators=(" , ", " : ")), flush=True)
"#;

struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn start(place: &TestFolder, options: &[&str]) -> Self {
        let server =
            ["--", "/usr/bin/env", "PATH=/usr/local/bin:/usr/bin:/bin", "python3", "-c", SERVER_SCRIPT];
        let mut child = place.command(&[&["mcp", "wrap"], options, &server].concat()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn receive(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn ask(&mut self, id: u64, method: &str, parameters: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        let answer: Value = serde_json::from_str(&self.receive()).unwrap();
        assert_eq!(answer["id"], id);
        answer
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) -> Value {
        self.ask(id, "tools/call", &json!({"name": tool, "arguments": arguments}))["result"].take()
    }
}

fn find_handle(text: &str) -> String {
    let at = text.find("endmark_read ").unwrap() + "endmark_read ".len();
    text[at..].split_whitespace().next().unwrap().to_owned()
}

/// The note first names the shortened list of issues, although each issue is shortened, too.
#[test]
fn a_note_counts_the_items_of_each_shortened_list() {
    let place = TestFolder::new();
    let mut client = Client::start(&place, &[]);
    client.ask(1, "tools/list", &json!({}));
    let result = client.call(2, "issues", &json!({}));
    let structured = &result["structuredContent"];
    let issues = structured["a/b"].as_array().unwrap();
    assert!(structured["total"] == 1_000 && (1..1_000).contains(&issues.len()), "{structured}");
    let note = result["content"][0]["text"].as_str().unwrap();
    let counts = format!("structuredContent is shortened: /a~1b: {} of 1000 items are shown; ", issues.len());
    assert!(note.contains(&counts) && note.len() < 3_000, "{note}");
    let tags = issues[0]["tags"].as_array().unwrap().len();
    assert!(note.contains(&format!("/a~1b/0/tags: {tags} of 900 items are shown")), "{note}");
    let one = json!({"handle": find_handle(note), "pointer": "/a~1b/999/id"});
    assert_eq!(client.call(3, "endmark_read", &one)["content"][0]["text"], "999");
}

#[test]
fn a_long_result_is_capped_and_the_tool_reads_the_rest() {
    let place = TestFolder::new();
    let mut client = Client::start(&place, &[]);
    let listed = client.ask(1, "tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"][0]["outputSchema"]["additionalProperties"], false);
    assert_eq!(listed["result"]["tools"][3]["name"], "endmark_read");

    let result = client.call(2, "log", &json!({}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.chars().count() <= 60_000, "{}", text.len());
    assert!(text.contains("row 0 ok") && text.contains("row 123456 ERROR: disk is full"));
    assert_eq!(result["content"][1], json!({"type": "image", "data": "aGk="}));
    assert_eq!(result["n"].to_string(), "1.5");
    let structured = &result["structuredContent"];
    assert!(structured.to_string().len() < 70_000);
    let rows = structured["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row == "row 123456 ERROR: disk is full"), "{structured}");

    // The shortened result still matches the tool's schema, in which each item begins with `row `. The
    // missing rows are reported in a separate note.
    assert!(rows.iter().all(|row| row.as_str().unwrap().starts_with("row ")), "{structured}");
    assert_eq!((&structured["count"], structured.as_object().unwrap().len()), (&json!(200_000), 2));
    let note = result["content"][2]["text"].as_str().unwrap();
    assert!(note.contains(&format!("/rows: {} of 200000 items are shown", rows.len())), "{note}");
    let row = json!({"handle": find_handle(note), "pointer": "/rows/150000"});
    assert_eq!(client.call(8, "endmark_read", &row)["content"][0]["text"], "\"row 150000 ok\"");
    // No shorter list would be valid, so the result is an error that the client accepts.
    let refused = client.call(7, "pages", &json!({}));
    assert_eq!((&refused["isError"], refused.get("structuredContent")), (&json!(true), None));
    let text_of_error = refused["content"][0]["text"].as_str().unwrap();
    assert!(text_of_error.contains("outputSchema") && text_of_error.len() < 65_000, "{text_of_error}");
    assert!(!find_handle(text_of_error).is_empty());

    let handle = find_handle(text);
    let found = client.call(3, "endmark_read", &json!({"handle": handle, "grep": "disk is"}));
    assert_eq!(found["content"][0]["text"], "123457:row 123456 ERROR: disk is full\n");
    assert_eq!(found["isError"], false);
    let lines = client.call(4, "endmark_read", &json!({"handle": handle, "lines": "150000:150001"}));
    assert_eq!(lines["content"][0]["text"], "row 149999 ok\nrow 150000 ok\n");
    let page = client.call(5, "endmark_read", &json!({"handle": handle}));
    assert!(page["content"][0]["text"].as_str().unwrap().contains("\n[page 1 of "), "{page}");
    for bad in [
        json!({"handle": "h0"}),
        json!({"handle": handle, "page": 0}),
        json!({}),
        json!({"handle": handle, "page": 1, "lines": "1:2"}),
    ] {
        let refused = client.call(6, "endmark_read", &bad);
        assert_eq!(refused["isError"], true, "{refused}");
    }
}

#[test]
fn many_small_texts_are_capped_as_one() {
    let mut client = Client::start(&TestFolder::new(), &["--max-chars", "20000"]);
    client.ask(1, "tools/list", &json!({}));
    let result = client.call(2, "many", &json!({}));
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1);
    let text = content[0]["text"].as_str().unwrap();
    assert!(text.chars().count() <= 20_000 && text.contains("part 0:") && text.contains("part 1999:"));
    let handle = find_handle(text);
    let read = client.call(3, "endmark_read", &json!({"handle": handle, "grep": "part 1234:"}));
    assert!(read["content"][0]["text"].as_str().unwrap().contains("part 1234:"), "{read}");
}

#[test]
fn all_other_messages_pass_byte_for_byte() {
    let place = TestFolder::new();
    let mut client = Client::start(&place, &[]);
    let odd = r#"{ "jsonrpc":"2.0","id":"a/1" ,"method":"x/y","params":{"n":1.0e2,"n":3} }"#;
    writeln!(client.input, "{odd}").unwrap();
    let answer = client.receive();
    assert!(answer.starts_with(r#"{"jsonrpc" : "2.0" , "id" : "a/1" , "result" : "#), "{answer}");
    // Before Endmark lists its own tool, a call of that name goes to the server.
    let own = client.call(2, "endmark_read", &json!({"handle": "h"}));
    assert_eq!(own["asked"]["params"]["arguments"]["handle"], "h");
    drop(client.input);
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    assert!(!place.store().exists(), "there was nothing to keep");
}

#[test]
fn every_pending_request_gets_an_answer_if_the_server_dies() {
    let place = TestFolder::new();
    for method in ["die", "die and leave somebody"] {
        let mut client = Client::start(&place, &[]);
        client.send(&json!({"jsonrpc": "2.0", "id": 9, "method": method}));
        let answer: Value = serde_json::from_str(&client.receive()).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(9), &json!(-32_000)));
        let output = client.child.wait_with_output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{errors}");
        assert!(errors.contains("exit status: 3"), "{errors}");
    }
    let none = place.run(&["mcp", "wrap", "--", "no-such-server"]);
    assert_eq!(none.code, 3);
    assert!(none.errors.contains("the command `no-such-server` was not found"), "{}", none.errors);

    let message = place.run(&["mcp", "wrap", "--json", "--", "x"]).output;
    assert!(message.contains("cannot contain an envelope"), "{message}");
}

#[test]
fn a_long_result_is_capped_in_every_spelling() {
    let mut client = Client::start(&TestFolder::new(), &[]);
    let text = r#"{"content":[{"type":"text","text":"LONG"}]}"#;
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":3.0,"result":{text}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":3e0,"result":{text}}}"#),
        // The ids belong to no request.
        format!(r#"{{"jsonrpc":"2.0","id":"3","result":{text}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":null,"result":{text}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":999,"result":{text}}}"#),
        format!(r#"{{"jsonrpc":"2.0","result":{text}}}"#),
        format!(r#"{{"jsonrpc":"2.0","\u0069d":3,"re\u0073ult":{text}}}"#),
        format!(r#"[{{"jsonrpc":"2.0","id":3,"result":{text}}}]"#),
        // A byte order mark, and invalid UTF-8.
        format!("\u{ef}\u{bb}\u{bf}{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{text}}}"),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}}", text.replace("LONG", "\u{ff}LONG\u{c3}")),
    ] {
        let raw_call = json!({"name": "raw", "arguments": {"line": line}});
        client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": raw_call}));
        let heard = client.receive();
        assert!(heard.len() < 130_000, "{line}: {} bytes", heard.len());
        assert!(heard.contains("ERROR: disk is full"), "{line}: {heard}");
    }
    // Messages within the limit pass byte for byte. Long lines that cannot be a message are dropped.
    let mut raw = |id: u64, line: &str| {
        let raw_call = json!({"name": "raw", "arguments": {"line": line}});
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": raw_call}));
        let mut heard = Vec::new();
        client.output.read_until(b'\n', &mut heard).unwrap();
        heard
    };
    let small = raw(4, "{\"id\":4,\"result\":{\"a\":\"\u{ff}\"}}");
    assert_eq!(small, b"{\"id\":4,\"result\":{\"a\":\"\xff\"}}\n");
    let answer: Value = serde_json::from_slice(&raw(5, r#"{"id":5.0,"result":{"a":"LONG",}}"#)).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&5.into(), &(-32_000).into()));
}

#[test]
fn an_oversized_message_gets_an_error_and_the_session_continues() {
    let mut client = Client::start(&TestFolder::new(), &[]);
    let answer = client.ask(7, "tools/call", &json!({"name": "huge"}));
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("has more than 268435456 bytes"),
        "{answer}"
    );
    let answer = client.ask(8, "ping", &json!({}));
    assert_eq!(answer["result"]["asked"]["id"], 8);
}

#[test]
fn a_long_answer_with_parts_of_any_type_is_bounded() {
    let mut client = Client::start(&TestFolder::new(), &[]);
    let deep = |levels| format!("{}\"LONG\"{}", r#"{"a":["#.repeat(levels), "]}".repeat(levels));
    let structured = |value: &str| format!(r#""result":{{"content":[],"structuredContent":{value}}}"#);
    for (part, shows_error_row) in [
        (structured(&deep(60)), false),
        (structured(&deep(50_000)), false),
        (structured(r#""LONG""#), true),
        (r#""result":{"content":[{"type":"chart","rows":"LONG"}]}"#.to_owned(), true),
        (r#""result":{"content":["LONG"]}"#.to_owned(), true),
        (
            r#""result":{"content":[{"type":"resource_link","uri":"x:y","description":"LONG"}]}"#.to_owned(),
            true,
        ),
        (r#""error":{"code":-32000,"message":"no","data":{"rows":"LONG"}}"#.to_owned(), true),
        (r#""error":{"code":-32000,"message":"LONG"}"#.to_owned(), true),
        (
            r#""result":{"content":[{"type":"text","text":"ok"}],"_meta":{"a":"LONG"},"x":"LONG"}"#
                .to_owned(),
            false,
        ),
        (r#""x":"LONG","result":{"content":[{"type":"text","text":"ok"}]}"#.to_owned(), false),
        (r#""result":{"content":[{"type":"text","text":"LONG"}],"content":[]}"#.to_owned(), false),
        (r#""result":{"content":[{"type":"text","text":"ok","annotations":"LONG"}]}"#.to_owned(), false),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":3,{part}}}"#);
        let raw_call = json!({"name": "raw", "arguments": {"line": line}});
        client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": raw_call}));
        let heard = client.receive();
        let answer: Value = serde_json::from_str(&heard).unwrap();
        assert!(heard.len() < 200_000 && answer["id"] == 3, "{part}: {} bytes", heard.len());
        assert_eq!(heard.contains("ERROR: disk is full"), shows_error_row, "{part}: {heard}");
    }
    // Binary data is not limited, and messages that answer no tool call pass unchanged.
    let image = format!(r#"{{"type":"image","data":"{}","mimeType":"image/png"}}"#, "A".repeat(400_000));
    let line = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"content":[{image}]}}}}"#);
    let raw_call = json!({"name": "raw", "arguments": {"line": line}});
    client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": raw_call}));
    assert_eq!(client.receive(), format!("{line}\n"));
    let long = "x".repeat(400_000);
    let read = client.ask(4, "resources/read", &json!({"uri": long}));
    assert_eq!(read["result"]["asked"]["params"]["uri"], long);
}
