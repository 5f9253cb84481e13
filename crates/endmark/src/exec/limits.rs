//! Whether what a tool is given is within its limits; asked before it is started. (EN-4)

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::manifest::{ArgumentPlace, Manifest};

/// Something that is too large for its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooLarge {
    /// What it is: `arguments.title`, `arguments[2]`, `stdin`.
    pub(crate) field: String,
    /// The most bytes it may have.
    pub(crate) limit: u64,
    /// The bytes it has; of standard input, those that were read until it was too large.
    pub(crate) actual: u64,
}

/// What does not fit a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It is another command than the manifest is for.
    WrongCommand {
        /// The words it had to begin with.
        expected: String,
    },
    TooLarge(TooLarge),
}

/// Checks a command, and the environment it would get, against its manifest; the first misfit is the error.
pub(crate) fn check(
    manifest: &Manifest,
    command: &[OsString],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(), Misfit> {
    let arguments = own_arguments(&manifest.command, command)
        .ok_or_else(|| Misfit::WrongCommand { expected: manifest.command.join(" ") })?;
    let typed = Typed::read(manifest, arguments);
    let mut is_limited = vec![false; arguments.len()];
    for limit in &manifest.arguments {
        let field = format!("arguments.{}", limit.name);
        let of_environment;
        let values: Vec<Value<'_>> = match &limit.place {
            ArgumentPlace::Position { index, from_end: false } => at(typed.positions.iter(), *index),
            ArgumentPlace::Position { index, from_end: true } => at(typed.positions.iter().rev(), *index),
            ArgumentPlace::Flags(flags) => {
                let is_meant =
                    |(flag, _): &&(&[u8], Value<'_>)| flags.iter().any(|known| known.as_bytes() == *flag);
                typed.flags.iter().filter(is_meant).map(|(_, value)| *value).collect()
            }
            ArgumentPlace::Environment(name) => {
                of_environment = variable(name).unwrap_or_default();
                vec![Value { bytes: of_environment.as_bytes(), word: None }]
            }
        };
        for value in values {
            within(&field, limit.max_bytes, value.bytes)?;
            if let Some(is_limited) = value.word.and_then(|word| is_limited.get_mut(word)) {
                *is_limited = true;
            }
        }
    }
    let Some(limit) = manifest.max_argument_bytes else { return Ok(()) };
    let others = arguments.iter().enumerate().zip(is_limited).filter(|(_, is_limited)| !is_limited);
    for ((index, argument), _) in others {
        within(&format!("arguments[{index}]"), limit, argument.as_bytes())?;
    }
    Ok(())
}

fn within(field: &str, limit: u64, value: &[u8]) -> Result<(), Misfit> {
    let actual = u64::try_from(value.len()).unwrap_or(u64::MAX);
    if actual <= limit {
        return Ok(());
    }
    Err(Misfit::TooLarge(TooLarge { field: field.to_owned(), limit, actual }))
}

/// Whether a command begins with the words that a manifest is for.
pub(crate) fn is_for(manifest: &Manifest, command: &[OsString]) -> bool {
    own_arguments(&manifest.command, command).is_some()
}

/// What follows the words that a manifest is for; the program may be named with its path.
fn own_arguments<'a>(expected: &[String], command: &'a [OsString]) -> Option<&'a [OsString]> {
    let Some((program, words)) = expected.split_first() else { return command.get(1..) };
    let (typed, arguments) = command.split_first()?;
    let is_program = typed.as_os_str() == OsStr::new(program)
        || std::path::Path::new(typed).file_name() == Some(OsStr::new(program));
    let begins = arguments.len() >= words.len()
        && words.iter().zip(arguments).all(|(word, argument)| argument.as_os_str() == OsStr::new(word));
    (is_program && begins).then(|| arguments.split_at(words.len()).1)
}

/// The bytes of a value, and the word in which they stand; none where it may be no such value after all.
#[derive(Debug, Clone, Copy)]
struct Value<'a> {
    bytes: &'a [u8],
    word: Option<usize>,
}

