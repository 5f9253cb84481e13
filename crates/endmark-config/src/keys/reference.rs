//! Checks that `docs/configuration.md` lists exactly the existing keys.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::KEYS;
use crate::EffectiveConfig;
use crate::prices::Price;
use crate::provenance::Provenance;
use crate::settings::{Schema, Settings, Upstream};
use crate::show::{KeyListing, all_values};

/// The variable with which the test writes the page instead of comparing it.
const UPDATE: &str = "ENDMARK_UPDATE_REFERENCE";

/// The text of the page before the tables.
const INTRODUCTION: &str = "# Configuration

Every key, with its default. `endmark.toml` comes from `--config`, `ENDMARK_CONFIG`, the current folder or `~/.config/endmark/`.
Environment variables override the file, and flags override both (`--set KEY=VALUE` sets any key). `endmark config` shows the
effective value of each key and where it came from; `endmark config check` checks a file without starting anything.

A key of a section is written below the section's name:

    [resume]
    mode = \"on\"

[Reference in short](reference.md) has the keys that most users need. This page is generated from the list of keys in the source.
";

/// Formats a default as the configuration file would contain it, or as `none`.
fn format_default(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::String(text) if text.is_empty() => "none".to_owned(),
        other => format!("`{other}`"),
    }
}

/// Splits a full key name into its section and the key.
fn split_key(key: &str) -> (String, &str) {
    match key.rsplit_once('.') {
        None => (String::new(), key),
        Some(("schemas", name)) => ("schemas".to_owned(), name),
        Some((section, name)) => (section.to_owned(), name),
    }
}

/// Returns all keys with their defaults, including those of an example upstream, price and schema.
fn default_listings() -> Vec<KeyListing> {
    let settings = Settings {
        upstreams: vec![Upstream::new("NAME")],
        prices: vec![Price { pattern: "NAME".to_owned(), ..Price::default() }],
        schemas: vec![Schema { name: "NAME".to_owned(), path: "".into() }],
        ..Settings::default()
    };
    let provenance = Provenance::default();
    all_values(&EffectiveConfig { settings, provenance, file: None, warnings: Vec::new() })
}

fn render_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut last = None;
    for KeyListing { key, value, summary, .. } in default_listings() {
        let (section, name) = split_key(&key);
        let known = KEYS.iter().find(|known| known.name() == key);
        if last.as_ref() != Some(&section) {
            let title =
                if section.is_empty() { "Keys of no section".to_owned() } else { format!("`[{section}]`") };
            let columns = match known {
                Some(_) => "| key | default | accepts | variable | meaning |\n|---|---|---|---|---|",
                None => "| key | default | meaning |\n|---|---|---|",
            };
            let _ = write!(page, "\n## {title}\n\n{columns}\n");
            last = Some(section);
        }
        // An unescaped bar would end the table cell.
        let summary = summary.replace('|', "\\|");
        let default = format_default(&value);
        let _ = match known {
            Some(known) => writeln!(
                page,
                "| `{name}` | {default} | {} | `{}` | {summary} |",
                known.accepts(),
                known.variable()
            ),
            None => writeln!(page, "| `{name}` | {default} | {summary} |"),
        };
    }
    page
}

#[test]
fn the_documented_reference_matches_the_keys() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let expected = render_page();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expected,
        "docs/configuration.md is not what the keys are now: \
         `{UPDATE}=1 cargo test -p endmark-config reference` writes it"
    );
}
