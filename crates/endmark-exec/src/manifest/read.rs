//! Parses a manifest from TOML.

use std::collections::BTreeMap;
use std::time::Duration;

use endmark_envelope::{FieldPath, FieldPattern, FieldRule, FieldRules, Limit, MIN_RESPONSE_LIMIT_BYTES};
use endmark_failure::ExitStatus;
use toml::de::{DeTable, DeValue};

use super::error::{ManifestError, ManifestProblem};
use super::section::{ExpectedValue, Section, line_number};
use super::{
    ArgumentLimit, ArgumentSource, ExitMeaning, Manifest, OutputKind, OutputRules, OutputWithFlag,
    PayloadLimit,
};

/// The largest output buffer that a manifest may request: 1 GiB.
const MAX_CAPTURED_BYTES: u64 = 1 << 30;
/// The longest time limit that a manifest may set, in seconds: a year.
const MAX_SECONDS: f64 = 31_536_000.0;

/// Parses a manifest. Returns the first error.
pub(crate) fn parse(text: &str) -> Result<Manifest, ManifestError> {
    let document = DeTable::parse(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        let offset = error.span().map_or(0, |span| span.start);
        ManifestError { line: line_number(text, offset), problem: ManifestProblem::Syntax(message) }
    })?;
    let mut root = Section::new(text, "", 0, document.get_ref());
    let default = Manifest::default();
    // A description is accepted, and ignored.
    root.take_optional("description", read_string)?;
    let stdin = root.take_section("stdin")?.map(read_stdin).transpose()?;
    let (max_stdin_bytes, stdin_fields) = stdin.unzip();
    let manifest = Manifest {
        command: root.take_optional("command", read_words)?.unwrap_or_default(),
        flags_with_value: root.take_optional("flags_with_value", read_flags)?.unwrap_or_default(),
        flags_with_two_values: root.take_optional("flags_with_two_values", read_flags)?.unwrap_or_default(),
        flags_without_value: root.take_optional("flags_without_value", read_flags)?.unwrap_or_default(),
        max_argument_bytes: root.take_optional("max_argument_bytes", read_count)?,
        timeout: root
            .take_optional("timeout_seconds", read_seconds)?
            .map_or(default.timeout, |timeout| Some(timeout).filter(|timeout| !timeout.is_zero())),
        grace: root.take_optional("grace_seconds", read_seconds)?.unwrap_or(default.grace),
        arguments: root
            .take_sections("arguments")?
            .into_iter()
            .map(read_argument)
            .collect::<Result<Vec<_>, ManifestError>>()?,
        max_stdin_bytes,
        stdin_fields: stdin_fields.unwrap_or_default(),
        max_stderr_bytes: match root.take_section("stderr")? {
            Some(section) => read_max_bytes(section)?,
            None => default.max_stderr_bytes,
        },
        output: root.take_section("output")?.map(read_output).transpose()?.unwrap_or_default(),
        exit_codes: root
            .take_section("exit_codes")?
            .as_ref()
            .map(read_exit_codes)
            .transpose()?
            .unwrap_or_default(),
    };
    root.finish()?;
    Ok(manifest)
}

fn read_max_bytes(mut section: Section<'_>) -> Result<u64, ManifestError> {
    let max_bytes = section.take_required("max_bytes", read_count)?;
    section.finish()?;
    Ok(max_bytes)
}

fn read_stdin(mut section: Section<'_>) -> Result<(u64, Vec<PayloadLimit>), ManifestError> {
    let max_bytes = section.take_required("max_bytes", read_count)?;
    let fields = read_payload_limits(&mut section)?;
    section.finish()?;
    Ok((max_bytes, fields))
}

/// Parses the limits of values inside a payload.
fn read_payload_limits(section: &mut Section<'_>) -> Result<Vec<PayloadLimit>, ManifestError> {
    section.take_sections("fields")?.into_iter().map(read_payload_limit).collect()
}