/// A word that is a position, or that the word before it may have taken for its value.
#[derive(Debug, Clone, Copy)]
struct Position<'a> {
    value: Value<'a>,
    is_certain: bool,
}

/// What may stand at a position, counted in the direction of the iterator: those words before it that may be none move
/// it.
fn at<'a, 'b: 'a>(positions: impl Iterator<Item = &'a Position<'b>>, index: usize) -> Vec<Value<'b>> {
    let (mut least, mut most) = (0, 0);
    let mut found = Vec::new();
    for Position { value, is_certain } in positions {
        if (least..=most).contains(&index) {
            let word = value.word.filter(|_| *is_certain && least == most);
            found.push(Value { word, ..*value });
        }
        most += 1;
        least += usize::from(*is_certain);
    }
    found
}

/// Arguments, read as most tools read them: flags also by a beginning of their name, with one dash or two, and short
/// ones also together in one word. Where a word can be read in several ways, it is read in all of them: a limit holds
/// for whatever the tool may take for its value.
#[derive(Debug, Default)]
struct Typed<'a> {
    positions: Vec<Position<'a>>,
    /// Every flag that has a value, and every one that may.
    flags: Vec<(&'a [u8], Value<'a>)>,
}

impl<'a> Typed<'a> {
    fn read(manifest: &'a Manifest, arguments: &'a [OsString]) -> Self {
        let limited = manifest.arguments.iter().filter_map(|limit| match &limit.place {
            ArgumentPlace::Flags(flags) => Some(flags),
            _ => None,
        });
        let with_value: Vec<&[u8]> =
            limited.flatten().chain(&manifest.flags_with_value).map(String::as_bytes).collect();
        let mut typed = Self::default();
        let mut words = arguments.iter().enumerate().map(|(at, word)| (at, word.as_bytes())).peekable();
        // Whether the word before may have a value, and what `--` was: none, one, or possibly such a value.
        let (mut may_be_value, mut only_positions, mut maybe_only_positions) = (false, false, false);
        while let Some((at, word)) = words.next() {
            let value = |bytes| Value { bytes, word: Some(at) };
            let is_certain = !std::mem::take(&mut may_be_value);
            let is_flag = word.starts_with(b"-") && word != b"-";
            if only_positions || !is_flag || maybe_only_positions {
                let is_certain = is_certain && (only_positions || !is_flag);
                typed.positions.push(Position { value: value(word), is_certain });
            }
            if only_positions || !is_flag {
                continue;
            }
            if word == b"--" {
                maybe_only_positions = true;
                only_positions = is_certain;
            } else if with_value.contains(&word) {
                typed.flags.extend(words.next().map(|(at, bytes)| (word, Value { bytes, word: Some(at) })));
            } else {
                for (flag, bytes) in meant(&with_value, word) {
                    if let Some(bytes) = bytes {
                        // What begins with a short flag in some other place may be another flag's value.
                        let is_its_place = word.starts_with(b"--") || word.starts_with(flag);
                        typed.flags.push((flag, Value { bytes, word: Some(at).filter(|_| is_its_place) }));
                    } else if let Some((_, bytes)) = words.peek() {
                        typed.flags.push((flag, Value { bytes, word: None }));
                        may_be_value = true;
                    }
                }
            }
        }
        typed
    }
}

