use endmark_config::Environment;

use super::client::{configuration_path, other_client_keys, required_settings, undo_keys};
use super::revision::{ConfigKeys, KeptKey, WriteRecord, revert, revise};
use super::*;

const ALL_CLIENTS: [ClientChoice; 6] = [
    ClientChoice::Claude,
    ClientChoice::Codex,
    ClientChoice::Gemini,
    ClientChoice::Opencode,
    ClientChoice::Openai,
    ClientChoice::Anthropic,
];

fn address(root: &str) -> GatewayAddress {
    GatewayAddress { root: root.to_owned() }
}

fn client_settings(choice: ClientChoice, root: &str, model: Option<&str>) -> Vec<RequiredSetting> {
    required_settings(choice, &address(root), model)
}

/// Returns the client's keys, and those of clients that may share its file.
fn client_keys(choice: ClientChoice) -> ConfigKeys<'static> {
    ConfigKeys { endmark_keys: undo_keys(choice), other_client_keys: other_client_keys(choice).leak() }
}

/// Returns typical files of users, and a missing file.
fn example_files(syntax: Syntax) -> Vec<Option<&'static str>> {
    let mut files = match syntax {
        Syntax::Jsonc => vec![
            "{}",
            "{\n\t\"theme\": \"dark\" // mine\n}",
            "{\"env\":{\"ANTHROPIC_BASE_URL\":\"https://corp.example\",\"A\":\"1\"},\"provider\":{\"openai\":{\"options\":{}}}}\n",
        ],
        Syntax::Toml => vec![
            "# mine\nmodel = \"o9\"\n\n[tui]\ntheme = \"x\" # nice\n",
            "model_provider = 'azure'\n[model_providers.azure]\nname = \"A\"\n[model_providers.endmark]\nname=\"old\"",
        ],
        Syntax::Dotenv => vec!["KEY=1", "export OPENAI_BASE_URL=\"http://old\"\n\n# end\n"],
    };
    files.push("");
    files.into_iter().map(Some).chain([None]).collect()
}

fn revised_record(
    choice: ClientChoice,
    current: Option<&str>,
    record: Option<&WriteRecord>,
    root: &str,
) -> WriteRecord {
    let settings = client_settings(choice, root, None);
    match revise(ClientProperties::new(choice).syntax, current, record, &settings, client_keys(choice))
        .unwrap()
    {
        RevisionResult::New { record, .. } => record,
        RevisionResult::Unchanged => panic!("{choice:?} is already up to date: {current:?}"),
    }
}

#[test]
fn undo_restores_the_file_after_one_or_two_writes() {
    for choice in ALL_CLIENTS {
        let syntax = ClientProperties::new(choice).syntax;
        for original in example_files(syntax) {
            let first = revised_record(choice, original, None, "http://127.0.0.1:4141");
            assert_eq!(first.original.as_deref(), original);
            let second = revised_record(choice, Some(&first.written), Some(&first), "http://[::1]:9/u/far");
            assert_eq!(second.original.as_deref(), original, "{choice:?}");
            assert_eq!(second, revised_record(choice, original, None, "http://[::1]:9/u/far"), "{choice:?}");
            for record in [&first, &second] {
                let back = revert(syntax, &record.written, Some(record), &[], client_keys(choice)).unwrap();
                let ReversionResult::Original { original: back, changes } = back else { panic!("{back:?}") };
                assert_eq!(back.as_deref(), original);
                assert!(!changes.is_empty());
            }
        }
    }
}

#[test]
fn a_second_write_changes_nothing() {
    for choice in ALL_CLIENTS {
        let syntax = ClientProperties::new(choice).syntax;
        for original in example_files(syntax) {
            let record = revised_record(choice, original, None, "http://a");
            let again = revise(
                syntax,
                Some(&record.written),
                Some(&record),
                &client_settings(choice, "http://a", None),
                client_keys(choice),
            );
            assert_eq!(again, Ok(RevisionResult::Unchanged), "{choice:?}");
        }
    }
}

