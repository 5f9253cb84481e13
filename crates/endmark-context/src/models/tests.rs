use super::*;

#[test]
fn the_builtin_table_is_complete_and_names_its_sources() {
    let models = Models::parse(BUILTIN_TABLE_JSON).unwrap();
    assert!(models.iter().count() > 250);
    let sources: Vec<&str> = models.sources().iter().map(|source| source.name.as_str()).collect();
    assert_eq!(sources, ["genai-prices", "litellm"]);
    assert!(models.sources().iter().all(|source| source.licence == "MIT" && !source.version.is_empty()));
    assert_eq!(models.as_of().len(), 10);
}

#[test]
fn a_model_is_found_by_its_provider_names() {
    for (name, id) in [
        ("gpt-6.1-sol", Some("gpt-6.1-sol")),
        ("GPT-6.1-Sol-2026-09-29", Some("gpt-6.1-sol")),
        ("gpt-4o-mini-2024-07-18", Some("gpt-4o-mini")),
        ("claude-sonnet-5", Some("claude-sonnet-5")),
        ("anthropic/claude-opus-5-5", Some("claude-opus-5-5")),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", Some("claude-sonnet-4-5")),
        ("models/gemini-2.5-flash", Some("gemini-2.5-flash")),
        ("gemini-2.5-pro-preview-06-05", Some("gemini-2.5-pro")),
        ("deepseek/deepseek-flash", Some("deepseek-flash")),
        ("", None),
        ("gpt", None),
        ("my-own-model", None),
    ] {
        let found = Models::builtin().find(name).map(|model| model.id.as_str());
        assert_eq!(found, id, "{name}");
    }
}

#[test]
fn models_have_limits_and_capabilities() {
    let of = |name| Models::builtin().find(name).unwrap();
    assert_eq!(of("gpt-5").context_tokens, Some(400_000));
    assert_eq!(of("gpt-5").prompt_limit_tokens(), Some(272_000));
    assert_eq!(of("claude-sonnet-4-5").prefill, Some(true));
    assert_eq!(of("claude-sonnet-5").prefill, Some(false));
    assert_eq!(of("gemini-2.5-pro").prompt_limit_tokens(), Some(1_048_576));
}

#[test]
fn user_entries_take_precedence_and_keep_table_limits() {
    let mut models = Models::builtin().clone();
    let priced = |input| Model {
        prices: Prices::flat(crate::Rates { input: Some(input), output: Some(1), ..crate::Rates::default() }),
        ..Model::default()
    };
    models.add("my-*", priced(1));
    models.add("my-large", priced(2));
    models.add("gpt-5", priced(3));
    let input = |name: &str| {
        let tokens = crate::Tokens { prompt: 1_000_000, ..crate::Tokens::default() };
        let at = crate::Moment::from_unix_seconds(0);
        models.find(name).and_then(|model| model.prices.cost(&tokens, at, None)).map(|cost| cost.nano_usd)
    };
    assert_eq!([input("my-small"), input("My-Large"), input("gpt-5")], [Some(1), Some(2), Some(3)]);
    assert_eq!(models.find("gpt-5").unwrap().max_output_tokens, Some(128_000));
}

#[test]
fn an_invalid_table_is_refused_with_the_reason() {
    let table = |row: &str| {
        format!(
            r#"{{"as_of":"2026-01-01","unit":"","sources":[],"models":[{{"id":"m","provider":"p","prices":[{row}]}}]}}"#
        )
    };
    assert!(Models::parse(&table(r#"{"input":1,"output":2}"#)).is_ok());
    for (row, why) in [
        (r#"{"input":-1}"#, "cannot be read"),
        (r#"{"inputt":1}"#, "unknown field"),
        (r#"{"from":"2026-02-30"}"#, "2026-02-30"),
        (r#"{"hours":["25:00","01:00"]}"#, "25:00"),
    ] {
        let error = Models::parse(&table(row)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