/// The flags that a word may mean which is none of them exactly, and what of the word would be the value; none where that
/// is the next word.
fn meant<'a>(with_value: &[&'a [u8]], word: &'a [u8]) -> Vec<(&'a [u8], Option<&'a [u8]>)> {
    let (name, behind) = match memchr::memchr(b'=', word) {
        Some(equals) => (&word[..equals], Some(&word[equals + 1..])),
        None => (word, None),
    };
    let is_single = !word.starts_with(b"--");
    let beginning = bare(name);
    // One letter behind one dash is a short flag, and no beginning.
    let can_be_long = beginning.len() > usize::from(is_single);
    let long = with_value.iter().filter(|flag| can_be_long && flag.len() > 2);
    let mut meant: Vec<_> = match long.clone().find(|flag| **flag == name) {
        Some(exactly) => vec![(*exactly, behind)],
        None => long.filter(|flag| bare(flag).starts_with(beginning)).map(|flag| (*flag, behind)).collect(),
    };
    // The first short flag that has a value takes what follows it, the `=` too, or else the next word.
    let short = |letter: &u8| with_value.iter().find(|flag| matches!(flag, [b'-', known] if known == letter));
    let mut letters =
        word.iter().enumerate().skip(1).take_while(|(_, letter)| is_single && letter.is_ascii_alphanumeric());
    if let Some((at, flag)) = letters.find_map(|(at, letter)| Some((at, *short(letter)?))) {
        meant.push((flag, word.get(at + 1..).filter(|rest| !rest.is_empty())));
    }
    meant
}

/// A flag's name without its dashes.
fn bare(flag: &[u8]) -> &[u8] {
    let dashes = flag.iter().take_while(|byte| **byte == b'-').count();
    &flag[dashes..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::manifest::parse;

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

    fn misfit(command: &str, token: &str) -> Option<(String, u64, u64)> {
        let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        match check(&parse(MANIFEST).unwrap(), &command, |name| {
            assert_eq!(name, "TOKEN");
            Some(token.into())
        }) {
            Ok(()) => None,
            Err(Misfit::TooLarge(found)) => Some((found.field, found.limit, found.actual)),
            Err(Misfit::WrongCommand { expected }) => Some((expected, 0, 0)),
        }
    }

    #[test]
    fn a_value_is_found_wherever_tools_take_it_and_its_bytes_are_counted() {
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
            // By a beginning of the name, in every form of the value.
            ("notes add --titl ab", None),
            ("notes add --titl abcd", too_large("arguments.title", 3, 4)),
            ("notes add --titl=abcd", too_large("arguments.title", 3, 4)),
            ("notes add --t=abcd", too_large("arguments.title", 3, 4)),
            ("notes add --t abcd", too_large("arguments.title", 3, 4)),
            ("notes add --ta=abc", None),
            ("notes add --titles abcd", too_large("arguments.first", 2, 4)),
            ("notes add --titles=abcd", too_large("arguments[0]", 8, 13)),
            // With one dash, as some tools have long flags.
            ("notes add -title abcd", too_large("arguments.title", 3, 4)),
            ("notes add -title=abcd", too_large("arguments.title", 3, 4)),
            // Among other short flags.
            ("notes add -vtabcd", too_large("arguments.title", 3, 4)),
            ("notes add -vt abcd", too_large("arguments.title", 3, 4)),
            ("notes add -ntabcd", None),
            // What may be a flag's value may be a position, and the other way round.
            ("notes add --ta abc", too_large("arguments.first", 2, 3)),
            ("notes add --ta ab abc", too_large("arguments.first", 2, 3)),
            ("notes add --ta ab a abcd", None),
            ("notes add a b --ta abcde", too_large("arguments.last", 4, 5)),
            // What may be its value may be a flag, and the end of flags, and nothing behind it is one.
            ("notes add --ta --title=abcd", too_large("arguments.title", 3, 4)),
            ("notes add --ta -- --title=abcd", too_large("arguments.title", 3, 4)),
            ("notes add --ta -- -abc", too_large("arguments.first", 2, 4)),
            ("notes rm", too_large("notes add", 0, 0)),
            ("git add", too_large("notes add", 0, 0)),
        ] {
            assert_eq!(misfit(command, ""), expected, "{command}");
        }
        assert_eq!(misfit("notes add", "xy"), too_large("arguments.token", 1, 2));
    }

    #[test]
    fn no_limits_let_everything_pass() {
        let command = [OsString::from("any"), OsString::from("x".repeat(100_000))];
        assert_eq!(check(&Manifest::default(), &command, |_| None), Ok(()));
    }
}
