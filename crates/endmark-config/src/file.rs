//! Parses a TOML file into keys and values, each with its line number.

use std::path::{Path, PathBuf};

use endmark_setting::RawSetting;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;

/// One assignment in a configuration file.
#[derive(Debug, PartialEq)]
pub(crate) struct Assignment {
    /// The section and the key, joined by dots.
    pub(crate) name: String,
    pub(crate) given: RawSetting,
    /// The line number, from 1.
    pub(crate) line: usize,
}

/// Parses the text of a configuration file. Returns its assignments in order.
pub(crate) fn parse_assignments(path: &Path, text: &str) -> Result<Vec<Assignment>, ConfigError> {
    let document = DeTable::parse(text).map_err(|error| syntax_error(path, text, &error))?;
    let mut assignments = Vec::new();
    // The TOML parser limits the nesting, which also limits the length of this list.
    let mut open = vec![(String::new(), document.get_ref())];
    while let Some((section, table)) = open.pop() {
        for (key, value) in table {
            let name = if section.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{section}.{}", key.get_ref())
            };
            match value.get_ref() {
                DeValue::Table(inner) if !inner.is_empty() && parse_reference(inner).is_none() => {
                    open.push((name, inner));
                }
                _ => assignments.push((key.span().start, name, parse_value(value))),
            }
        }
    }
    assignments.sort_by_key(|(offset, ..)| *offset);
    let located = |(offset, name, given)| Assignment { name, given, line: line_and_column(text, offset).0 };
    Ok(assignments.into_iter().map(located).collect())
}

fn parse_value(value: &Spanned<DeValue<'_>>) -> RawSetting {
    match value.get_ref() {
        DeValue::String(text) => RawSetting::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(RawSetting::Other("integer"), RawSetting::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or(RawSetting::Other("float"), RawSetting::Float)
        }
        DeValue::Boolean(flag) => RawSetting::Boolean(*flag),
        DeValue::Table(table) => parse_reference(table).unwrap_or(RawSetting::Other("table")),
        DeValue::Array(values) => {
            let texts = values.iter().map(|value| value.get_ref().as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().map_or(RawSetting::Other("array"), RawSetting::List)
        }
        other @ DeValue::Datetime(_) => RawSetting::Other(other.type_str()),
    }
}

/// Returns the reference `{ env = "NAME" }` or `{ file = "PATH" }`, or `None` for any other table.
fn parse_reference(table: &DeTable<'_>) -> Option<RawSetting> {
    let (kind, target) = table.iter().next().filter(|_| table.len() == 1)?;
    let place = target.get_ref().as_str()?.to_owned();
    match kind.get_ref().as_ref() {
        "env" => Some(RawSetting::FromEnvironment(place)),
        "file" => Some(RawSetting::FromFile(place)),
        _ => None,
    }
}

fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let (line, column) = line_and_column(text, error.span().map_or(0, |span| span.start));
    let message = error.message().lines().collect::<Vec<_>>().join("; ");
    ConfigError::Syntax { path: PathBuf::from(path), line, column, message }
}

/// Returns the line and the column (in characters) of a byte offset, both from 1.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_keep_file_order_and_line_numbers() {
        let text = "store = \"sqlite:a.db\"\n\n[upstreams.z]\nbase_url = [\"m\"]\n[upstreams.a]\napi_key = { env = \"K\" }\n\n[tools]\n";
        let read = parse_assignments(Path::new("e.toml"), text).unwrap();
        let found: Vec<_> = read.iter().map(|it| (it.name.as_str(), it.line)).collect();
        assert_eq!(
            found,
            [("store", 1), ("upstreams.z.base_url", 4), ("upstreams.a.api_key", 6), ("tools", 8)]
        );
        assert_eq!(read[2].given, RawSetting::FromEnvironment("K".into()));
        assert_eq!(read[3].given, RawSetting::Other("table"));
    }

    #[test]
    fn invalid_toml_is_reported_with_line_and_column() {
        let error = parse_assignments(Path::new("e.toml"), "listen = \"a\"\nstore = = 1\n").unwrap_err();
        assert!(error.to_string().starts_with("e.toml:2:9: "), "{error}");
    }
}
