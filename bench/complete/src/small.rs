//! Every proper prefix of small documents.

use crate::Cut;

/// Fifty documents. Together they contain every kind of value, escape and white space at every kind of
/// position.
const DOCUMENTS: [&str; 50] = [
    r#"{"a":1}"#,
    r#"{"k":1234567}"#,
    "[1,-2.5e-3]",
    "[1, 2, 3]",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    r#"{"a":{}}"#,
    "[[1],[2,[3]]]",
    r#""text""#,
    r#""""#,
    r#""a\nb\t\"c\"\\""#,
    r#""\u00e9\u4e2d""#,
    r#""\ud83d\ude00 smile""#,
    r#"["\ud83d\ude00","\ud83d\ude01"]"#,
    "\"é中😀\"",
    "[\"é\",\"中\",\"😀\"]",
    "true",
    "false",
    "null",
    "[true,false,null]",
    r#"{"t":true,"f":false,"n":null}"#,
    "-12.5e3",
    "0",
    "[0,-0,0.0,1e5,1E+5,1e-5]",
    "[100000000000,12345678901234]",
    r#"{"price":19.99,"count":3,"rate":-0.5}"#,
    " { \"a\" : [ 1 , 2 ] , \"b\" : \"x\" } ",
    "{\n  \"name\": \"box\",\n  \"size\": [10, 20, 30],\n  \"open\": false\n}\n",
    r#"{"name":"get_weather","arguments":{"city":"Paris","days":3}}"#,
    r#"{"query":"SELECT * FROM t WHERE a = 'b'","limit":100}"#,
    r#"{"path":"src/main.rs","line":12,"text":"fn main() {}"}"#,
    r#"{"a":{"b":{"c":{"d":[1,{"e":"f"}]}}}}"#,
    r#"[{"id":1,"tags":["x","y"]},{"id":2,"tags":[]}]"#,
    r#"{"a/b":1,"c~d":2,"":3," ":4}"#,
    r#"{"quote\"inside":"{[,:]}","\u006bey":"v"}"#,
    r#"{"中文":"键","emoji😀":["🚢","⚓"]}"#,
    r#"["{\"nested\": \"json\", \"n\": 12}"]"#,
    r#"{"regex":"^\\d+\\.\\d*$","path":"C:\\dir\\file"}"#,
    r#"{"url":"https:\/\/example.org\/a?b=c&d=e"}"#,
    r#"{"empty":"","list":[],"object":{},"zero":0}"#,
    "[\"\",\"\",\"\"]",
    r#"{"truth":"true","number":"12","nothing":"null"}"#,
    "[1.5,2.25,3.125,4]",
    r#"{"matrix":[[1,0,0],[0,1,0],[0,0,1]]}"#,
    r#"{"time":"2026-11-22T01:15:00Z","ok":true,"ms":1250.75}"#,
    "[\n\t1,\r\n\t2 ,\n\t[ ]\n]",
    r#"{"steps":[{"do":"read","of":"a"},{"do":"write","of":"b","bytes":1024}],"done":false}"#,
    r#"{"usage":{"prompt_tokens":812,"completion_tokens":4096,"total_tokens":4908},"finish_reason":"length"}"#,
];

/// Returns all proper prefixes of the documents.
pub fn cuts() -> Vec<Cut> {
    DOCUMENTS.iter().flat_map(|document| beginnings(document)).collect()
}

fn beginnings(document: &str) -> impl Iterator<Item = Cut> {
    let value: serde_json::Value = serde_json::from_str(document).expect("the documents are JSON");
    // White space after the value is not part of the document, so do not cut there.
    (0..document.trim_end().len()).map(move |cut| Cut {
        beginning: document.as_bytes()[..cut].to_vec(),
        document: value.clone(),
        must_have: None,
    })
}
