//! `setup`: points clients at Endmark in their own configuration files, and undoes it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::run::{CommandOutput, TestFolder};

/// A typical opencode configuration of a user.
const OPENCODE_CONFIG: &str =
    "{\n  // mine\n  \"theme\": \"dark\",\n  \"provider\": {\"x\": {\"a\": [1,2]}},\n}\n";
const OPENCODE_FILE: &str = ".config/opencode/opencode.json";
const OPENCODE_WRITE: [&str; 5] = ["setup", "opencode", "--write", "--model", "local-model"];

fn folder_with_opencode(text: &str) -> TestFolder {
    let place = TestFolder::new();
    fs::create_dir_all(place.path().join(".config/opencode")).unwrap();
    place.with_file(OPENCODE_FILE, text)
}

fn read_file(place: &TestFolder, file: &str) -> String {
    fs::read_to_string(place.path().join(file)).unwrap()
}

fn list_files(place: &TestFolder, folder: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(place.path().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn setup_shows_the_changes_and_writes_nothing() {
    let place = TestFolder::new();
    let shown = place.run(&["setup", "openai"]);
    assert_eq!((shown.code, shown.errors.as_str()), (0, ""));
    let lines: Vec<&str> = shown.output.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, ["OPENAI_BASE_URL=http://127.0.0.1:4141/v1"]);
    assert_eq!(list_files(&place, ""), Vec::<String>::new());

    let envelope = place.run(&["setup", "openai", "--json"]).envelope();
    assert_eq!(envelope["data"]["action"], "shown");
    assert_eq!(envelope["data"]["snippet"], "OPENAI_BASE_URL=http://127.0.0.1:4141/v1\n");
}

#[test]
fn undo_restores_the_original_file_byte_for_byte() {
    let place = folder_with_opencode(OPENCODE_CONFIG);
    let path = place.path().join(OPENCODE_FILE);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();

    let written = place.run(&OPENCODE_WRITE);
    assert_eq!(written.code, 0, "{}", written.errors);
    assert!(
        written.output.contains("provider.endmark.options.baseURL: not set → http://127.0.0.1:4141/v1"),
        "{}",
        written.output
    );
    let key = "provider.endmark.options.apiKey: not set → {env:OPENAI_API_KEY}";
    assert!(written.output.contains(key), "{}", written.output);
    let after = read_file(&place, OPENCODE_FILE);
    assert!(after.starts_with("{\n  // mine\n  \"theme\": \"dark\",\n  \"provider\": {"), "{after}");
    for kept in ["\"x\": {\"a\": [1,2]}", "\"endmark\": {", "\"local-model\": {}"] {
        assert!(after.contains(kept), "{kept} in {after}");
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(read_file(&place, &format!("{OPENCODE_FILE}.endmark-backup")), OPENCODE_CONFIG);

    let again = place.run(&[&OPENCODE_WRITE[..], &["--json"]].concat()).envelope();
    assert_eq!((&again["data"]["action"], &again["data"]["changes"]), (&json!("unchanged"), &json!([])));
    assert_eq!(read_file(&place, OPENCODE_FILE), after);

    // After a write with another address, undo still restores the original file.
    let moved = place.run(&[&OPENCODE_WRITE[..], &["--url", "http://[::1]:9"]].concat());
    assert_eq!(moved.code, 0, "{}", moved.errors);
    let undone = place.run(&["setup", "opencode", "--undo"]);
    assert!(undone.output.contains("byte for byte"), "{}", undone.output);
    assert_eq!(read_file(&place, OPENCODE_FILE), OPENCODE_CONFIG);
    assert_eq!(list_files(&place, ".config/opencode"), ["opencode.json"]);

    let nothing = place.run(&["setup", "opencode", "--undo", "--json"]).envelope();
    assert_eq!(nothing["data"]["action"], "unchanged");
}

#[test]
fn undo_removes_a_created_file() {
    let place = TestFolder::new();
    assert_eq!(place.run(&["setup", "openai", "--write"]).code, 0);
    assert_eq!(read_file(&place, ".env"), "OPENAI_BASE_URL=http://127.0.0.1:4141/v1\n");
    let mode = fs::metadata(place.path().join(".env")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(place.run(&["setup", "openai", "--undo"]).output.contains("did not exist before"));
    assert_eq!(list_files(&place, ""), Vec::<String>::new());
}

#[test]
fn undo_removes_a_folder_only_if_created_and_empty() {
    let place = TestFolder::new();
    assert_eq!(place.run(&["setup", "codex", "--write"]).code, 0);
    assert_eq!(place.run(&["setup", "codex", "--write", "--url", "http://[::1]:9"]).code, 0);
    assert_eq!(place.run(&["setup", "codex", "--undo"]).code, 0);
    assert_eq!(list_files(&place, ""), Vec::<String>::new());

    assert_eq!(place.run(&["setup", "opencode", "--write", "--model", "m"]).code, 0);
    let place = place.with_file(".config/mine", "");
    assert_eq!(place.run(&["setup", "opencode", "--undo"]).code, 0);
    assert_eq!(list_files(&place, ".config"), ["mine"]);

    fs::create_dir(place.path().join(".codex")).unwrap();
    assert_eq!(place.run(&["setup", "codex", "--write"]).code, 0);
    assert_eq!(place.run(&["setup", "codex", "--undo"]).code, 0);
    assert!(place.path().join(".codex").is_dir(), "it was there before");
}

#[test]
fn foreign_keys_in_our_table_stay_and_are_named() {
    let place = TestFolder::new();
    assert_eq!(place.run(&["setup", "codex", "--write"]).code, 0);
    let written = read_file(&place, ".codex/config.toml");
    let headers = "\n[model_providers.endmark.http_headers]\nX-Team = \"blue\"\n";
    let touched = written.replace("OPENAI_API_KEY", "MY_KEY") + headers;
    let place = place.with_file(".codex/config.toml", &touched);
    let undone = place.run(&["setup", "codex", "--undo"]);
    assert_eq!(undone.code, 0, "{}", undone.errors);
    for name in ["`model_providers.endmark` was not changed", "`env_key`", "`http_headers.X-Team`"] {
        assert!(undone.errors.contains(name), "{name} in {}", undone.errors);
    }
    let left = read_file(&place, ".codex/config.toml");
    assert_eq!(left, touched.replace("model_provider = \"endmark\"\n\n", "\n"));
    let again = place.run(&["setup", "codex", "--undo"]);
    assert!(again.errors.contains("`env_key`"), "{}", again.errors);
    assert_eq!(read_file(&place, ".codex/config.toml"), left);
}

#[test]
fn the_table_that_clients_read_is_edited_if_it_occurs_twice() {
    let original = "{\"env\":{\"A\":\"1\"},\"env\":{\"B\":\"2\"}}";
    let place = TestFolder::new().with_file("d.json", original);
    let written = place.run(&["setup", "claude", "--write", "--file", "d.json"]);
    assert!(written.code == 0 && written.output.starts_with("Written to"), "{}", written.output);
    let read: Value = serde_json::from_str(&read_file(&place, "d.json")).unwrap();
    assert_eq!(read["env"]["ANTHROPIC_BASE_URL"], "http://127.0.0.1:4141");
    assert_eq!(place.run(&["setup", "claude", "--undo", "--file", "d.json"]).code, 0);
    assert_eq!(read_file(&place, "d.json"), original);
}

#[test]
fn a_codex_profile_with_its_own_provider_is_named() {
    let profile = "profile = \"p\"\n[profiles.p]\nmodel_provider = \"azure\"\n";
    let write = ["setup", "codex", "--write", "--file", "config.toml"];
    let place = TestFolder::new().with_file("config.toml", profile);
    for expected_text in ["Written to", "already up to date"] {
        let run = place.run(&write);
        assert!(run.code == 0 && run.output.contains(expected_text), "{}", run.output);
        for part in ["`profiles.p.model_provider`", "azure"] {
            assert!(run.errors.contains(part), "{part} in {}", run.errors);
        }
    }
    for harmless in [profile.replace("\"azure\"", "\"endmark\""), profile.replace("profile =", "other =")] {
        let place = TestFolder::new().with_file("config.toml", &harmless);
        assert_eq!(place.run(&write).errors, "", "{harmless}");
    }
}

#[test]
fn two_clients_share_a_file() {
    let original = "export OPENAI_BASE_URL=\"http://old\" # mine\nX=1\n";
    let place = TestFolder::new().with_file(".env", original);
    for client in ["openai", "anthropic"] {
        assert_eq!(place.run(&["setup", client, "--write"]).code, 0);
    }
    let both = read_file(&place, ".env");
    for line in [
        "export OPENAI_BASE_URL=http://127.0.0.1:4141/v1 # mine\n",
        "ANTHROPIC_BASE_URL=http://127.0.0.1:4141\n",
        "X=1\n",
    ] {
        assert!(both.contains(line), "{line} in {both}");
    }
    let undone = place.run(&["setup", "openai", "--undo"]);
    assert!(undone.output.contains("for other clients, too"), "{}", undone.output);
    assert_eq!(read_file(&place, ".env"), format!("{original}ANTHROPIC_BASE_URL=http://127.0.0.1:4141\n"));
    let again = place.run(&["setup", "openai", "--undo", "--json"]).envelope();
    assert_eq!(again["data"]["action"], "unchanged");
    assert_eq!(place.run(&["setup", "anthropic", "--undo"]).code, 0);
    assert_eq!(read_file(&place, ".env"), original);
    assert_eq!(list_files(&place, ""), [".env"]);
}

#[test]
fn undo_of_an_edited_file_removes_only_our_keys() {
    let place = folder_with_opencode(OPENCODE_CONFIG);
    assert_eq!(place.run(&OPENCODE_WRITE).code, 0);
    let touched = read_file(&place, OPENCODE_FILE).replace("\"dark\"", "\"light\"");
    let place = place.with_file(OPENCODE_FILE, &touched);
    let undone = place.run(&["setup", "opencode", "--undo"]);
    assert_eq!(undone.code, 0, "{}", undone.errors);
    assert!(undone.output.contains("Only Endmark's keys were restored"), "{}", undone.output);
    let left = read_file(&place, OPENCODE_FILE);
    assert!(left.contains("\"light\"") && left.contains("// mine") && left.contains("[1,2]"), "{left}");
    assert!(!left.contains("endmark") && !left.contains("local-model"), "{left}");
    assert_eq!(list_files(&place, ".config/opencode"), ["opencode.json"]);
}

#[test]
fn undo_after_an_edit_and_a_second_write_keeps_the_edit() {
    let place = folder_with_opencode(OPENCODE_CONFIG);
    assert_eq!(place.run(&OPENCODE_WRITE).code, 0);
    let touched = read_file(&place, OPENCODE_FILE).replace("\"dark\"", "\"light\"");
    let place = place.with_file(OPENCODE_FILE, &touched);
    assert!(place.run(&OPENCODE_WRITE).output.contains("is already up to date"));
    let moved = place.run(&[&OPENCODE_WRITE[..], &["--url", "http://127.0.0.1:4999"]].concat());
    assert_eq!(moved.code, 0, "{}", moved.errors);
    assert!(read_file(&place, OPENCODE_FILE).contains("http://127.0.0.1:4999/v1"));
    assert!(!moved.errors.contains("the client used"), "that was Endmark itself: {}", moved.errors);
    let undone = place.run(&["setup", "opencode", "--undo"]);
    assert_eq!(undone.code, 0, "{}", undone.errors);
    let edited = OPENCODE_CONFIG.replace("\"dark\"", "\"light\"");
    let value = |text: &str| parse_jsonc(text);
    assert_eq!(value(&read_file(&place, OPENCODE_FILE)), value(&edited));
    assert!(read_file(&place, OPENCODE_FILE).contains("// mine"));
    assert_eq!(list_files(&place, ".config/opencode"), ["opencode.json"]);
}

/// Parses a file such as [`OPENCODE_CONFIG`], whose comment is on a separate line and which has trailing commas.
fn parse_jsonc(text: &str) -> Value {
    let lines: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let compact: String = lines.split_whitespace().collect();
    serde_json::from_str(&compact.replace(",}", "}")).unwrap()
}

#[test]
fn windows_line_endings_and_a_byte_order_mark_are_kept() {
    for (client, file, original) in [
        ("claude", ".claude/settings.json", "\u{feff}{\r\n  \"env\": {\r\n    \"A\": \"1\"\r\n  }\r\n}\r\n"),
        ("codex", ".codex/config.toml", "\u{feff}# mine\r\nmodel = \"o3\"\r\n[a]\r\nb = 1\r\n"),
    ] {
        let place = TestFolder::new();
        fs::create_dir_all(place.path().join(file).parent().unwrap()).unwrap();
        let place = place.with_file(file, original);
        assert_eq!(place.run(&["setup", client, "--write"]).code, 0);
        let written = read_file(&place, file);
        assert!(written.starts_with('\u{feff}') && written.contains("127.0.0.1:4141"), "{written:?}");
        assert!(!written.replace("\r\n", "").contains('\n'), "{written:?}");
        assert_eq!(place.run(&["setup", client, "--undo"]).code, 0);
        assert_eq!(read_file(&place, file), original);
    }
}

#[test]
fn the_effective_one_of_duplicate_keys_is_edited() {
    let twice = "{\n  \"env\": {\"A\": \"1\"},\n  \"env\": {\"ANTHROPIC_BASE_URL\": \"http://x\"}\n}\n";
    let place = TestFolder::new();
    fs::create_dir_all(place.path().join(".claude")).unwrap();
    let place = place.with_file(".claude/settings.json", twice);
    let written = place.run(&["setup", "claude", "--write"]);
    assert!(written.errors.contains("the client used http://x before"), "{}", written.errors);
    let read: Value = serde_json::from_str(&read_file(&place, ".claude/settings.json")).unwrap();
    assert_eq!(read["env"]["ANTHROPIC_BASE_URL"], "http://127.0.0.1:4141");
    assert_eq!(place.run(&["setup", "claude", "--undo"]).code, 0);
    assert_eq!(read_file(&place, ".claude/settings.json"), twice);
}

#[test]
fn undo_without_a_record_removes_only_our_own_values() {
    let place = folder_with_opencode(OPENCODE_CONFIG);
    assert_eq!(place.run(&OPENCODE_WRITE).code, 0);
    for name in list_files(&place, ".config/opencode").iter().filter(|name| name.contains("endmark-")) {
        fs::remove_file(place.path().join(".config/opencode").join(name)).unwrap();
    }
    let undone = place.run(&["setup", "opencode", "--undo", "--model", "local-model"]);
    assert_eq!(undone.code, 0, "{}", undone.errors);
    assert!(undone.output.contains("has no record"), "{}", undone.output);
    assert_eq!(parse_jsonc(&read_file(&place, OPENCODE_FILE)), parse_jsonc(OPENCODE_CONFIG));
}

#[test]
fn an_unreadable_file_is_unchanged_and_reported_with_advice() {
    for (broken, place_of_it) in
        [("{\n  \"a\": nonsense\n}\n", "line 2"), ("[1, 2]\n", "not a table"), ("", "")]
    {
        let place = folder_with_opencode(broken);
        let run = place.run(&OPENCODE_WRITE);
        if broken.is_empty() {
            assert_eq!(run.code, 0, "an empty file is as good as none: {}", run.errors);
            continue;
        }
        assert_eq!((run.code, run.output.as_str()), (2, ""));
        assert!(run.errors.contains(place_of_it), "{}", run.errors);
        assert!(
            run.errors.contains("hint: ") && run.errors.contains("Nothing was written."),
            "{}",
            run.errors
        );
        assert_eq!(read_file(&place, OPENCODE_FILE), broken);
        assert_eq!(list_files(&place, ".config/opencode"), ["opencode.json"]);
    }
    let place = TestFolder::new().with_file(".env", [0xff, 0xfe]);
    let envelope = place.run(&["setup", "openai", "--write", "--json"]).envelope();
    assert_eq!(envelope["error"]["code"], "unfit_file");
}

#[test]
fn a_symbolic_link_is_kept_and_its_target_is_written() {
    let place = TestFolder::new().with_file("dotfiles.env", "A=1\n");
    symlink(place.path().join("dotfiles.env"), place.path().join(".env")).unwrap();
    assert_eq!(place.run(&["setup", "openai", "--write"]).code, 0);
    assert!(place.path().join(".env").is_symlink());
    assert_eq!(read_file(&place, "dotfiles.env"), "A=1\nOPENAI_BASE_URL=http://127.0.0.1:4141/v1\n");
    assert_eq!(place.run(&["setup", "openai", "--undo"]).code, 0);
    assert_eq!(read_file(&place, "dotfiles.env"), "A=1\n");
}

#[test]
fn the_written_address_comes_from_the_configuration() {
    let place = TestFolder::new().with_file(
        "endmark.toml",
        "listen = \"0.0.0.0:5000\"\n[upstreams.local]\nbase_url = \"http://127.0.0.1:9/v1\"\n",
    );
    let url = |arguments: &[&str]| {
        let envelope = place.run(&[&["setup", "openai", "--json"], arguments].concat()).envelope();
        envelope["data"]["snippet"].clone()
    };
    assert_eq!(url(&[]), "OPENAI_BASE_URL=http://127.0.0.1:5000/v1\n");
    assert_eq!(url(&["--upstream", "local"]), "OPENAI_BASE_URL=http://127.0.0.1:5000/u/local/v1\n");
    assert_eq!(url(&["--url", "https://g.example/"]), "OPENAI_BASE_URL=https://g.example/v1\n");
    let unknown = place.run(&["setup", "openai", "--upstream", "locl"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.errors.contains("Did you mean `local`?"), "{}", unknown.errors);
    let versioned = place.run(&["setup", "openai", "--url", "http://g.example/v1"]);
    assert!(
        versioned.code == 2 && versioned.errors.contains("without an API version"),
        "{}",
        versioned.errors
    );
}

#[test]
fn the_previous_address_is_shown_without_its_password() {
    let place = TestFolder::new().with_file(".env", "OPENAI_BASE_URL=https://me:pass-word@corp.example/v1\n");
    let run = place.run(&["setup", "openai", "--write"]);
    assert!(run.errors.contains("the client used https://***@corp.example/v1 before"), "{}", run.errors);
    assert!(!format!("{}{}", run.output, run.errors).contains("pass-word"));
    let again = TestFolder::new().with_file(".env", "OPENAI_BASE_URL=https://me:pass-word@corp.example/v1\n");
    let envelope: Value = again.run(&["setup", "openai", "--write", "--json"]).envelope();
    assert!(!envelope.to_string().contains("pass-word"));
}

#[test]
fn every_client_config_is_written_and_restored() {
    let claude = "{\n  \"permissions\": {\"allow\": []}, // mine\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n";
    let codex = "# mine\nmodel = \"o9\"\n\n[tui]\ntheme = \"x\"\n";
    for (client, file, original, expected_text) in [
        ("claude", ".claude/settings.json", claude, "\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:4141\""),
        ("codex", ".codex/config.toml", codex, "base_url = \"http://127.0.0.1:4141/v1\""),
        ("gemini", ".gemini/.env", "GEMINI_API_KEY=k\n", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:4141\n"),
        ("opencode", OPENCODE_FILE, OPENCODE_CONFIG, "\"baseURL\": \"http://127.0.0.1:4141/v1beta\""),
        ("anthropic", ".env", "A=1\n", "ANTHROPIC_BASE_URL=http://127.0.0.1:4141\n"),
    ] {
        let place = TestFolder::new();
        let path = place.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, original).unwrap();
        let written = place.run(&["setup", client, "--write"]);
        assert_eq!(written.code, 0, "{client}: {}", written.errors);
        let after = read_file(&place, file);
        assert!(after.contains(expected_text), "{client}: {after}");
        // One-line objects are split to add entries. Everything else is unchanged.
        let kept = ["// mine", "\"A\": \"1\"", "[1,2]", "# mine", "theme = \"x\"", "GEMINI_API_KEY=k", "A=1"];
        for part in kept.iter().filter(|part| original.contains(**part)) {
            assert!(after.contains(part), "{client} has lost {part}: {after}");
        }
        assert_eq!(place.run(&["setup", client, "--undo"]).code, 0);
        assert_eq!(read_file(&place, file), original, "{client}");
    }
}

#[test]
fn every_opencode_provider_gets_its_own_version() {
    let place = TestFolder::new();
    let path = place.path().join(OPENCODE_FILE);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{}").unwrap();
    assert_eq!(place.run(&["setup", "opencode", "--write"]).code, 0);
    let written: Value = serde_json::from_str(&read_file(&place, OPENCODE_FILE)).unwrap();
    for (provider, version) in [("openai", "v1"), ("anthropic", "v1"), ("google", "v1beta")] {
        let address = &written["provider"][provider]["options"]["baseURL"];
        assert_eq!(*address, format!("http://127.0.0.1:4141/{version}"), "{provider}");
    }
}

#[test]
fn codex_gets_one_provider_over_http() {
    let place = TestFolder::new();
    assert_eq!(place.run(&["setup", "codex", "--write"]).code, 0);
    assert_eq!(
        read_file(&place, ".codex/config.toml"),
        "model_provider = \"endmark\"\n\n[model_providers.endmark]\nname = \"Endmark\"\n\
         base_url = \"http://127.0.0.1:4141/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n"
    );
}

#[test]
fn a_client_whose_format_no_upstream_supports_is_refused_with_advice() {
    // Without a configuration, the upstreams are the providers' public endpoints.
    assert_eq!(TestFolder::new().run(&["setup", "claude"]).errors, "");
    let only_openai = "[upstreams.local]\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let place = TestFolder::new().with_file("endmark.toml", only_openai);
    let run = place.run(&["setup", "claude"]);
    assert_eq!(run.code, 0);
    assert!(run.errors.contains("`format = \"anthropic\"`"), "{}", run.errors);
    let place = place.with_file(
        "endmark.toml",
        "[upstreams.claude]\nformat = \"anthropic\"\nbase_url = \"http://127.0.0.1:9/v1\"\n",
    );
    assert_eq!(place.run(&["setup", "claude"]).errors, "");
}

#[test]
fn a_file_without_its_backup_is_neither_removed_nor_recreated() {
    for next in
        [&["setup", "opencode", "--undo"][..], &[&OPENCODE_WRITE[..], &["--url", "http://[::1]:9"]].concat()]
    {
        let place = folder_with_opencode(OPENCODE_CONFIG);
        assert_eq!(place.run(&OPENCODE_WRITE).code, 0);
        let written = read_file(&place, OPENCODE_FILE);
        fs::remove_file(place.path().join(format!("{OPENCODE_FILE}.endmark-backup"))).unwrap();
        let run = place.run(next);
        assert_eq!((run.code, run.output.as_str()), (2, ""), "{next:?}");
        assert!(
            run.errors.contains("endmark-backup`, the original of") && run.errors.contains("hint: "),
            "{}",
            run.errors
        );
        assert_eq!(read_file(&place, OPENCODE_FILE), written, "{next:?}");
    }
}

#[test]
fn a_broken_record_stops_before_anything_is_changed() {
    let place = folder_with_opencode(OPENCODE_CONFIG);
    assert_eq!(place.run(&OPENCODE_WRITE).code, 0);
    let written = read_file(&place, OPENCODE_FILE);
    for ending in ["backup", "written"] {
        let path = place.path().join(format!("{OPENCODE_FILE}.endmark-{ending}"));
        let kept = fs::read(&path).unwrap();
        fs::write(&path, [0xff, 0xfe]).unwrap();
        let run = place.run(&["setup", "opencode", "--undo"]);
        assert!(run.code == 2 && run.errors.contains("hint: "), "{}", run.errors);
        assert_eq!(read_file(&place, OPENCODE_FILE), written);
        fs::write(&path, kept).unwrap();
    }
    assert_eq!(place.run(&["setup", "opencode", "--undo"]).code, 0);
    assert_eq!(read_file(&place, OPENCODE_FILE), OPENCODE_CONFIG);
}

#[test]
fn a_read_only_file_is_unchanged() {
    let place = folder_with_opencode(OPENCODE_CONFIG);
    let path = place.path().join(OPENCODE_FILE);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let run = place.run(&OPENCODE_WRITE);
    assert_eq!((run.code, run.output.as_str()), (2, ""));
    assert!(run.errors.contains("read-only") && run.errors.contains("hint: "), "{}", run.errors);
    assert_eq!(read_file(&place, OPENCODE_FILE), OPENCODE_CONFIG);
    assert_eq!(list_files(&place, ".config/opencode"), ["opencode.json"]);
}

#[test]
fn an_opencode_file_keeps_its_line_endings_and_byte_order_mark() {
    let original = format!("\u{feff}{}", OPENCODE_CONFIG.replace('\n', "\r\n"));
    let place = folder_with_opencode(&original);
    assert_eq!(place.run(&OPENCODE_WRITE).code, 0);
    let after = read_file(&place, OPENCODE_FILE);
    assert!(after.starts_with('\u{feff}') && after.contains("endmark"), "{after}");
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
    assert_eq!(place.run(&["setup", "opencode", "--undo"]).code, 0);
    assert_eq!(read_file(&place, OPENCODE_FILE), original);
}

#[test]
fn an_edit_between_two_writes_survives_undo() {
    let place = folder_with_opencode(OPENCODE_CONFIG);
    assert_eq!(place.run(&OPENCODE_WRITE).code, 0);
    let touched = read_file(&place, OPENCODE_FILE).replace("\"dark\"", "\"light\"");
    let place = place.with_file(OPENCODE_FILE, &touched);
    let second = [&OPENCODE_WRITE[..], &["--url", "http://[::1]:9"]].concat();
    assert_eq!(place.run(&second).code, 0);
    assert_eq!(place.run(&["setup", "opencode", "--undo"]).code, 0);
    let left = read_file(&place, OPENCODE_FILE);
    assert!(left.contains("\"light\"") && left.contains("// mine"), "{left}");
    assert!(!left.contains("endmark"), "{left}");
}

/// A line inside quotes is not a setting.
#[test]
fn a_multi_line_value_stays_whole() {
    let url = "GOOGLE_GEMINI_BASE_URL";
    for (original, written) in [
        (
            format!("K=\"line1\n{url}=no\n\"\nZ=1\n"),
            format!("K=\"line1\n{url}=no\n\"\nZ=1\n{url}=http://127.0.0.1:4141\n"),
        ),
        (
            format!("{url}=yes\nexport K='{{\n{url}=no\n}}' # why\nZ=1\n"),
            format!("{url}=http://127.0.0.1:4141\nexport K='{{\n{url}=no\n}}' # why\nZ=1\n"),
        ),
        (
            format!("A=1\n{url}=\"http://x\n/y\" # b\nZ=1"),
            format!("A=1\n{url}=http://127.0.0.1:4141 # b\nZ=1"),
        ),
        (
            format!("K=\"it \\\" is\n{url}=no\"\n"),
            format!("K=\"it \\\" is\n{url}=no\"\n{url}=http://127.0.0.1:4141\n"),
        ),
    ] {
        let place = TestFolder::new().with_file(".env", &original);
        let gemini = |action: &str| place.run(&["setup", "gemini", action, "--file", ".env"]);
        assert_eq!(gemini("--write").code, 0, "{original}");
        assert_eq!(read_file(&place, ".env"), written);
        assert_eq!(gemini("--undo").code, 0, "{original}");
        assert_eq!(read_file(&place, ".env"), original);
        assert_eq!(list_files(&place, ""), [".env"]);
        // An edit between the two commands is kept, and so is the original content.
        assert_eq!(gemini("--write").code, 0, "{original}");
        let place = place.with_file(".env", format!("B=2\n{written}"));
        assert_eq!(place.run(&["setup", "gemini", "--undo", "--file", ".env"]).code, 0, "{original}");
        assert_eq!(read_file(&place, ".env"), format!("B=2\n{original}"));
    }
}

#[test]
fn a_comment_after_a_value_is_kept() {
    for (original, written) in [
        ("export OPENAI_BASE_URL=http://a # c\n", "export OPENAI_BASE_URL=http://127.0.0.1:4141/v1 # c\n"),
        ("OPENAI_BASE_URL='http://a#b'\t# \"c\n", "OPENAI_BASE_URL=http://127.0.0.1:4141/v1\t# \"c\n"),
        ("OPENAI_BASE_URL= # c", "OPENAI_BASE_URL=http://127.0.0.1:4141/v1 # c\n"),
        ("OPENAI_BASE_URL=http://a#b\n", "OPENAI_BASE_URL=http://127.0.0.1:4141/v1\n"),
    ] {
        let place = TestFolder::new().with_file(".env", original);
        assert_eq!(place.run(&["setup", "openai", "--write"]).code, 0);
        assert_eq!(read_file(&place, ".env"), written);
        assert!(place.run(&["setup", "openai", "--write"]).output.contains("is already up to date"));
        assert_eq!(place.run(&["setup", "openai", "--undo"]).code, 0);
        assert_eq!(read_file(&place, ".env"), original);
    }
}

/// Parsers disagree about the meaning of a file with an unclosed quote.
#[test]
fn an_unclosed_quote_stops_before_anything_is_changed() {
    for original in ["A=1\nK=\"line1\nOPENAI_BASE_URL=no\n", "A=1\nK='one\ntwo' three\nB=2\n"] {
        let place = TestFolder::new().with_file(".env", original);
        let envelope = place.run(&["setup", "openai", "--write", "--json"]).envelope();
        assert_eq!(envelope["error"]["code"], "unfit_file");
        let message = envelope["error"]["message"].as_str().unwrap();
        assert!(message.contains("line 2"), "{message}");
        assert_eq!(read_file(&place, ".env"), original);
        assert_eq!(list_files(&place, ""), [".env"]);
    }
}

/// Runs these commands concurrently. Returns their exit codes and output.
fn run_concurrently(place: &TestFolder, commands: &[Vec<String>]) -> Vec<(i32, String)> {
    let start = |command: &Vec<String>| {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        place.command(&words).stdin(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = commands.iter().map(start).collect();
    let ended = children.into_iter().map(|child| CommandOutput::new(&child.wait_with_output().unwrap()));
    ended.map(|ran| (ran.code, ran.errors)).collect()
}

fn assert_all_succeeded(ended: &[(i32, String)]) {
    assert!(ended.iter().all(|(code, _)| *code == 0), "{ended:?}");
}

#[test]
fn concurrent_writes_keep_the_original() {
    for round in 0..5 {
        let place = folder_with_opencode(OPENCODE_CONFIG);
        // A killed process leaves its lock file, which must not block other processes.
        let place = place.with_file(&format!("{OPENCODE_FILE}.endmark-lock"), "");
        let write = |number: u32| {
            let url = format!("http://127.0.0.1:{}", 5000 + number);
            [&OPENCODE_WRITE[..], &["--url", &url]].concat().into_iter().map(str::to_owned).collect()
        };
        assert_all_succeeded(&run_concurrently(&place, &(0..6).map(write).collect::<Vec<_>>()));
        let backup = read_file(&place, &format!("{OPENCODE_FILE}.endmark-backup"));
        assert_eq!(backup, OPENCODE_CONFIG, "round {round}");
        let undo: Vec<String> = ["setup", "opencode", "--undo"].map(str::to_owned).to_vec();
        assert_all_succeeded(&run_concurrently(&place, &[undo.clone(), undo.clone(), undo]));
        assert_eq!(read_file(&place, OPENCODE_FILE), OPENCODE_CONFIG);
        assert_eq!(list_files(&place, ".config/opencode"), ["opencode.json"]);
    }
}

#[test]
fn hooks_installed_concurrently_are_all_present() {
    for _ in 0..5 {
        let place = TestFolder::new();
        let install = |kind: &str| ["hook", "install", "--agent", "claude", kind].map(str::to_owned).to_vec();
        let write = ["setup", "claude", "--write"].map(str::to_owned).to_vec();
        assert_all_succeeded(&run_concurrently(&place, &[install("tool"), install("compact"), write]));
        let settings: Value = serde_json::from_str(&read_file(&place, ".claude/settings.json")).unwrap();
        let hooks: Vec<&String> = settings["hooks"].as_object().unwrap().keys().collect();
        assert!(
            hooks.contains(&&"PostToolUse".to_owned()) && hooks.contains(&&"PreCompact".to_owned()),
            "{settings}"
        );
        assert!(settings["env"]["ANTHROPIC_BASE_URL"].is_string(), "{settings}");
    }
}

#[test]
fn a_backup_is_never_overwritten() {
    let place = folder_with_opencode(OPENCODE_CONFIG);
    assert_eq!(place.run(&OPENCODE_WRITE).code, 0);
    let touched = read_file(&place, OPENCODE_FILE).replace("\"dark\"", "\"light\"");
    let place = place.with_file(OPENCODE_FILE, &touched);
    assert_eq!(place.run(&[&OPENCODE_WRITE[..], &["--url", "http://127.0.0.1:4999"]].concat()).code, 0);
    assert_eq!(read_file(&place, &format!("{OPENCODE_FILE}.endmark-backup-1")), OPENCODE_CONFIG);
}
