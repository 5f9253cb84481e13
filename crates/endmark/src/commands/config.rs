//! `endmark config`: what is in effect, where it came from, and whether it can be used.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::arguments::{Config, ConfigCommand};
use crate::checks;
use crate::config::{self, Effective, Shown};
use crate::context::{Context, configuration_warnings};
use crate::error::CommandError;
use crate::terminal::{Paint, Painter};

/// Shows or checks the configuration.
pub(crate) fn run(context: &Context, arguments: &Config) -> Result<Answer, CommandError> {
    let effective = context.configuration(Vec::new())?;
    let warnings = configuration_warnings(&effective);
    let answer = match arguments.command.unwrap_or(ConfigCommand::Show) {
        ConfigCommand::Show => show(&effective, context.terminal.output),
        ConfigCommand::Path => path(context, &effective),
        ConfigCommand::Check => {
            let checks = checks::of_configuration(&effective, &context.environment);
            checks::answer(&checks, context.terminal.output)
        }
    };
    Ok(answer.with_warnings(warnings))
}

fn path(context: &Context, effective: &Effective) -> Answer {
    if let Some(path) = &effective.file {
        return Answer::yes(json!({"path": path.to_string_lossy()}), format!("{}\n", path.display()));
    }
    let searched = config::searched(&context.environment);
    let named: Vec<String> = searched.iter().map(|path| format!("`{}`", path.display())).collect();
    let data = json!({"path": null, "searched": searched.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>()});
    let hint = format!(
        "Looked for {}. Everything has a default; `endmark config show > endmark.toml` writes a file to begin with.",
        named.join(" and ")
    );
    Answer::no(data, "no_file", "no configuration file is read", Some(hint))
}

fn show(effective: &Effective, painter: Painter) -> Answer {
    let values = config::shown(effective);
    let data = json!({
        "file": effective.file.as_ref().map(|path| path.to_string_lossy()),
        "values": values.iter().map(|shown| json!({
            "key": shown.key,
            "value": shown.value,
            "origin": shown.origin.to_json(),
            "summary": shown.summary,
        })).collect::<Vec<_>>(),
    });
    Answer::yes(data, toml(&values, painter))
}

/// The values as TOML that could be read again, each with its origin as a comment.
fn toml(values: &[Shown], painter: Painter) -> String {
    let lines: Vec<(&str, String, &Shown)> = values
        .iter()
        .map(|shown| {
            let (section, key) = shown.key.rsplit_once('.').unwrap_or(("", &shown.key));
            (section, assignment(key, &shown.value), shown)
        })
        .collect();
    let width =
        lines.iter().map(|(_, line, _)| line.chars().count()).filter(|width| *width <= 60).max().unwrap_or(0);
    let mut text = String::new();
    let mut current = "";
    for (section, line, shown) in lines {
        if section != current {
            let heading = painter.paint(Paint::Strong, &format!("[{section}]"));
            text.extend(["\n", &heading, "\n"]);
            current = section;
        }
        let origin = painter.paint(Paint::Faint, &format!("# {}", shown.origin));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line:<width$}  {origin}");
    }
    text
}

fn assignment(key: &str, value: &Value) -> String {
    match value {
        Value::Null => format!("# {key} ="),
        Value::String(text) => format!("{key} = {}", toml::Value::from(text.as_str())),
        Value::Object(reference) => {
            let name = reference.get("env").and_then(Value::as_str).unwrap_or_default();
            format!("{key} = {{ env = {} }}", toml::Value::from(name))
        }
        other => format!("{key} = {other}"),
    }
}