#[test]
fn undo_of_an_edited_file_removes_only_our_keys() {
    let choice = ClientChoice::Claude;
    let original = "{\n  \"env\": {\n    \"ANTHROPIC_BASE_URL\": \"https://corp.example\"\n  }\n}\n";
    let record = revised_record(choice, Some(original), None, "http://a");
    let touched = record.written.replace("{\n  \"env\"", "{\n  \"theme\": \"dark\",\n  \"env\"");
    let back = revert(Syntax::Jsonc, &touched, Some(&record), &[], client_keys(choice)).unwrap();
    let ReversionResult::OwnKeys { text, changes, left } = back else { panic!("{back:?}") };
    assert_eq!(text, original.replace("{\n  \"env\"", "{\n  \"theme\": \"dark\",\n  \"env\""));
    assert_eq!((changes.len(), left.len()), (1, 0));
    // A key with another program's value belongs to that program.
    let theirs = touched.replace("http://a", "https://theirs.example");
    let back = revert(Syntax::Jsonc, &theirs, Some(&record), &[], client_keys(choice)).unwrap();
    let ReversionResult::OwnKeys { text, left, .. } = back else { panic!("{back:?}") };
    let key = "env.ANTHROPIC_BASE_URL".to_owned();
    assert_eq!((text.as_str(), left), (theirs.as_str(), vec![KeptKey { key, changed: Vec::new() }]));
    // Writing again treats the changed file without our keys as the original.
    let again = revised_record(choice, Some(&touched), Some(&record), "http://b");
    assert!(
        again.original.as_deref().is_some_and(|text| text.contains("theme") && text.contains("corp.example"))
    );
}

#[test]
fn a_table_that_another_program_changed_is_kept() {
    let opencode = client_settings(ClientChoice::Opencode, "http://a", Some("m"));
    let codex = client_settings(ClientChoice::Codex, "http://a", None);
    for (choice, settings, original, [ours, theirs], changed) in [
        (
            ClientChoice::Codex,
            &codex,
            "model = \"x\"\n",
            ["\"OPENAI_API_KEY\"\n", "\"MINE\"\n[model_providers.endmark.http_headers]\nx = \"y\"\n"],
            vec!["env_key", "http_headers.x"],
        ),
        (
            ClientChoice::Opencode,
            &opencode,
            "{}\n",
            ["\"m\": {}", "\"m\": {}, \"n\": {\"name\": \"N\"}"],
            vec!["models.n.name"],
        ),
    ] {
        let syntax = ClientProperties::new(choice).syntax;
        let written = match revise(syntax, Some(original), None, settings, client_keys(choice)).unwrap() {
            RevisionResult::New { record, .. } => record,
            RevisionResult::Unchanged => panic!("{choice:?}"),
        };
        assert!(written.written.contains(ours), "{}", written.written);
        let touched = written.written.replace(ours, theirs);
        let back = revert(syntax, &touched, Some(&written), settings, client_keys(choice)).unwrap();
        let ReversionResult::OwnKeys { text, left, .. } = back else { panic!("{back:?}") };
        assert_eq!(text, touched.replace("model_provider = \"endmark\"\n", ""), "{choice:?}");
        assert_eq!(left.iter().flat_map(|left| &left.changed).collect::<Vec<_>>(), changed);
        // After the record is deleted, the key is not restored either.
        let back = revert(syntax, &text, None, settings, client_keys(choice)).unwrap();
        assert!(
            matches!(&back, ReversionResult::OwnKeys { changes, left, .. } if changes.is_empty() && left.len() == 1),
            "{back:?}"
        );
        // Writing again keeps the user's change of the table.
        let again = revise(syntax, Some(&touched), Some(&written), settings, client_keys(choice)).unwrap();
        let RevisionResult::New { record, .. } = again else { continue };
        assert_eq!(record.original, Some(text));
    }
}

