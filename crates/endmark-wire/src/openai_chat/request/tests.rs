use super::*;

fn error(body: &[u8]) -> String {
    ChatRequest::parse(body).unwrap_err().message
}

#[test]
fn only_a_non_request_is_an_error() {
    assert_eq!(
        error(b"{\"model\":"),
        "the body is not JSON: invalid JSON at byte 9: the text ends too early"
    );
    assert_eq!(error(b"\xff"), "the body is not JSON: invalid JSON at byte 0: not UTF-8");
    assert_eq!(error(b"[]"), "the body is not a JSON object");
    for body in ["{}", r#"{"messages":"Hi"}"#] {
        assert!(view(Value::parse_str(body).unwrap()).is_pass_through, "{body}");
    }
    let odd = br#"{"messages":[1,{"role":2},null],"model":5,"n":-1,"max_tokens":-1,"stream":"yes","stop":7,"tools":{}}"#;
    let request = ChatRequest::parse(odd).unwrap();
    assert_eq!(
        (request.model.as_str(), request.choices, request.limit, request.stream),
        ("", 1, None, false)
    );
    assert_eq!(request.body(), odd);
}

#[test]
fn a_deeply_nested_request_is_read() {
    let body = format!("{{\"messages\":[{}{}],\"max_tokens\":5}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(ChatRequest::parse(body.as_bytes()).unwrap().limit, Some(5));
}

#[test]
fn stop_sequences_are_attributed_to_client_or_model() {
    let has_stop = |stop: &str| {
        ChatRequest::parse(format!("{{\"messages\":[],\"stop\":{stop}}}").as_bytes()).unwrap().has_stop
    };
    assert_eq!(["null", "[]", "\"\"", "\"x\"", "[\"x\"]"].map(has_stop), [false, false, false, true, true]);
}

#[test]
fn schemas_are_returned_as_written() {
    let body = br#"{"messages":[],
        "response_format":{"type":"json_object","schema":{ "type" : "object" }},
        "tools":[{"type":"function","function":{"name":"a","parameters":{ "x":1.0 }}},{"type":"custom"},{"function":{"name":"b"}}],
        "functions":[{"name":"old","parameters":{}}]}"#;
    let request = ChatRequest::parse(body).unwrap();
    assert_eq!(request.text_schema.as_deref(), Some("{ \"type\" : \"object\" }"));
    assert_eq!(request.required_format, Some(Format::Json));
    assert_eq!(request.tool_schema("a").as_deref(), Some("{ \"x\":1.0 }"));
    assert_eq!(request.tool_schema("b"), None);
    assert_eq!(request.tool_schema("old").as_deref(), Some("{}"));
    assert_eq!(request.tool_names(), ["a", "b", "old"]);
}
