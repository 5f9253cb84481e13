//! Splits a command line into flags, their values and positions, as tools do. (EN-4)

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::manifest::{ArgumentSource, Manifest};

/// The bytes of a possible value. `word` is the index of the word. It is `None` if the word may have another
/// meaning.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArgumentValue<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) word: Option<usize>,
}

/// A word that is a position or may be the value of the word before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PositionalWord<'a> {
    value: ArgumentValue<'a>,
    is_certain: bool,
}

/// Returns the words that may be at a position, counted in the direction of the iterator. A preceding word
/// may or may not count as a position, so several words can be candidates.
pub(super) fn candidates_at<'a, 'b: 'a>(
    positions: impl Iterator<Item = &'a PositionalWord<'b>>,
    index: usize,
) -> Vec<ArgumentValue<'b>> {
    let (mut least, mut most) = (0, 0);
    let mut found = Vec::new();
    for PositionalWord { value, is_certain } in positions {
        if (least..=most).contains(&index) {
            let word = value.word.filter(|_| *is_certain && least == most);
            found.push(ArgumentValue { word, ..*value });
        }
        most += 1;
        least += usize::from(*is_certain);
    }
    found
}

/// The words of a command line, parsed as most tools do.
///
/// A flag may be abbreviated to a prefix, with one dash or two, and a word may combine several short flags. A
/// word with several possible meanings counts for all of them, so a limit applies to everything that the tool
/// may use as the value. A flag in the manifest has only the meaning that the manifest defines.
#[derive(Debug, Default)]
pub(super) struct ParsedArguments<'a> {
    pub(super) positions: Vec<PositionalWord<'a>>,
    /// All flags that have a value or may have one, with the value.
    pub(super) flags: Vec<(&'a [u8], ArgumentValue<'a>)>,
    /// All words that are flags, with or without a value.
    words: Vec<&'a [u8]>,
    known_flags: KnownFlags<'a>,
}

/// The flags in a manifest, by the number of their values.
#[derive(Debug, Default)]
struct KnownFlags<'a> {
    with_value: Vec<&'a [u8]>,
    with_two_values: Vec<&'a [u8]>,
    without_value: Vec<&'a [u8]>,
}

