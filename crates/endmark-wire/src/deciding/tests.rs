use proptest::prelude::*;

use super::*;
use crate::format::{FORMATS, find_by_name};
use crate::json::quote;

const ALL_RESTRICTIONS: Restrictions = Restrictions { models: true, budget: true };

fn check_body(format: &str, body: &str) -> Result<(), UnreliableField> {
    check(
        Value::parse_str(body).unwrap(),
        find_by_name(format).unwrap().facts().deciding_fields,
        ALL_RESTRICTIONS,
    )
}

#[test]
fn an_ambiguous_field_is_refused() {
    for (format, body) in [
        ("openai_chat", r#"{"model":"cheap","Model":"dear"}"#),
        ("openai_chat", r#"{"model":"cheap","model":"dear"}"#),
        ("openai_chat", r#"{"model":"cheap","model":"cheap"}"#),
        ("openai_chat", r#"{"model":"cheap","m\u006fdel":"dear"}"#),
        ("openai_chat", r#"{"MODEL":"dear"}"#),
        ("openai_chat", r#"{"model":"cheap","model\u0000":"dear"}"#),
        ("openai_chat", r#"{"max_tokens":1,"Max_Tokens":100000}"#),
        ("openai_chat", r#"{"max_tokens":1,"max_to\u212Aens":100000}"#),
        ("openai_chat", r#"{"max_tokens":1,"max_token\u017F":100000}"#),
        ("openai_chat", r#"{"max_tokens":1,"maxTokens":100000}"#),
        ("openai_chat", r#"{"max_tokens":"100000"}"#),
        ("openai_chat", r#"{"max_tokens":-1}"#),
        ("openai_chat", r#"{"N":50}"#),
        ("openai_chat", r#"{"n":"50"}"#),
        ("openai_chat", r#"{"stream":false,"Stream":true}"#),
        ("openai_chat", r#"{"model":"cheap","models":["dear"]}"#),
        ("openai_chat", r#"{"service_tier":"flex","service_tier":"priority"}"#),
        ("openai_responses", r#"{"background":true}"#),
        ("openai_responses", r#"{"background":"true"}"#),
        ("openai_responses", r#"{"background":false,"background":true}"#),
        ("openai_responses", r#"{"max_output_tokens":1,"max_output_tokens":9}"#),
        ("anthropic_messages", r#"{"max_tokens":1,"max_tokens":9}"#),
        ("gemini", r#"{"generationConfig":{"maxOutputTokens":1},"generation_config":{}}"#),
        ("gemini", r#"{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":9}}"#),
        ("gemini", r#"{"generation_config":{"max_output_tokens":1,"max_output_tokens":9}}"#),
        ("gemini", r#"{"generationConfig":{"maxOutputTokens":"100000"}}"#),
        ("gemini", r#"{"generationConfig":{"candidateCount":1,"candidate_count":9}}"#),
    ] {
        assert!(check_body(format, body).is_err(), "{format}: {body}");
    }
}

#[test]
fn a_plain_request_is_not_refused() {
    for (format, body) in [
        ("openai_chat", r#"{"model":"a","max_tokens":1,"max_completion_tokens":9,"n":2,"stream":true}"#),
        (
            "openai_chat",
            r#"{"model":"a","max_tokens":null,"n":1.0,"metadata":{"Model":"x","model":1,"model":2}}"#,
        ),
        ("openai_responses", r#"{"model":"a","background":false,"store":true,"input":"model"}"#),
        (
            "anthropic_messages",
            r#"{"model":"a","max_tokens":5,"thinking":{"type":"enabled","budget_tokens":2}}"#,
        ),
        ("gemini", r#"{"generation_config":{"maxOutputTokens":1,"candidateCount":2}}"#),
    ] {
        assert_eq!(check_body(format, body), Ok(()), "{format}: {body}");
    }
    let further = Value::parse_str(r#"{"model":"a","models":["b"],"background":true,"n":"x"}"#).unwrap();
    assert_eq!(
        check(
            further,
            find_by_name("openai_responses").unwrap().facts().deciding_fields,
            Restrictions::default()
        ),
        Ok(())
    );
}

#[test]
fn the_largest_limit_applies_to_each_reply_of_each_prompt() {
    for (format, body, most) in [
        ("openai_chat", r#"{"max_tokens":3,"max_completion_tokens":1}"#, 3),
        ("openai_chat", r#"{"max_tokens":1,"max_completion_tokens":3,"n":2}"#, 6),
        ("openai_chat", r#"{"max_tokens":1,"n_predict":500}"#, 500),
        ("openai_chat", r#"{"max_tokens":null,"n":5000000000}"#, 500_000_000_000),
        ("openai_responses", r#"{"max_output_tokens":7}"#, 7),
        ("gemini", r#"{"generationConfig":{"max_output_tokens":7,"candidate_count":3}}"#, 21),
        ("gemini", r"{}", 100),
    ] {
        let root = Value::parse_str(body).unwrap();
        assert_eq!(
            max_output_tokens(root, find_by_name(format).unwrap().facts().deciding_fields, 100),
            most,
            "{format}: {body}"
        );
    }
}

#[test]
fn the_models_of_tools_count() {
    let body =
        r#"{"model":"a","tools":[{"type":"image_generation","model":"b"},{"Model":7},{"name":"model"}]}"#;
    let named: Vec<_> = models(Value::parse_str(body).unwrap()).collect();
    assert_eq!(named, [Some("a".into()), Some("b".into()), None]);
}

proptest! {
    /// A second name that Go reads as the same field is rejected, whatever its case and escaping.
    #[test]
    fn a_second_field_is_found_in_any_spelling(
        format in 0..FORMATS.len(),
        at in any::<prop::sample::Index>(),
        changes in prop::collection::vec(0..4_u8, 40),
    ) {
        let fields = FORMATS[format].facts().deciding_fields;
        let known = at.get(fields);
        let name = known.names[0];
        let spelled: String = name.chars().zip(&changes).map(|(letter, change)| match (change, letter) {
            (1, letter) => letter.to_ascii_uppercase().to_string(),
            (2, letter) => format!("\\u{:04x}", u32::from(letter)),
            (3, 'k') => "\u{212a}".to_owned(),
            (3, 's') => "\\u017F".to_owned(),
            (_, letter) => letter.to_string(),
        }).collect();
        let body = format!("{{{}:null,\"x\":{{}},\"{spelled}\":null}}", quote(name));
        let root = Value::parse_str(&body).unwrap();
        prop_assert!(check(root, fields, Restrictions::default()).is_err(), "{}", body);
    }
}
