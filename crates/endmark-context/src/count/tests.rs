//! Token counts of texts, images and requests.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::{Dimensions, Family, dimensions, request, request_unless, text};

#[test]
fn only_counts_with_published_vocabularies_are_exact() {
    // The expected counts are those of tiktoken and ctok.
    let sentence = "The quick brown fox jumps over the lazy dog.";
    for (model, tokens, exact) in [
        ("gpt-4o", 10, true),
        ("gpt-5-mini-2025-08-07", 10, true),
        ("o3", 10, true),
        ("gpt-4-turbo", 10, true),
        ("gpt-6-sol", 10, false),
        ("claude-3-5-sonnet-20241022", 11, false),
        ("claude-opus-4-6", 11, false),
        ("claude-opus-4-7", 18, false),
        ("claude-fable-5-1", 18, false),
        ("gemini-3.8-flash", 12, false),
        ("deepseek-flash", 12, false),
    ] {
        let counted = text(sentence, model);
        assert_eq!((counted.tokens, counted.exact), (tokens, exact), "{model}");
    }
    assert_eq!(text("", "claude-opus-5").tokens, 0);
}

#[test]
fn an_image_is_counted_by_its_dimensions() {
    let png = |width: u32, height: u32, padding: usize| {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend(vec![7; padding]);
        BASE64_STANDARD.encode(bytes)
    };
    assert_eq!(dimensions(&png(640, 480, 9)), Some(Dimensions { width: 640, height: 480 }));
    let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x11\x08\x01\x00\x02\x00\x03";
    assert_eq!(dimensions(&BASE64_STANDARD.encode(jpeg)), Some(Dimensions { width: 512, height: 256 }));
    let gif = b"GIF89a\x20\0\x10\0\0\0";
    assert_eq!(dimensions(&BASE64_STANDARD.encode(gif)), Some(Dimensions { width: 32, height: 16 }));
    let webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x0f\0\0\x07\0\0";
    assert_eq!(dimensions(&BASE64_STANDARD.encode(webp)), Some(Dimensions { width: 16, height: 8 }));
    assert_eq!(dimensions("bm90IGFuIGltYWdl"), None);
    assert_eq!(dimensions("not base64 at all"), None);

    let of = |family: Family, width, height| family.image_tokens(Dimensions { width, height });
    assert_eq!(of(Family::Claude48, 1_000, 1_000), 36 * 36);
    assert_eq!(of(Family::O200k, 1_024, 1_024), 85 + 170 * 4);
    assert_eq!(of(Family::Gemini, 300, 300), 258);
    for padding in [0, 30_000] {
        let image = png(560, 280, padding);
        let messages = json!([{"role": "user", "content": [{"type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": image}}]}]);
        assert_eq!(request(&messages.to_string(), "claude-opus-5").unwrap().tokens, 20 * 10 + 4 + 3);
        let messages = json!([{"role": "user", "content": [{"type": "image_url",
            "image_url": {"url": format!("data:image/png;base64,{image}")}}]}]);
        assert_eq!(request(&messages.to_string(), "gpt-4o").unwrap().tokens, 85 + 170 * 2 + 4 + 3);
    }
}

#[test]
fn a_conversation_has_similar_counts_in_every_format() {
    let (asked, said) = ("What does the log say?", "It says that the disk is full.");
    let bodies = [
        json!({"model": "gpt-5", "max_tokens": 4_000, "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": asked},
            {"role": "assistant", "tool_calls": [{"id": "call_123456789", "type": "function",
                "function": {"name": "read_log", "arguments": "{\"lines\":20}"}}]},
            {"role": "tool", "tool_call_id": "call_123456789", "content": said}]}),
        json!({"model": "gpt-5", "instructions": "Be brief.", "input": [
            {"role": "user", "content": asked},
            {"type": "function_call", "call_id": "call_123456789", "name": "read_log", "arguments": "{\"lines\":20}"},
            {"type": "function_call_output", "call_id": "call_123456789", "output": said}]}),
        json!({"model": "gpt-5", "system": "Be brief.", "messages": [
            {"role": "user", "content": asked},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_123456789", "name": "read_log", "input": {"lines": 20}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_123456789", "content": said}]}]}),
        json!({"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [
            {"role": "user", "parts": [{"text": asked}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read_log", "args": {"lines": 20}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read_log", "response": {"output": said}}}]}]}),
    ];
    let counts: Vec<u64> =
        bodies.iter().map(|body| request(&body.to_string(), "gpt-5").unwrap().tokens).collect();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*least >= 30 && most - least <= 16, "{counts:?}");
    // Tool definitions are counted, because the model reads them. A body that is not a conversation is an
    // error.
    let mut with_tools = bodies[0].clone();
    with_tools["tools"] =
        json!([{"type": "function", "function": {"name": "read_log", "description": "Reads the log."}}]);
    assert!(request(&with_tools.to_string(), "gpt-5").unwrap().tokens > counts[0] + 10);
    assert!(request("{\"prompt\": 1}", "gpt-5").is_err());
    assert!(request("7", "gpt-5").is_err());
    assert!(request("[", "gpt-5").is_err());
}

/// A word of forty megabytes once needed 1.6 gigabytes of memory. Now the memory for a word is bounded, and
/// the count of a long word is an estimate.
#[test]
fn a_very_long_word_is_estimated_in_parts() {
    for model in ["gpt-5", "gpt-4"] {
        let counted = |bytes: usize| text(&"a".repeat(bytes), model);
        assert_eq!((counted(32 * 1024).tokens, counted(32 * 1024).exact), (4 * 1024, true));
        let long = counted(1_000_000);
        assert!(!long.exact && long.tokens.abs_diff(125_000) < 100, "{model}: {long:?}");
    }
    let mixed: String = (0..100_000_u32)
        .map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0] % 26))
        .collect();
    let (whole, exact) = (text(&mixed, "gpt-5"), bpe_openai::o200k_base().count(&mixed) as u64);
    assert!(!whole.exact && whole.tokens >= exact && whole.tokens < exact + 20, "{whole:?}, not {exact}");
    let words = format!("{mixed} the end");
    assert!(!text(&words, "gpt-5").exact && text("the end", "gpt-5").exact);
}

/// The lookup of each token in a long number once read all digits of the number. This text would have taken
/// hours.
#[test]
fn counting_a_long_number_takes_linear_time() {
    assert_eq!(text(&"1".repeat(999_999), "gpt-5").tokens, 333_333);
}

/// A tree of these values needs thirty times the memory of their text.
#[test]
fn a_request_is_counted_incrementally_and_can_be_stopped() {
    let body = format!(
        r#"{{"messages":[{}0],"input":{{"a" : [1, 2.5, null, "x\u0041", {{}}], "b":[]}}}}"#,
        "0,".repeat(50_000)
    );
    let input = text("a", "gpt-5").tokens;
    assert!(request(&body, "gpt-5").unwrap().tokens < 30 + input);
    let call = |arguments: &str| {
        request(&format!(r#"[{{"name":"f","input":{arguments}}}]"#), "gpt-5").unwrap().tokens
    };
    assert_eq!(
        call(r#"{"a" : [1, 2.5, null, "x\u0041", {}], "b":[ ]}"#),
        call(r#"{"a":[1,2.5,null,"xA",{}],"b":[]}"#)
    );
    let stopped = request_unless(
        || true,
        r#"{"messages":[{"role":"user","content":"Keep the work whole."}]}"#,
        "gpt-5",
    );
    assert_eq!(stopped.unwrap().tokens, 4 + 3);
}
