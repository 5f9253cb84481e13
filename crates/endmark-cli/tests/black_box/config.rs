//! The configuration: layers, sources and mistakes.

use serde_json::{Value, json};

use crate::run::TestFolder;

fn value<'a>(envelope: &'a Value, key: &str) -> &'a Value {
    let values = envelope["data"]["values"].as_array().unwrap();
    values.iter().find(|value| value["key"] == key).unwrap()
}

#[test]
fn a_typo_names_the_nearest_key_the_file_and_the_line() {
    let place = TestFolder::new()
        .with_file("endmark.toml", "listen = \"127.0.0.1:1\"\n\n[resume]\nmax_atempts = 3\n");
    let run = place.run(&["config"]);
    assert_eq!((run.code, run.output.as_str()), (2, ""));
    assert_eq!(
        run.errors,
        "error: endmark.toml:4: unknown key `resume.max_atempts`\nhint: Did you mean `max_attempts` in `[resume]`?\n"
    );
    let envelope = place.run(&["config", "--json"]).envelope();
    assert_eq!(envelope["error"]["code"], "unknown_key");
    assert_eq!(envelope["error"]["hint"], "Did you mean `max_attempts` in `[resume]`?");
}

#[test]
fn every_value_reports_its_source() {
    let place = TestFolder::new()
        .with_file(
            "endmark.toml",
            "[resume]\nmode = \"off\"\n\n[upstreams.local]\nbase_url = \"http://127.0.0.1:9/v1\"\n",
        )
        .with_variable("ENDMARK_RESUME_MAX_ATTEMPTS", "5");
    let envelope = place.run(&["config", "--json", "--set", "tools.hold=true"]).envelope();
    let origin = |key| value(&envelope, key)["origin"].clone();
    assert_eq!(origin("resume.mode"), json!({"kind": "file", "path": "endmark.toml", "line": 2}));
    assert_eq!(
        origin("resume.max_attempts"),
        json!({"kind": "environment", "name": "ENDMARK_RESUME_MAX_ATTEMPTS"})
    );
    assert_eq!(origin("tools.hold"), json!({"kind": "flag", "name": "--set"}));
    assert_eq!(origin("listen"), json!({"kind": "default"}));
    assert_eq!(value(&envelope, "resume.max_attempts")["value"], 5);
    assert!(place.run(&["config"]).output.contains("max_attempts = 5"));
}

/// The files in `examples/` cause no warning, and their first line states their subject.
#[test]
fn every_example_is_a_valid_configuration() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut names: Vec<String> = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let place = TestFolder::new().with_file("endmark.toml", std::fs::read(&file).unwrap());
        let check = place.run(&["config", "check"]);
        assert_eq!((check.code, check.errors.as_str()), (0, ""), "{name}: {}", check.output);
        let envelope = place.run(&["config", "--json"]).envelope();
        assert_eq!(value(&envelope, &format!("upstreams.{name}.prefill"))["value"], "never", "{name}");
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["claude", "openai"]);
}

#[test]
fn a_shown_configuration_can_be_read_again() {
    let shown = TestFolder::new().run(&["config", "show"]);
    assert_eq!(shown.code, 0);
    let again = TestFolder::new().with_file("other.toml", &shown.output).run(&[
        "--config",
        "other.toml",
        "config",
        "--json",
    ]);
    assert_eq!(value(&again.envelope(), "listen")["origin"]["path"], "other.toml");
}

#[test]
fn a_key_is_never_shown() {
    let place = TestFolder::new()
        .with_file(
            "endmark.toml",
            "[upstreams.a]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = \"sk-in-the-file\"\n",
        )
        .with_variable("ENDMARK_UPSTREAMS_B_BASE_URL", "http://127.0.0.1:9/v1")
        .with_variable("ENDMARK_UPSTREAMS_B_API_KEY", "sk-in-the-environment");
    for arguments in [&["config"][..], &["config", "--json"], &["config", "check", "-vv"], &["doctor"]] {
        let run = place.run(arguments);
        assert!(!format!("{}{}", run.output, run.errors).contains("sk-in"), "{arguments:?}: {}", run.output);
    }
    assert!(place.run(&["config"]).output.contains("api_key = \"***\""));
}

#[test]
fn a_missing_key_or_schema_fails_the_check() {
    let text = "[upstreams.a]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = { env = \"A_KEY\" }\n[schemas]\nticket = \"ticket.json\"\n";
    let place = TestFolder::new().with_file("endmark.toml", text);
    let run = place.run(&["config", "check"]);
    assert_eq!(run.code, 1);
    assert!(run.output.contains("the environment variable `A_KEY` is not set"), "{}", run.output);
    assert!(run.output.contains("`ticket.json` cannot be used"), "{}", run.output);
    let place = place.with_file("ticket.json", "{\"type\":\"object\"}").with_variable("A_KEY", "k");
    assert_eq!(place.run(&["config", "check"]).code, 0);
}