#[test]
fn undo_for_two_clients_is_independent() {
    let (first, second) = (ClientChoice::Openai, ClientChoice::Anthropic);
    let syntax = Syntax::Dotenv;
    let old = "export OPENAI_BASE_URL=\"http://old\"\nANTHROPIC_BASE_URL=http://corp # why\nX=1\n";
    for original in [None, Some("X=1\n"), Some(old)] {
        for touch in ["", "Y=2\n"] {
            let one = revised_record(first, original, None, "http://a");
            let touched = one.written.clone() + touch;
            let both = revised_record(second, Some(&touched), Some(&one), "http://a");
            let document = ConfigDocument::parse(syntax, &both.written).unwrap();
            assert_eq!(document.value(&["OPENAI_BASE_URL"]).as_deref(), Some("http://a/v1"), "{original:?}");
            assert_eq!(document.value(&["ANTHROPIC_BASE_URL"]).as_deref(), Some("http://a"), "{original:?}");
            let touched_again = both.written.clone() + touch;
            for (gone, left) in [(first, second), (second, first)] {
                let back = revert(syntax, &touched_again, Some(&both), &[], client_keys(gone)).unwrap();
                let ReversionResult::Shared { record, .. } = back else { panic!("{back:?}") };
                let again = revert(syntax, &record.written, Some(&record), &[], client_keys(gone)).unwrap();
                assert!(
                    matches!(&again, ReversionResult::Shared { changes, .. } if changes.is_empty()),
                    "{again:?}"
                );
                let back = revert(syntax, &record.written, Some(&record), &[], client_keys(left)).unwrap();
                let ReversionResult::Original { original: back, .. } = back else { panic!("{back:?}") };
                let expected = original.map_or_else(
                    || Some(touch.repeat(2)).filter(|text| !text.is_empty()),
                    |original| Some(original.to_owned() + &touch.repeat(2)),
                );
                assert_eq!(back, expected, "{gone:?}");
            }
        }
    }
}

#[test]
fn undo_without_a_record_removes_only_our_own_values() {
    let choice = ClientChoice::Codex;
    let text = "model_provider = \"endmark\"\n[model_providers.endmark]\nname = \"Endmark\"\n";
    let back =
        revert(Syntax::Toml, text, None, &client_settings(choice, "http://a", None), client_keys(choice))
            .unwrap();
    let ReversionResult::OwnKeys { text, .. } = back else { panic!("{back:?}") };
    assert_eq!(text, "");
    let other = "model_provider = \"azure\"\n";
    let settings = client_settings(choice, "http://a", None);
    assert_eq!(
        revert(Syntax::Toml, other, None, &settings, client_keys(choice)),
        Ok(ReversionResult::Unchanged)
    );
}

#[test]
fn every_client_config_is_found_where_the_client_reads_it() {
    let environment = |pairs: &[(&str, &str)]| {
        Environment::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    };
    let home = environment(&[("HOME", "/h")]);
    let path = |choice, environment| configuration_path(choice, environment).unwrap().display().to_string();
    assert_eq!(path(ClientChoice::Claude, &home), "/h/.claude/settings.json");
    assert_eq!(path(ClientChoice::Codex, &home), "/h/.codex/config.toml");
    assert_eq!(path(ClientChoice::Gemini, &home), "/h/.gemini/.env");
    assert_eq!(path(ClientChoice::Opencode, &home), "/h/.config/opencode/opencode.json");
    let moved = environment(&[
        ("CLAUDE_CONFIG_DIR", "/c"),
        ("CODEX_HOME", "/x"),
        ("GEMINI_CLI_HOME", "/g"),
        ("OPENCODE_CONFIG", "/o/my.json"),
    ]);
    assert_eq!(path(ClientChoice::Claude, &moved), "/c/settings.json");
    assert_eq!(path(ClientChoice::Codex, &moved), "/x/config.toml");
    assert_eq!(path(ClientChoice::Gemini, &moved), "/g/.gemini/.env");
    assert_eq!(path(ClientChoice::Opencode, &moved), "/o/my.json");
    assert_eq!(configuration_path(ClientChoice::Claude, &environment(&[])), None);
}

#[test]
fn a_password_in_an_address_is_hidden() {
    assert_eq!(without_password("https://me:pass@corp.example/a@b"), "https://***@corp.example/a@b");
    assert_eq!(without_password("http://corp.example/x"), "http://corp.example/x");
}