fn read_payload_limit(mut section: Section<'_>) -> Result<PayloadLimit, ManifestError> {
    let path = section.take_required("path", read_payload_path)?;
    let limit = Limit {
        max_bytes: section.take_optional("max_bytes", read_count)?,
        max_chars: section.take_optional("max_characters", read_count)?,
        max_items: section.take_optional("max_items", read_count)?,
    };
    if limit == Limit::default() {
        let message = format!("state a limit of `{path}`: `max_bytes`, `max_characters` or `max_items`");
        return Err(section.contradiction(message));
    }
    section.finish()?;
    Ok(PayloadLimit { path, limit })
}

fn read_argument(mut section: Section<'_>) -> Result<ArgumentLimit, ManifestError> {
    let name = section.take_required("name", read_identifier)?;
    let max_bytes = section.take_required("max_bytes", read_count)?;
    let position = section.take_optional("position", read_position)?;
    let flags = section.take_optional("flag", read_flags)?.map(ArgumentSource::Flags);
    let variable = section.take_optional("environment", read_identifier)?.map(ArgumentSource::Environment);
    let mut places = [position, flags, variable].into_iter().flatten();
    let place = match (places.next(), places.next()) {
        (Some(place), None) => place,
        (None, _) => {
            let message = format!("state where `{name}` is: `position`, `flag` or `environment`");
            return Err(section.contradiction(message));
        }
        (Some(_), Some(_)) => {
            let message = format!("`{name}` has two positions: use one of `position`, `flag`, `environment`");
            return Err(section.contradiction(message));
        }
    };
    let fields = read_payload_limits(&mut section)?;
    section.finish()?;
    Ok(ArgumentLimit { name, source: place, max_bytes, fields })
}

fn read_output(mut section: Section<'_>) -> Result<OutputRules, ManifestError> {
    let default = OutputRules::default();
    let kind = section.take_optional("kind", read_kind)?.unwrap_or(default.kind);
    let empty_is_list = section.take_optional("empty_is_list", read_flag)?.unwrap_or(default.empty_is_list);
    let with_flag = section.take_sections("with_flag")?.into_iter();
    let with_flag =
        with_flag.map(|section| read_output_with_flag(section, kind)).collect::<Result<_, _>>()?;
    let captured = section
        .take_optional("max_captured_bytes", |value| read_bounded_number(value, 1, MAX_CAPTURED_BYTES))?;
    let response = section.take_optional("max_response_bytes", |value| {
        read_bounded_number(
            value,
            u64::try_from(MIN_RESPONSE_LIMIT_BYTES).unwrap_or(u64::MAX),
            MAX_CAPTURED_BYTES,
        )
    })?;
    let pages = section.take_optional("pages", read_list_path)?;
    let mut fields = FieldRules::default();
    for rules in section.take_sections("fields")? {
        let (path, rule) = read_field(rules)?;
        fields.add(path, rule);
    }
    section.finish()?;
    Ok(OutputRules {
        kind,
        empty_is_list,
        with_flag,
        max_captured_bytes: captured.unwrap_or(default.max_captured_bytes),
        max_response_bytes: response.unwrap_or(default.max_response_bytes),
        fields,
        pages,
    })
}

/// Parses the rules for certain flags. Rules that are not given are the same as without the flags.
fn read_output_with_flag(
    mut section: Section<'_>,
    otherwise: OutputKind,
) -> Result<OutputWithFlag, ManifestError> {
    let output = OutputWithFlag {
        flags: section.take_required("flag", read_flags)?,
        kind: section.take_optional("kind", read_kind)?.unwrap_or(otherwise),
        empty_is_list: section.take_optional("empty_is_list", read_flag)?.unwrap_or(false),
    };
    section.finish()?;
    Ok(output)
}

fn read_field(mut section: Section<'_>) -> Result<(FieldPattern, FieldRule), ManifestError> {
    let path = section.take_required("path", read_pattern)?;
    let rule = FieldRule {
        max_bytes: section.take_optional("max_bytes", read_count)?,
        max_chars: section.take_optional("max_characters", read_count)?,
        max_items: section.take_optional("max_items", read_count)?,
        bytes_in: section.take_optional("bytes_field", read_identifier)?,
        chars_in: section.take_optional("characters_field", read_identifier)?,
        items_in: section.take_optional("items_field", read_identifier)?,
        page_token_in: section.take_optional("page_token_field", read_identifier)?,
        markers: section.take_optional("marker", read_strings)?.unwrap_or_default(),
        is_exact: section.take_optional("exact", read_flag)?.unwrap_or(false),
        ..FieldRule::default()
    };
    section.finish()?;
    Ok((path, rule))
}

