//! Tests of all layers together, with temporary files.

use std::fs;
use std::path::PathBuf;

use endmark_gateway::{ResumeMode, Secret};
use endmark_wire::anthropic_messages::ANTHROPIC;
use endmark_wire::gemini::GEMINI;
use endmark_wire::openai_chat::OPENAI;
use serde_json::json;
use tempfile::TempDir;

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::new(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
}

fn url(upstream: &Upstream) -> String {
    upstream.base_url.as_ref().unwrap().to_string()
}

fn write_config(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("endmark.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn load_text(text: &str, variables: &[(&str, &str)], sets: &[&str]) -> Result<EffectiveConfig, ConfigError> {
    let (_folder, path) = write_config(text);
    let overrides = sets.iter().map(|set| Override::parse(set)).collect::<Result<Vec<_>, _>>()?;
    load(&environment(variables), Some(&path), &overrides)
}

#[test]
fn the_public_endpoints_are_the_default_upstreams() {
    let effective = load(&environment(&[("XDG_CONFIG_HOME", "/nowhere")]), None, &[]).unwrap();
    let upstreams = &effective.settings.upstreams;
    let known: Vec<_> =
        upstreams.iter().map(|known| (known.name.as_str(), known.format, url(known))).collect();
    let google = "https://generativelanguage.googleapis.com/v1beta";
    assert_eq!(
        known,
        [
            ("openai", &OPENAI, "https://api.openai.com/v1".to_owned()),
            ("anthropic", &ANTHROPIC, "https://api.anthropic.com/v1".to_owned()),
            ("gemini", &GEMINI, google.to_owned()),
        ]
    );
    assert_eq!(effective.settings.gateway.resume.max_attempts, 2);
    assert_eq!(effective.provenance.origin("listen"), Origin::Default);
}

#[test]
fn the_last_layer_wins_and_is_recorded_as_the_source() {
    let text = "[resume]\nmode = \"off\"\nmax_attempts = 3\ncontinuation_tokens = 9\n";
    let variables = [("ENDMARK_RESUME_MODE", "warn"), ("ENDMARK_RESUME_MAX_ATTEMPTS", "4")];
    let effective = load_text(text, &variables, &["resume.max_attempts=5"]).unwrap();
    let resume = &effective.settings.gateway.resume;
    assert_eq!((resume.mode, resume.max_attempts, resume.continuation_tokens), (ResumeMode::Warn, 5, 9));
    assert!(matches!(
        effective.provenance.origin("resume.continuation_tokens"),
        Origin::File { line: 4, .. }
    ));
    assert_eq!(effective.provenance.origin("resume.mode"), Origin::Environment("ENDMARK_RESUME_MODE".into()));
    assert_eq!(effective.provenance.origin("resume.max_attempts"), Origin::Flag("--set".into()));
}

#[test]
fn upstreams_keep_their_order_and_accept_environment_settings() {
    let text = "[upstreams.z-one]\nbase_url = \"http://127.0.0.1:1/v1/\"\n[upstreams.a]\nbase_url = \"http://a/v1\"\n";
    let variables =
        [("ENDMARK_UPSTREAMS_Z_ONE_API_KEY", "sk-secret"), ("ENDMARK_UPSTREAMS_NEW_BASE_URL", "http://n")];
    let effective = load_text(text, &variables, &[]).unwrap();
    let names: Vec<&str> =
        effective.settings.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    assert_eq!(names, ["z-one", "a", "new"]);
    assert_eq!(url(&effective.settings.upstreams[0]), "http://127.0.0.1:1/v1");
    assert_eq!(
        effective.settings.upstreams[0].api_key,
        Some(SecretSource::Value(Secret::new("sk-secret".to_owned())))
    );
    assert!(!format!("{effective:?}").contains("sk-secret"));
    let key =
        all_values(&effective).into_iter().find(|shown| shown.key == "upstreams.z-one.api_key").unwrap();
    assert_eq!(key.value, json!("***"));
}

#[test]
fn upstream_conditions_are_parsed_and_shown() {
    let text = "[upstreams.a]\nbase_url = \"http://a\"\nfor_models = [\"qwen*\", \"o3\"]\nfor_headers = [\"X-Team: blue\"]\n";
    let variables = [("ENDMARK_UPSTREAMS_A_FOR_PATHS", "/v1/embeddings, /v1/audio/*")];
    let effective = load_text(text, &variables, &[]).unwrap();
    for (key, value) in [
        ("for_models", json!(["qwen*", "o3"])),
        ("for_headers", json!(["x-team: blue"])),
        ("for_paths", json!(["/v1/embeddings", "/v1/audio/*"])),
        ("model", json!(null)),
        ("summary_model", json!(null)),
        ("endmark", json!(false)),
    ] {
        let key = format!("upstreams.a.{key}");
        assert_eq!(
            all_values(&effective).into_iter().find(|shown| shown.key == key).unwrap().value,
            value,
            "{key}"
        );
    }
}

#[test]
fn an_unknown_key_is_reported_with_its_line_and_the_nearest_key() {
    let error = load_text("listen = \"127.0.0.1:1\"\n[resume]\nmax_atempts = 3\n", &[], &[]).unwrap_err();
    assert!(error.to_string().ends_with("endmark.toml:3: unknown key `resume.max_atempts`"), "{error}");
    assert_eq!(error.hint().unwrap(), "Did you mean `max_attempts` in `[resume]`?");
    for (text, hint) in [
        ("lisen = \"127.0.0.1:1\"", "Did you mean `listen`?"),
        ("[upstreams.local]\nbase_ulr = \"http://a\"", "Did you mean `base_url` in `[upstreams.local]`?"),
        ("[upstream.local]\nbase_url = \"http://a\"", "Did you mean `base_url` in `[upstreams.local]`?"),
        ("[resmue]", "Did you mean `resume`?"),
        ("[sky]\ncolour = 1", "`endmark config show` lists every key there is."),
    ] {
        assert_eq!(load_text(text, &[], &[]).unwrap_err().hint().as_deref(), Some(hint), "{text}");
    }
}

#[test]
fn a_value_of_the_wrong_type_reports_the_expected_type() {
    for (text, message) in [
        ("[resume]\nmode = \"often\"", "2: `resume.mode` must be one of `auto`, `on`, `off`, `warn`"),
        ("[resume]\nmax_attempts = \"2\"", "2: `resume.max_attempts` must be a whole number, 0 or more"),
        (
            "[resume]\nstrategies = [\"prompt\", \"pray\"]",
            "2: `resume.strategies` must be a list of one or more of `prefill`, `prompt`, `restart`, each of them once \
             (unknown strategy `pray`: use `prefill`, `prompt`, `restart`)",
        ),
        ("resume = 3", "1: `resume` must be a table: write its keys under `[resume]`"),
        ("[upstreams.a]\nprefill = \"never\"", "2: the upstream `a` has no `base_url`"),
        ("[upstreams.\"a b\"]\nbase_url = \"http://a\"", "2: `a b` cannot be the name of an upstream"),
        (
            "[upstreams.a]\nbase_url = \"http://a\"\nfallback = \"b\"",
            "3: `upstreams.a.fallback` must be the name of another upstream of the same `format`, but none has this name",
        ),
        (
            "[upstreams.a]\nbase_url = \"http://a\"\n[upstreams.b]\nbase_url = \"http://b\"\nfallback = \"b\"",
            "5: `upstreams.b.fallback` must be the name of another upstream of the same `format`: `a`",
        ),
        (
            "[upstreams.a]\nbase_url = \"http://a\"\nfallback = \"b\"\n[upstreams.b]\nbase_url = \"https://b.openai.azure.com\"",
            "5: `upstreams.b.base_url` must be Azure's v1 API, like \"https://NAME.openai.azure.com/openai/v1\", since it \
             is a fallback: the deployment and version of another upstream's path mean nothing there",
        ),
        (
            "[upstreams.a]\nfor_models = \"gpt-*\"",
            "2: `upstreams.a.for_models` must be a list of patterns, like [\"qwen*\"]",
        ),
        (
            "[upstreams.a]\nfor_headers = [\"x team: blue\"]",
            "2: `upstreams.a.for_headers` must be a list of patterns, like [\"x-team: blue\"] \
             (`x team` is not the name of a header field: write `NAME` or `NAME: VALUE`)",
        ),
        (
            "[upstreams.a]\nfor_paths = [\"v1/embeddings\"]",
            "2: `upstreams.a.for_paths` must be a list of paths, like [\"/v1/embeddings\"]; `v1/embeddings` begins with no `/`",
        ),
        (
            "[upstreams.a]\nfor_paths = [\"/v1/models?x=*\"]",
            "2: `upstreams.a.for_paths` must be a list of paths, like [\"/v1/embeddings\"]; a path has no query and no \
             fragment, so that nothing would meet `/v1/models?x=*`: write `/v1/models`",
        ),
        (
            "[upstreams.a]\nfor_paths = [\"/v1/a#b\"]",
            "2: `upstreams.a.for_paths` must be a list of paths, like [\"/v1/embeddings\"]; a path has no query and no \
             fragment, so that nothing would meet `/v1/a#b`: write `/v1/a`",
        ),
        (
            "[upstreams.a]\napi_key = 7",
            "2: `upstreams.a.api_key` must be a string, { env = \"NAME\" } or { file = \"PATH\" }",
        ),
    ] {
        let error = load_text(text, &[], &[]).unwrap_err().to_string();
        assert!(error.ends_with(message), "{error}");
    }
    for url in ["", "127.0.0.1:8080", "ftp://host/v1", "http://host/v1?key=1"] {
        assert!(load_text("", &[], &[&format!("upstreams.a.base_url={url}")]).is_err(), "{url}");
    }
}

#[test]
fn an_unknown_variable_causes_a_warning_with_the_nearest_name() {
    let variables =
        [("HOME", "/home/a"), ("ENDMARK_RESUME_MOD", "on"), ("ENDMARK_RUN", "r"), ("ENDMARK_ATTEMPT", "2")];
    let effective = load_text("", &variables, &[]).unwrap();
    assert_eq!(
        effective.warnings,
        [
            "the environment variable `ENDMARK_RESUME_MOD` means nothing to Endmark; did you mean `ENDMARK_RESUME_MODE`?"
        ]
    );
}

#[test]
fn paths_in_a_file_are_relative_to_the_file() {
    let (folder, path) = write_config("store = \"sqlite:log.db\"\n[schemas]\nticket = \"ticket.json\"\n");
    let effective = load(&environment(&[]), Some(&path), &[]).unwrap();
    assert_eq!(effective.settings.files.store.path(), folder.path().join("log.db"));
    assert_eq!(effective.settings.schemas[0].path, folder.path().join("ticket.json"));
}

const SHARED: &str = "store = \"postgres://em:hunter2@db.example/endmark\"\njournal = \"j.db\"\n";

#[test]
fn a_postgresql_store_has_a_journal_and_fails_closed() {
    let (folder, path) = write_config(SHARED);
    let effective = load(&environment(&[]), Some(&path), &[]).unwrap();
    let store = &effective.settings.files.store;
    assert_eq!(store.path(), folder.path().join("j.db"));
    assert!(store.postgres().unwrap().uses_tls());
    assert!(effective.settings.budget.to_gateway().is_closed_on_store_error);
    let open = load_text(SHARED, &[], &["budget.on_store_error=open"]).unwrap();
    assert!(!open.settings.budget.to_gateway().is_closed_on_store_error);
    let shown = format!("{:?} {:?}", all_values(&effective), effective.settings);
    assert!(shown.contains("postgres://em@db.example:5432/endmark") && !shown.contains("hunter2"));
    // A flag may select another store for a single command.
    let other =
        Override { flag: "--store".to_owned(), key: "store".to_owned(), value: "sqlite:a.db".to_owned() };
    assert!(
        load(&environment(&[]), Some(&path), &[other]).unwrap().settings.files.store.postgres().is_none()
    );
}

#[test]
fn a_postgresql_store_needs_a_journal_and_verified_tls() {
    for (from, to, named) in [
        ("journal = \"j.db\"\n", "", "journal"),
        ("db.example/endmark", "db.example/endmark?sslmode=require", "sslmode"),
        ("postgres://em:hunter2@db.example/endmark", "sqlite:a.db", "journal"),
        ("db.example/endmark", "db.example/endmark?sslrootcert=/missing.pem", "/missing.pem"),
        ("db.example/endmark", "db.example/endmark?ssl=1", "`ssl`"),
        ("hunter2", "hunter2%zz", "%25"),
        ("postgres://", "postgre://", "postgres://USER:PASSWORD@HOST"),
        ("postgres://", "db://", "postgres://USER@HOST"),
        ("journal", "store_password = { file = \"/missing\" }\njournal", "/missing"),
    ] {
        let error = load_text(&SHARED.replace(from, to), &[], &[]).unwrap_err().to_string();
        assert!(error.contains(named) && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let wrong = SHARED.replace("journal = \"j.db\"\n", "");
    let wrong = wrong.replace("db.example/endmark", "db.example/endmark?sslrootcert=/missing.pem");
    let error = load_text(&wrong, &[], &[]).unwrap_err();
    let message = error.to_string();
    for part in ["2 problems", "`journal`", "/missing.pem"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(error.code(), "invalid_value");
    let error = load_text("cap.max_chars = \"x\"\nunknown = 1\n", &[("ENDMARK_LISTEN", "x")], &["mode=on"]);
    let error = error.unwrap_err();
    assert!(error.to_string().contains("4 problems"), "{error}");
    assert!(error.hint().is_some());
    // An unreadable password is reported together with an invalid value, but not with errors that this value causes.
    let wrong = format!("store_password = {{ env = \"UNSET\" }}\n{SHARED}[upstreams.a]\nbase_url = 7\n");
    let message = load_text(&wrong, &[], &[]).unwrap_err().to_string();
    for part in ["2 problems", "`UNSET`", "`upstreams.a.base_url`"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn the_database_password_comes_from_a_file_or_the_environment() {
    let (folder, path) = write_config(&SHARED.replace(":hunter2", ""));
    let password = |variables: &[(&str, &str)], text: &str| {
        std::fs::write(&path, text).unwrap();
        let effective = load(&environment(variables), Some(&path), &[]).unwrap();
        let shown = format!("{:?}", all_values(&effective));
        assert!(!shown.contains("from-"), "it is shown");
        effective.settings.files.store
    };
    let without = SHARED.replace(":hunter2", "");
    std::fs::write(folder.path().join("secret"), "from-file\n").unwrap();
    let in_file = format!("store_password = {{ file = \"secret\" }}\n{without}");
    let pg = ("PGPASSWORD", "from-pg");
    let url = |password: &str| SHARED.replace("hunter2", password);
    let of_url = |password: &str| StoreLocation::parse(url(password).split('"').nth(1).unwrap()).unwrap();
    let expected = |password: &str| of_url(password).with_journal(folder.path().join("j.db"));
    assert_eq!(password(&[pg], &without), expected("from-pg"));
    assert_eq!(password(&[pg], &in_file), expected("from-file"));
    assert_eq!(password(&[("ENDMARK_STORE_PASSWORD", "from-variable")], &without), expected("from-variable"));
    assert_eq!(password(&[pg], &url("from-url")), expected("from-url"));
    assert!(!password(&[], &without).postgres().unwrap().has_password());
}
