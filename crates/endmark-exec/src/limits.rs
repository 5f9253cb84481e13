//! Checks the input of a tool against the manifest's limits before the tool is started. (EN-4)

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use endmark_envelope::FieldPath;

use super::manifest::{ArgumentSource, Manifest};
use super::payload::{self, InvalidJson, OversizedValue, PayloadFault};
use super::words::{ArgumentValue, ParsedArguments, candidates_at};

/// The reason why a command does not match its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ManifestMismatch {
    /// The manifest is for another command.
    WrongCommand {
        /// The words with which the command should begin.
        expected: String,
    },
    TooLarge(OversizedValue),
    /// The manifest limits values in a payload, but the payload is not valid JSON.
    InvalidJson(InvalidJson),
}

/// Checks a command and its environment against a manifest. Returns the first mismatch as the error.
pub(crate) fn check_command(
    manifest: &Manifest,
    command: &[OsString],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(), ManifestMismatch> {
    let arguments = arguments_after_command(&manifest.command, command)
        .ok_or_else(|| ManifestMismatch::WrongCommand { expected: manifest.command.join(" ") })?;
    let typed = ParsedArguments::read(manifest, arguments);
    let mut is_limited = vec![false; arguments.len()];
    for limit in &manifest.arguments {
        let field = format!("arguments.{}", limit.name);
        let of_environment;
        let values: Vec<ArgumentValue<'_>> = match &limit.source {
            ArgumentSource::Position { index, from_end: false } => {
                candidates_at(typed.positions.iter(), *index)
            }
            ArgumentSource::Position { index, from_end: true } => {
                candidates_at(typed.positions.iter().rev(), *index)
            }
            ArgumentSource::Flags(flags) => {
                let is_meant = |(flag, _): &&(&[u8], ArgumentValue<'_>)| {
                    flags.iter().any(|known| known.as_bytes() == *flag)
                };
                typed.flags.iter().filter(is_meant).map(|(_, value)| *value).collect()
            }
            ArgumentSource::Environment(name) => {
                of_environment = variable(name).unwrap_or_default();
                vec![ArgumentValue { bytes: of_environment.as_bytes(), word: None }]
            }
        };
        for value in values {
            check_limit(&field, limit.max_bytes, value.bytes)?;
            if !limit.fields.is_empty() && !value.bytes.is_empty() {
                let place = FieldPath::root().key("arguments").key(limit.name.as_str());
                payload::check_payload(&limit.fields, &place, value.bytes)?;
            }
            if let Some(is_limited) = value.word.and_then(|word| is_limited.get_mut(word)) {
                *is_limited = true;
            }
        }
    }
    let Some(limit) = manifest.max_argument_bytes else { return Ok(()) };
    let others = arguments.iter().enumerate().zip(is_limited).filter(|(_, is_limited)| !is_limited);
    for ((index, argument), _) in others {
        check_limit(&format!("arguments[{index}]"), limit, argument.as_bytes())?;
    }
    Ok(())
}

fn check_limit(field: &str, limit: u64, value: &[u8]) -> Result<(), ManifestMismatch> {
    let actual = u64::try_from(value.len()).unwrap_or(u64::MAX);
    if actual <= limit {
        return Ok(());
    }
    Err(ManifestMismatch::TooLarge(OversizedValue { field: field.to_owned(), limit, actual, unit: "bytes" }))
}

impl From<PayloadFault> for ManifestMismatch {
    fn from(fault: PayloadFault) -> Self {
        match fault {
            PayloadFault::TooLarge(found) => Self::TooLarge(found),
            PayloadFault::InvalidJson(found) => Self::InvalidJson(found),
        }
    }
}

/// Whether a command begins with the words that the manifest requires.
pub(crate) fn matches_command(manifest: &Manifest, command: &[OsString]) -> bool {
    arguments_after_command(&manifest.command, command).is_some()
}

/// Whether one of these flags is in the command's arguments.
pub(crate) fn has_flag(manifest: &Manifest, command: &[OsString], flags: &[String]) -> bool {
    arguments_after_command(&manifest.command, command)
        .is_some_and(|arguments| ParsedArguments::read(manifest, arguments).has_flag(flags))
}