fn read_exit_codes(section: &Section<'_>) -> Result<BTreeMap<i32, ExitMeaning>, ManifestError> {
    let mut meanings = BTreeMap::new();
    for (offset, key, value) in section.entries() {
        let code = key.parse::<u8>().map(i32::from).map_err(|_| {
            let message = format!("`{key}` is not an exit code: write a number from 0 to 255");
            section.error_at(offset, ManifestProblem::Contradiction(message))
        })?;
        let meaning = match value.get_ref() {
            DeValue::String(word) if word == "ok" => ExitMeaning::Success,
            DeValue::Table(table) => {
                let name = section.name_below(key);
                read_meaning(Section::new(section.text(), &name, value.span().start, table))?
            }
            value => {
                let code = read_error_code(value).map_err(|_| {
                    let expected = "`ok`, the word for an error, or { error = \"word\", … }".to_owned();
                    section.value_error(key, offset, expected)
                })?;
                ExitMeaning::Error { code, exit: ExitStatus::Upstream, message: None, hint: None }
            }
        };
        meanings.insert(code, meaning);
    }
    Ok(meanings)
}

fn read_meaning(mut section: Section<'_>) -> Result<ExitMeaning, ManifestError> {
    let meaning = ExitMeaning::Error {
        code: section.take_required("error", read_error_code)?,
        exit: section.take_optional("exit_code", read_exit)?.unwrap_or(ExitStatus::Upstream),
        message: section.take_optional("message", read_string)?,
        hint: section.take_optional("hint", read_string)?,
    };
    section.finish()?;
    Ok(meaning)
}

fn read_string(value: &DeValue<'_>) -> Result<String, ExpectedValue> {
    value.as_str().map(str::to_owned).ok_or_else(|| "a string".to_owned())
}

/// Parses a string that is not empty and has neither `=` nor control characters.
fn read_identifier(value: &DeValue<'_>) -> Result<String, ExpectedValue> {
    let is_name = |name: &&str| !name.is_empty() && !name.contains(|c: char| c == '=' || c.is_control());
    let name = value.as_str().filter(is_name);
    name.map(str::to_owned).ok_or_else(|| "a name".to_owned())
}

/// Parses an error code.
fn read_error_code(value: &DeValue<'_>) -> Result<String, ExpectedValue> {
    let is_word = |word: &&str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let word = value.as_str().filter(is_word);
    word.map(str::to_owned).ok_or_else(|| "a word of letters, digits, `_` and `-`".to_owned())
}

/// Parses a string, or a list of strings. No string may be empty.
fn read_strings(value: &DeValue<'_>) -> Result<Vec<String>, ExpectedValue> {
    let expected = || "a string that is not empty, or a list of such".to_owned();
    let full =
        |value: &DeValue<'_>| read_string(value).ok().filter(|text| !text.is_empty()).ok_or_else(expected);
    match value.as_array() {
        Some(items) => items.iter().map(|item| full(item.get_ref())).collect(),
        None => full(value).map(|text| vec![text]),
    }
}

/// Parses a pattern for the paths that a rule applies to. The paths start with `data`.
fn read_pattern(value: &DeValue<'_>) -> Result<FieldPattern, ExpectedValue> {
    let expected = || "the path of a field, like `data.items[*].title` or `data[\"odd key\"]`".to_owned();
    let path: FieldPattern = value.as_str().and_then(|text| text.parse().ok()).ok_or_else(expected)?;
    let is_in_data = path.steps().next() == FieldPattern::data().steps().next();
    is_in_data.then_some(path).ok_or_else(expected)
}

