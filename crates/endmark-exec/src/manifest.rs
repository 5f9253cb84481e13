//! What a manifest says about a tool: its limits, its output, how it ends. (EN-3, EN-4, EN-5)
//!
//! A manifest is parsed once into these types; what is here needs no further check.

mod error;
mod read;
mod section;

use std::collections::BTreeMap;
use std::time::Duration;

use endmark_envelope::{DEFAULT_MAX_RESPONSE_BYTES, FieldPath, FieldPattern, FieldRules, Limit};
use endmark_failure::Exit;

pub(crate) use read::parse;

/// The most bytes a manifest itself may have.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// How long a tool may run where its manifest does not say.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);
/// How long a tool that is asked to end may take where its manifest does not say.
pub(crate) const DEFAULT_GRACE: Duration = Duration::from_secs(5);
/// How much of a tool's standard output is held in memory where its manifest does not say: 4 MiB.
pub(crate) const DEFAULT_CAPTURED_BYTES: usize = 4 << 20;
/// How much of a tool's standard error is passed on where its manifest does not say: 64 KiB.
pub(crate) const DEFAULT_PASSED_BYTES: u64 = 64 << 10;

/// What is known about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The words that a command has to begin with; none where any command will do.
    pub(crate) command: Vec<String>,
    /// The flags whose value is the next word, besides those that have a limit.
    pub(crate) flags_with_value: Vec<String>,
    /// The flags that are followed by two words, as `--arg NAME VALUE`.
    pub(crate) flags_with_two_values: Vec<String>,
    /// The flags that have no value, so that none of them is taken for the beginning of another.
    pub(crate) flags_without_value: Vec<String>,
    /// The limit of every argument that has none of its own, in bytes.
    pub(crate) max_argument_bytes: Option<u64>,
    /// The limits of arguments.
    pub(crate) arguments: Vec<ArgumentLimit>,
    /// The limit of standard input, in bytes; where there is none, it is the tool's as it is.
    pub(crate) max_stdin_bytes: Option<u64>,
    /// The limits of what is in standard input, which is JSON where there are any.
    pub(crate) stdin_fields: Vec<PayloadLimit>,
    /// How long the tool may run; none: for ever.
    pub(crate) timeout: Option<Duration>,
    /// How long it may take to end once it is asked to.
    pub(crate) grace: Duration,
    /// What its output is.
    pub(crate) output: OutputRules,
    /// How much of its standard error is passed on, in bytes.
    pub(crate) max_stderr_bytes: u64,
    /// What its exit codes mean; those not here: 0 fine, all others a failure.
    pub(crate) exit_codes: BTreeMap<i32, ExitMeaning>,
}

/// The limit of one argument (EN-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentLimit {
    /// What it is called in an error: `arguments.NAME`.
    pub(crate) name: String,
    pub(crate) place: ArgumentPlace,
    pub(crate) max_bytes: u64,
    /// The limits of what is in it, which is JSON where there are any.
    pub(crate) fields: Vec<PayloadLimit>,
}

/// The limit of one field of a JSON payload, wherever its path leads (EN-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PayloadLimit {
    pub(crate) path: FieldPattern,
    pub(crate) limit: Limit,
}

/// Where an argument stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgumentPlace {
    /// So many words that belong to no flag stand before it; counted from the end if it is from there.
    Position { index: usize, from_end: bool },
    /// Behind one of these flags, as the next word, behind `=`, or behind a short flag at once.
    Flags(Vec<String>),
    /// In this environment variable.
    Environment(String),
}

/// What a tool's standard output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputRules {
    pub(crate) kind: OutputKind,
    /// What nothing at all is: an empty list, else what it is by its kind.
    pub(crate) empty_is_list: bool,
    /// What it is where certain flags are given; the last that is counts.
    pub(crate) with_flag: Vec<OutputWithFlag>,
    /// How much of it is held in memory, in bytes.
    pub(crate) max_captured_bytes: usize,
    /// How large the whole answer may be, in bytes (EN-5).
    pub(crate) max_response_bytes: usize,
    /// How it shows that a field was cut before it came here (EN-3).
    pub(crate) fields: FieldRules,
    /// The list that is paged where it does not fit; saying so allows the command to be run again for each page.
    pub(crate) pages: Option<FieldPath>,
}

/// What a tool's standard output is where one of these flags is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputWithFlag {
    pub(crate) flags: Vec<String>,
    pub(crate) kind: OutputKind,
    pub(crate) empty_is_list: bool,
}

/// What the bytes on a tool's standard output are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OutputKind {
    /// One JSON value.
    Json,
    /// JSON values, on lines or one after the other.
    Jsonl,
    /// Text.
    Text,
    /// JSON if it is, else text.
    Auto,
}

/// What an exit code of the tool means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExitMeaning {
    /// All went well.
    Fine,
    /// It did not.
    Error {
        /// The word for programs.
        code: String,
        /// How Endmark itself ends.
        exit: Exit,
        message: Option<String>,
        hint: Option<String>,
    },
}

impl OutputRules {
    /// What the output is where these flags are given.
    pub(crate) fn given(self, is_given: impl Fn(&[String]) -> bool) -> Self {
        let found = self.with_flag.iter().rfind(|output| is_given(&output.flags));
        match found.map(|output| (output.kind, output.empty_is_list)) {
            Some((kind, empty_is_list)) => Self { kind, empty_is_list, ..self },
            None => self,
        }
    }
}

impl Default for OutputRules {
    fn default() -> Self {
        Self {
            kind: OutputKind::Auto,
            empty_is_list: false,
            with_flag: Vec::new(),
            max_captured_bytes: DEFAULT_CAPTURED_BYTES,
            max_response_bytes: DEFAULT_MAX_RESPONSE_BYTES,
            fields: FieldRules::default(),
            pages: None,
        }
    }
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            flags_with_value: Vec::new(),
            flags_with_two_values: Vec::new(),
            flags_without_value: Vec::new(),
            max_argument_bytes: None,
            arguments: Vec::new(),
            max_stdin_bytes: None,
            stdin_fields: Vec::new(),
            timeout: Some(DEFAULT_TIMEOUT),
            grace: DEFAULT_GRACE,
            output: OutputRules::default(),
            max_stderr_bytes: DEFAULT_PASSED_BYTES,
            exit_codes: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests;