#[test]
fn the_check_reports_all_problems_at_once() {
    let text = "admin_key = \"short\"\n[resume]\nmode = \"sometimes\"\n[upstreams.a]\n\
                base_url = \"http://127.0.0.1:9/v1\"\napi_key = { env = \"A_KEY\" }\n";
    let place = TestFolder::new().with_file("endmark.toml", text);
    let run = place.run(&["config", "check"]);
    assert_eq!(run.code, 2, "{}", run.output);
    for part in ["3 problems", "admin_key: ", "`resume.mode`", "upstreams.a.api_key: "] {
        assert!(run.errors.contains(part), "{part}: {}", run.errors);
    }
    // Errors that only `config check` finds do not affect other commands.
    let place = place.with_file("endmark.toml", text.replace("sometimes", "on"));
    let run = place.run(&["config", "check"]);
    assert!(run.code == 1 && run.output.contains("FAIL  admin_key"), "{}", run.output);
    assert_eq!(place.run(&["config", "show"]).code, 0);
}

#[test]
fn the_named_file_or_the_first_existing_one_is_used() {
    let place = TestFolder::new();
    let none = place.run(&["config", "path", "--json"]);
    assert_eq!((none.code, none.envelope()["error"]["code"].as_str()), (1, Some("no_file")));
    std::fs::create_dir_all(place.path().join(".config/endmark")).unwrap();
    let place = place.with_file(".config/endmark/endmark.toml", "");
    assert!(place.run(&["config", "path"]).output.ends_with(".config/endmark/endmark.toml\n"));
    let place = place.with_file("endmark.toml", "").with_file("named.toml", "").with_file("flag.toml", "");
    assert_eq!(place.run(&["config", "path"]).output, "endmark.toml\n");
    let place = place.with_variable("ENDMARK_CONFIG", "named.toml");
    assert_eq!(place.run(&["config", "path"]).output, "named.toml\n");
    assert_eq!(place.run(&["config", "path", "--config", "flag.toml"]).output, "flag.toml\n");
    let missing = place.run(&["config", "path", "--config", "missing.toml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.errors.contains("cannot read the configuration `missing.toml`"), "{}", missing.errors);
}

#[test]
fn an_unknown_variable_causes_a_warning() {
    let place = TestFolder::new().with_variable("ENDMARK_RESUM_MODE", "on");
    let run = place.run(&["config"]);
    assert_eq!(run.code, 0);
    assert!(run.errors.contains("did you mean `ENDMARK_RESUME_MODE`?"), "{}", run.errors);
    assert_eq!(place.run(&["config", "-q"]).errors, "");
    assert_eq!(place.run(&["config", "--json"]).envelope()["warnings"][0]["code"], "CONFIGURATION");
}

#[test]
fn every_set_option_applies_at_any_position() {
    let set = |arguments: &[&str], key| {
        let run = TestFolder::new().run(&[arguments, &["--json"]].concat());
        let envelope = run.envelope();
        (value(&envelope, key)["value"].clone(), value(&envelope, key)["origin"]["kind"].clone())
    };
    let both =
        ["--set", "resume.mode=on", "--set", "tools.hold=true", "config", "--set", "resume.max_attempts=5"];
    assert_eq!(set(&both, "resume.mode"), (json!("on"), json!("flag")));
    assert_eq!(set(&both, "tools.hold"), (json!(true), json!("flag")));
    assert_eq!(set(&both, "resume.max_attempts"), (json!(5), json!("flag")));
    let deep = ["--set", "resume.mode=on", "config", "show", "--set", "resume.max_attempts=5"];
    assert_eq!(set(&deep, "resume.mode").0, "on");
    assert_eq!(set(&deep, "resume.max_attempts").0, 5);
    let twice =
        ["--set", "resume.max_attempts=3", "config", "--set=resume.max_attempts=4", "--set=resume.mode=off"];
    assert_eq!(set(&twice, "resume.max_attempts").0, 4);
    for arguments in [&["--help"][..], &["config", "--help"], &["log", "show", "--help"], &["man", "detect"]]
    {
        let run = TestFolder::new().run(arguments);
        assert_eq!((run.code, run.output.contains("set")), (0, true), "{arguments:?}");
    }
    let unknown = TestFolder::new().run(&["--set", "resume.mod=on", "config", "--set", "resume.mode=on"]);
    assert_eq!(unknown.code, 2, "{}", unknown.output);
}

#[test]
fn the_effective_proxy_is_shown_without_its_password() {
    let place = TestFolder::new()
        .with_file(
            "endmark.toml",
            "[upstreams.far]\nbase_url = \"https://far.example/v1\"\n\
             [upstreams.near]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
             [upstreams.excepted]\nbase_url = \"https://api.inside.example/v1\"\n\
             [upstreams.own]\nbase_url = \"http://127.0.0.1:9/v1\"\nproxy = \"http://me:pass-word@other.example:8080\"\n\
             [upstreams.direct]\nbase_url = \"https://far.example/v1\"\nproxy = \"none\"\n",
        )
        .with_variable("HTTPS_PROXY", "http://me:pass-word@proxy.example:3128")
        .with_variable("no_proxy", "inside.example");
    let run = place.run(&["config", "check"]);
    assert_eq!(run.code, 0, "{}", run.errors);
    assert!(run.output.contains("upstreams.far.proxy"), "{}", run.output);
    assert!(run.output.contains("through the proxy http://***@proxy.example:3128"), "{}", run.output);
    assert!(run.output.contains("through the proxy http://***@other.example:8080"), "{}", run.output);
    for direct in ["near", "excepted", "direct"] {
        assert!(!run.output.contains(&format!("upstreams.{direct}.proxy")), "{}", run.output);
    }
    let shown = place.run(&["config"]).output;
    assert!(shown.contains("proxy = \"http://***@other.example:8080\""), "{shown}");
    assert!(!run.output.contains("pass-word") && !shown.contains("pass-word"));
}

#[test]
fn an_invalid_proxy_is_named_by_its_source() {
    let far = "[upstreams.far]\nbase_url = \"https://far.example/v1\"\n";
    let place = TestFolder::new()
        .with_file("endmark.toml", far)
        .with_variable("ALL_PROXY", "socks5://me:pass-word@p:1");
    let run = place.run(&["config", "check"]);
    assert_eq!(run.code, 1);
    assert!(run.output.contains("ALL_PROXY") && run.output.contains("SOCKS"), "{}", run.output);
    assert!(!run.output.contains("pass-word"), "{}", run.output);
    let run = place.run(&["serve"]);
    assert_eq!(run.code, 2);
    assert!(run.errors.contains("ALL_PROXY") && run.errors.contains("hint:"), "{}", run.errors);

    let run = TestFolder::new()
        .with_file("endmark.toml", format!("{far}proxy = \"ftp://me:pass-word@p\"\n"))
        .run(&["config"]);
    assert_eq!(run.code, 2);
    assert!(run.errors.contains("endmark.toml:3") && !run.errors.contains("pass-word"), "{}", run.errors);
}

#[test]
fn a_key_may_be_in_its_own_file() {
    let text = "[upstreams.far]\nbase_url = \"https://far.example/v1\"\napi_key = { file = \"far.key\" }\n";
    let place = TestFolder::new().with_file("endmark.toml", text).with_file("far.key", "sk-of-far\n");
    let run = place.run(&["config", "check"]);
    assert_eq!(run.code, 0, "{}", run.output);
    let shown = place.run(&["config"]).output;
    assert!(shown.contains("api_key = { file = \"far.key\" }"), "{shown}");
    for (contents, said) in [("", "is empty"), ("sk-1\nsk-2\n", "more than one line")] {
        let run = TestFolder::new()
            .with_file("endmark.toml", text)
            .with_file("far.key", contents)
            .run(&["config", "check"]);
        assert_eq!(run.code, 1);
        assert!(run.output.contains("far.key") && run.output.contains(said), "{}", run.output);
    }
    let run = TestFolder::new().with_file("endmark.toml", text).run(&["serve"]);
    assert_eq!(run.code, 2);
    assert!(
        run.errors.contains("far.key") && run.errors.contains("the key of the upstream `far`"),
        "{}",
        run.errors
    );
}

#[test]
fn a_ca_file_without_a_certificate_is_refused() {
    let text = "ca_file = \"own.pem\"\n[upstreams.far]\nbase_url = \"https://far.example/v1\"\n";
    let run =
        TestFolder::new().with_file("endmark.toml", text).with_file("own.pem", "nothing").run(&["serve"]);
    assert_eq!(run.code, 2);
    assert!(run.errors.contains("own.pem") && run.errors.contains("no certificate"), "{}", run.errors);
    let run = TestFolder::new().with_file("endmark.toml", text).run(&["config", "check"]);
    assert_eq!(run.code, 1);
    assert!(run.output.contains("own.pem"), "{}", run.output);
    let https = "[upstreams.far]\nbase_url = \"https://far.example/v1\"\n";
    let run = TestFolder::new()
        .with_file("endmark.toml", https)
        .with_variable("SSL_CERT_FILE", "/nowhere.pem")
        .run(&["serve"]);
    assert_eq!(run.code, 2);
    assert!(run.errors.contains("SSL_CERT_FILE"), "{}", run.errors);
}

#[test]
fn a_fallback_of_another_format_is_refused_with_suitable_ones() {
    let upstream = |name: &str, more: &str| {
        format!("[upstreams.{name}]\nbase_url = \"http://127.0.0.1:9/v1\"\n{more}\n")
    };
    let mut configuration = upstream("first", "fallback = \"claude\"");
    configuration += &upstream("claude", "format = \"anthropic\"");
    let run = TestFolder::new().with_file("endmark.toml", &configuration).run(&["config"]);
    assert_eq!(run.code, 2);
    assert!(run.errors.contains("upstream of the same `format`, but none has this name"), "{}", run.errors);
    configuration += &upstream("second", "");
    let run = TestFolder::new().with_file("endmark.toml", &configuration).run(&["config"]);
    assert!(run.errors.contains("upstream of the same `format`: `second`"), "{}", run.errors);
    let allowed = configuration.replace("\"claude\"", "\"second\"");
    assert_eq!(TestFolder::new().with_file("endmark.toml", allowed).run(&["config"]).code, 0);
}