/// Returns the arguments after the words that the manifest requires. The program may be written with its
/// path.
fn arguments_after_command<'a>(expected: &[String], command: &'a [OsString]) -> Option<&'a [OsString]> {
    let Some((program, words)) = expected.split_first() else { return command.get(1..) };
    let (typed, arguments) = command.split_first()?;
    let is_program = typed.as_os_str() == OsStr::new(program)
        || std::path::Path::new(typed).file_name() == Some(OsStr::new(program));
    let begins = arguments.len() >= words.len()
        && words.iter().zip(arguments).all(|(word, argument)| argument.as_os_str() == OsStr::new(word));
    (is_program && begins).then(|| arguments.split_at(words.len()).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;

    const MANIFEST: &str = r#"
        command = ["notes", "add"]
        flags_with_value = ["--tag", "-n"]
        max_argument_bytes = 8
        [[arguments]]
        name = "title"
        flag = ["--title", "-t"]
        max_bytes = 3
        [[arguments]]
        name = "first"
        position = 1
        max_bytes = 2
        [[arguments]]
        name = "last"
        position = -1
        max_bytes = 4
        [[arguments]]
        name = "token"
        environment = "TOKEN"
        max_bytes = 1
    "#;

    fn overlong_value(command: &str, token: &str) -> Option<(String, u64, u64)> {
        let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        match check_command(&parse(MANIFEST).unwrap(), &command, |name| {
            assert_eq!(name, "TOKEN");
            Some(token.into())
        }) {
            Ok(()) => None,
            Err(ManifestMismatch::TooLarge(found)) => Some((found.field, found.limit, found.actual)),
            Err(ManifestMismatch::InvalidJson(found)) => Some((found.field.to_string(), 1, 0)),
            Err(ManifestMismatch::WrongCommand { expected }) => Some((expected, 0, 0)),
        }
    }

    #[test]
    fn a_value_is_measured_in_every_argument_style() {
        let too_large = |field: &str, limit, actual| Some((field.to_owned(), limit, actual));
        for (command, expected) in [
            ("notes add", None),
            ("/usr/bin/notes add --title abc ab abcd", None),
            ("notes add --title éé", too_large("arguments.title", 3, 4)),
            ("notes add --title=abcd", too_large("arguments.title", 3, 4)),
            ("notes add -t abcd", too_large("arguments.title", 3, 4)),
            ("notes add -tabcd", too_large("arguments.title", 3, 4)),
            ("notes add -t=ab", None),
            ("notes add -t=abc", too_large("arguments.title", 3, 4)),
            ("notes add --title abc --title abcd", too_large("arguments.title", 3, 4)),
            ("notes add abc", too_large("arguments.first", 2, 3)),
            ("notes add --tag abc ab", None),
            ("notes add -n 1 -v abc", too_large("arguments.first", 2, 3)),
            ("notes add -- --title=abcd", too_large("arguments.first", 2, 12)),
            ("notes add ab abcde", too_large("arguments.last", 4, 5)),
            ("notes add ab 123456789 abcd", too_large("arguments[1]", 8, 9)),
            ("notes add --whatever=1", too_large("arguments[0]", 8, 12)),
            ("notes add --title", None),
            // The value follows a prefix of the flag's name, in each possible form.
            ("notes add --titl ab", None),
            ("notes add --titl abcd", too_large("arguments.title", 3, 4)),
            ("notes add --titl=abcd", too_large("arguments.title", 3, 4)),
            ("notes add --t=abcd", too_large("arguments.title", 3, 4)),
            ("notes add --t abcd", too_large("arguments.title", 3, 4)),
            ("notes add --ta=abc", None),
            ("notes add --titles abcd", too_large("arguments.first", 2, 4)),
            ("notes add --titles=abcd", too_large("arguments[0]", 8, 13)),
            // Some tools write long flags with a single dash.
            ("notes add -title abcd", too_large("arguments.title", 3, 4)),
            ("notes add -title=abcd", too_large("arguments.title", 3, 4)),
            // A word may combine several short flags.
            ("notes add -vtabcd", too_large("arguments.title", 3, 4)),
            ("notes add -vt abcd", too_large("arguments.title", 3, 4)),
            ("notes add -ntabcd", None),
            // A word that may be the value of a flag may also be a position, and vice versa.
            ("notes add --ta abc", too_large("arguments.first", 2, 3)),
            ("notes add --ta ab abc", too_large("arguments.first", 2, 3)),
            ("notes add --ta ab a abcd", None),
            ("notes add a b --ta abcde", too_large("arguments.last", 4, 5)),
            // A word that may be a value may also be a flag, or the `--` that ends the flags.
            ("notes add --ta --title=abcd", too_large("arguments.title", 3, 4)),
            ("notes add --ta -- --title=abcd", too_large("arguments.title", 3, 4)),
            ("notes add --ta -- -abc", too_large("arguments.first", 2, 4)),
            ("notes rm", too_large("notes add", 0, 0)),
            ("git add", too_large("notes add", 0, 0)),
        ] {
            assert_eq!(overlong_value(command, ""), expected, "{command}");
        }
        assert_eq!(overlong_value("notes add", "xy"), too_large("arguments.token", 1, 2));
    }

    #[test]
    fn a_declared_flag_is_not_an_abbreviation_of_another() {
        let manifest = r#"
            command = ["notes"]
            flags_with_two_values = "--pair"
            flags_without_value = "--head"
            [[arguments]]
            name = "header"
            flag = "--header"
            max_bytes = 3
            [[arguments]]
            name = "first"
            position = 1
            max_bytes = 5
            [[output.with_flag]]
            flag = ["-r", "--raw"]
            kind = "text"
        "#;
        let manifest = parse(manifest).unwrap();
        let words = |command: &str| command.split(' ').map(OsString::from).collect::<Vec<_>>();
        let passes = |command: &str| check_command(&manifest, &words(command), |_| None).is_ok();
        assert!(passes("notes --head abcd"));
        assert!(!passes("notes --heade abcd"));
        assert!(passes("notes --pair name 123456 abcd"));
        assert!(!passes("notes --pair name value 123456"));
        let raw = |command: &str| has_flag(&manifest, &words(command), &["-r".into(), "--raw".into()]);
        for (command, expected) in [
            ("notes -r", true),
            ("notes -nr", true),
            ("notes --raw", true),
            ("notes --ra", true),
            ("notes --rawer", false),
            ("notes -- -r", false),
            ("notes --pair -r -r", false),
            ("notes --header -r", false),
            ("notes x", false),
        ] {
            assert_eq!(raw(command), expected, "{command}");
        }
    }

    #[test]
    fn empty_limits_allow_everything() {
        let command = [OsString::from("any"), OsString::from("x".repeat(100_000))];
        assert_eq!(check_command(&Manifest::default(), &command, |_| None), Ok(()));
    }
}
