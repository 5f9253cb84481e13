//! `endmark config`: the effective configuration, the origin of each value, and whether it is usable.

use std::fmt::Write;
use std::path::Path;

use endmark_config::{ConfigError, EffectiveConfig, KeyListing, Origin};
use endmark_failure::CommandError;
use serde::Serialize;
use serde_json::Value;

use crate::arguments::{Config, ConfigCommand};
use crate::checks;
use crate::context::{Context, configuration_warnings};
use crate::view::answer::{Answer, to_data};
use crate::view::paint::{Paint, Painter};

/// Shows or checks the configuration.
pub(crate) fn run(context: &Context, arguments: &Config) -> Result<Answer, CommandError> {
    let command = arguments.command.unwrap_or(ConfigCommand::Show);
    let effective = match command {
        ConfigCommand::Check => load_valid_configuration(context)?,
        _ => context.load_configuration(Vec::new())?,
    };
    let warnings = configuration_warnings(&effective);
    let answer = match command {
        ConfigCommand::Show => show(&effective, context.terminal.output)?,
        ConfigCommand::Path => path_answer(context, &effective)?,
        ConfigCommand::Check => {
            let checks = checks::check_configuration(&effective, &context.environment);
            checks::answer(&checks, context.terminal.output)?
        }
    };
    Ok(answer.with_warnings(warnings))
}

/// Returns the configuration, or all errors in it and in the files to which it refers.
fn load_valid_configuration(context: &Context) -> Result<EffectiveConfig, CommandError> {
    let (effective, mut errors) = context.load_with_errors()?;
    if !errors.is_empty() {
        errors.extend(checks::further_errors(&effective, &context.environment));
    }
    ConfigError::combine(errors)?;
    Ok(effective)
}

/// The path of the configuration file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PathReport {
    path: Option<String>,
    /// The searched paths, if no file exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    searched: Option<Vec<String>>,
}

fn path_answer(context: &Context, effective: &EffectiveConfig) -> Result<Answer, CommandError> {
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    if let Some(path) = &effective.file {
        let data = to_data(&PathReport { path: Some(shown(path)), searched: None })?;
        return Ok(Answer::yes(data, format!("{}\n", path.display())));
    }
    let searched = endmark_config::search_paths(&context.environment);
    let named: Vec<String> = searched.iter().map(|path| format!("`{}`", path.display())).collect();
    let searched = searched.iter().map(|path| shown(path)).collect();
    let data = to_data(&PathReport { path: None, searched: Some(searched) })?;
    let hint = format!(
        "Searched for {}. All settings have defaults; `endmark config show > endmark.toml` writes an initial file.",
        named.join(" and ")
    );
    Ok(Answer::no(data, "no_file", "no configuration file was found", Some(hint)))
}

/// The effective configuration.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ConfigReport<'a> {
    /// The configuration file.
    file: Option<String>,
    values: Vec<ValueReport<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ValueReport<'a> {
    key: &'a str,
    value: &'a Value,
    origin: OriginReport<'a>,
    summary: &'static str,
}

/// Where a value comes from.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OriginReport<'a> {
    /// `default`, `file`, `environment` or `flag`.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The environment variable, or the flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> OriginReport<'a> {
    fn new(origin: &'a Origin) -> Self {
        let nothing = Self { kind: "default", path: None, line: None, name: None };
        match origin {
            Origin::Default => nothing,
            Origin::File { path, line } => {
                let path = Some(path.to_string_lossy().into_owned());
                Self { kind: "file", path, line: Some(*line), name: None }
            }
            Origin::Environment(name) => Self { kind: "environment", name: Some(name), ..nothing },
            Origin::Flag(name) => Self { kind: "flag", name: Some(name), ..nothing },
        }
    }
}

impl<'a> ValueReport<'a> {
    fn new(shown: &'a KeyListing) -> Self {
        Self {
            key: &shown.key,
            value: &shown.value,
            origin: OriginReport::new(&shown.origin),
            summary: shown.summary,
        }
    }
}

fn show(effective: &EffectiveConfig, painter: Painter) -> Result<Answer, CommandError> {
    let values = endmark_config::all_values(effective);
    let data = to_data(&ConfigReport {
        file: effective.file.as_ref().map(|path| path.to_string_lossy().into_owned()),
        values: values.iter().map(ValueReport::new).collect(),
    })?;
    Ok(Answer::yes(data, to_toml(&values, painter)))
}

/// Returns the values as valid TOML, each with its origin as a comment.
fn to_toml(values: &[KeyListing], painter: Painter) -> String {
    let lines: Vec<(&str, String, &KeyListing)> = values
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
        let origin = painter.paint(Paint::Dim, &format!("# {}", shown.origin));
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
            let (kind, place) = reference
                .iter()
                .next()
                .map_or(("env", ""), |(kind, place)| (kind.as_str(), place.as_str().unwrap_or_default()));
            format!("{key} = {{ {kind} = {} }}", toml::Value::from(place))
        }
        other => format!("{key} = {other}"),
    }
}