/// Parses a pattern for the paths in a payload that a limit applies to. The paths start at the root of the
/// payload.
fn read_payload_path(value: &DeValue<'_>) -> Result<FieldPattern, ExpectedValue> {
    let path = value.as_str().filter(|text| !text.is_empty()).and_then(|text| text.parse().ok());
    path.ok_or_else(|| "the path of a field, like `title`, `items[*].title` or `[*].title`".to_owned())
}

/// Parses the path of a list. It starts with `data`.
fn read_list_path(value: &DeValue<'_>) -> Result<FieldPath, ExpectedValue> {
    let expected = || "the path of a list, like `data` or `data.items`".to_owned();
    let path: FieldPath = value.as_str().and_then(|text| text.parse().ok()).ok_or_else(expected)?;
    let is_in_data = path.segments().first() == FieldPath::data().segments().first();
    is_in_data.then_some(path).ok_or_else(expected)
}

fn read_words(value: &DeValue<'_>) -> Result<Vec<String>, ExpectedValue> {
    let expected = "a list of words, like [\"git\", \"log\"]";
    value.as_array().ok_or(expected)?;
    read_strings(value).map_err(|_| expected.to_owned())
}

fn read_flags(value: &DeValue<'_>) -> Result<Vec<String>, ExpectedValue> {
    let is_flag = |flag: &String| flag.len() > 1 && flag.starts_with('-') && !flag.contains('=');
    let flags = read_strings(value).ok().filter(|flags| flags.iter().all(is_flag));
    flags.ok_or_else(|| "a flag, like \"--title\" or [\"-t\", \"--title\"]".to_owned())
}

fn as_integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

fn read_count(value: &DeValue<'_>) -> Result<u64, ExpectedValue> {
    let count = as_integer(value).and_then(|number| u64::try_from(number).ok());
    count.ok_or_else(|| "a whole number, 0 or more".to_owned())
}

fn read_bounded_number(value: &DeValue<'_>, least: u64, most: u64) -> Result<usize, ExpectedValue> {
    let count = read_count(value).ok().filter(|count| (least..=most).contains(count));
    let count = count.and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| format!("a whole number from {least} to {most}"))
}

fn read_position(value: &DeValue<'_>) -> Result<ArgumentSource, ExpectedValue> {
    let number = as_integer(value).filter(|number| *number != 0);
    let index = number.and_then(|number| usize::try_from(number.unsigned_abs() - 1).ok());
    match (number, index) {
        (Some(number), Some(index)) => Ok(ArgumentSource::Position { index, from_end: number < 0 }),
        _ => Err("a whole number, from 1 for the first or from -1 for the last".to_owned()),
    }
}

fn read_seconds(value: &DeValue<'_>) -> Result<Duration, ExpectedValue> {
    let written = match value {
        DeValue::Float(number) => number.as_str().replace('_', "").parse::<f64>().ok(),
        // A floating-point number represents all integers up to the maximum exactly.
        value => as_integer(value).and_then(|number| i32::try_from(number).ok()).map(f64::from),
    };
    let seconds = written.filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| format!("a number of seconds from 0 to {MAX_SECONDS}"))
}

fn read_flag(value: &DeValue<'_>) -> Result<bool, ExpectedValue> {
    value.as_bool().ok_or_else(|| "`true` or `false`".to_owned())
}

fn read_kind(value: &DeValue<'_>) -> Result<OutputKind, ExpectedValue> {
    match value.as_str() {
        Some("json") => Ok(OutputKind::Json),
        Some("jsonl") => Ok(OutputKind::Jsonl),
        Some("text") => Ok(OutputKind::Text),
        Some("auto") => Ok(OutputKind::Auto),
        _ => Err("one of `json`, `jsonl`, `text`, `auto`".to_owned()),
    }
}

fn read_exit(value: &DeValue<'_>) -> Result<ExitStatus, ExpectedValue> {
    match as_integer(value) {
        Some(1) => Ok(ExitStatus::Negative),
        Some(2) => Ok(ExitStatus::Usage),
        Some(3) => Ok(ExitStatus::Upstream),
        _ => Err("1 (the answer is no), 2 (invalid input, nothing done) or 3 (the tool failed)".to_owned()),
    }
}