impl<'a> KnownFlags<'a> {
    fn new(manifest: &'a Manifest) -> Self {
        let limited = manifest.arguments.iter().filter_map(|limit| match &limit.source {
            ArgumentSource::Flags(flags) => Some(flags),
            _ => None,
        });
        let with_value = limited.flatten().chain(&manifest.flags_with_value);
        let output_flags = manifest.output.with_flag.iter().flat_map(|output| &output.flags);
        let without_value = manifest.flags_without_value.iter().chain(output_flags);
        let bytes = |flag: &'a String| flag.as_bytes();
        Self {
            with_value: with_value.map(bytes).collect(),
            with_two_values: manifest.flags_with_two_values.iter().map(bytes).collect(),
            without_value: without_value.map(bytes).collect(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &&'a [u8]> {
        self.with_value.iter().chain(&self.with_two_values).chain(&self.without_value)
    }

    /// Whether a word may mean this flag: by its full name, as a letter in a word of combined flags, or by a
    /// prefix of its name that no other flag has.
    fn matches(&self, word: &[u8], flag: &[u8]) -> bool {
        let name = word.split(|byte| *byte == b'=').next().unwrap_or(word);
        if name == flag {
            return true;
        }
        if self.iter().any(|known| *known == name) {
            return false;
        }
        if let [b'-', letter] = flag {
            let is_long = name.starts_with(b"--");
            let letters = name.iter().skip(1).take_while(|letter| !is_long && letter.is_ascii_alphanumeric());
            let takes_rest = |letter: &u8| self.with_value.contains(&[b'-', *letter].as_slice());
            let mut before_value = letters.take_while(|letter| !takes_rest(letter));
            return before_value.any(|found| found == letter);
        }
        let is_beginning =
            |known: &[u8]| name.starts_with(b"--") && name.len() > 2 && known.starts_with(name);
        is_beginning(flag) && self.iter().filter(|known| is_beginning(known)).count() == 1
    }
}

impl<'a> ParsedArguments<'a> {
    pub(super) fn read(manifest: &'a Manifest, arguments: &'a [OsString]) -> Self {
        let mut typed = Self { known_flags: KnownFlags::new(manifest), ..Self::default() };
        let mut words = arguments.iter().enumerate().map(|(at, word)| (at, word.as_bytes())).peekable();
        // Whether the previous word may have this word as its value, and whether `--` has occurred or
        // possibly occurred.
        let (mut may_be_value, mut only_positions, mut maybe_only_positions) = (false, false, false);
        while let Some((at, word)) = words.next() {
            let value = |bytes| ArgumentValue { bytes, word: Some(at) };
            let is_certain = !std::mem::take(&mut may_be_value);
            let is_flag = word.starts_with(b"-") && word != b"-";
            if only_positions || !is_flag || maybe_only_positions {
                let is_certain = is_certain && (only_positions || !is_flag);
                typed.positions.push(PositionalWord { value: value(word), is_certain });
            }
            if only_positions || !is_flag {
                continue;
            }
            if word == b"--" {
                maybe_only_positions = true;
                only_positions = is_certain;
                continue;
            }
            typed.words.push(word);
            if typed.known_flags.with_value.contains(&word) {
                typed
                    .flags
                    .extend(words.next().map(|(at, bytes)| (word, ArgumentValue { bytes, word: Some(at) })));
            } else if typed.known_flags.with_two_values.contains(&word) {
                words.by_ref().take(2).for_each(drop);
            } else if !typed.known_flags.without_value.contains(&word) {
                for (flag, bytes) in possible_flags(&typed.known_flags.with_value, word) {
                    if let Some(bytes) = bytes {
                        // A short flag within a combined word may instead be the value of another flag.
                        let is_its_place = word.starts_with(b"--") || word.starts_with(flag);
                        typed
                            .flags
                            .push((flag, ArgumentValue { bytes, word: Some(at).filter(|_| is_its_place) }));
                    } else if let Some((_, bytes)) = words.peek() {
                        typed.flags.push((flag, ArgumentValue { bytes, word: None }));
                        may_be_value = true;
                    }
                }
            }
        }
        typed
    }

    /// Whether the command has one of these flags.
    pub(super) fn has_flag(&self, flags: &[String]) -> bool {
        flags.iter().any(|flag| self.words.iter().any(|word| self.known_flags.matches(word, flag.as_bytes())))
    }
}

/// Returns the flags that a word may mean if it is not exactly a flag. Each is returned with the part of the
/// word that would be its value, or with `None` if the value would be the next word.
fn possible_flags<'a>(with_value: &[&'a [u8]], word: &'a [u8]) -> Vec<(&'a [u8], Option<&'a [u8]>)> {
    let (name, behind) = match memchr::memchr(b'=', word) {
        Some(equals) => (&word[..equals], Some(&word[equals + 1..])),
        None => (word, None),
    };
    let is_single = !word.starts_with(b"--");
    let beginning = without_dashes(name);
    // A single letter after a single dash is a short flag, and never an abbreviation.
    let can_be_long = beginning.len() > usize::from(is_single);
    let long = with_value.iter().filter(|flag| can_be_long && flag.len() > 2);
    let mut candidates: Vec<_> = match long.clone().find(|flag| **flag == name) {
        Some(exactly) => vec![(*exactly, behind)],
        None => long
            .filter(|flag| without_dashes(flag).starts_with(beginning))
            .map(|flag| (*flag, behind))
            .collect(),
    };
    // The first short flag with a value uses the rest of the word as its value, including a `=`. If nothing
    // is left, it uses the next word.
    let short = |letter: &u8| with_value.iter().find(|flag| matches!(flag, [b'-', known] if known == letter));
    let mut letters =
        word.iter().enumerate().skip(1).take_while(|(_, letter)| is_single && letter.is_ascii_alphanumeric());
    if let Some((at, flag)) = letters.find_map(|(at, letter)| Some((at, *short(letter)?))) {
        candidates.push((flag, word.get(at + 1..).filter(|rest| !rest.is_empty())));
    }
    candidates
}

/// Returns the name of a flag without its dashes.
fn without_dashes(flag: &[u8]) -> &[u8] {
    let dashes = flag.iter().take_while(|byte| **byte == b'-').count();
    &flag[dashes..]
}
