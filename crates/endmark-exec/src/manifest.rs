//! What a manifest states about a tool: its limits, its output, its exit codes. (EN-3, EN-4, EN-5)
//!
//! A manifest is parsed once into these types, which need no further check.

mod error;
mod read;
mod section;

use std::collections::BTreeMap;
use std::time::Duration;

use endmark_envelope::{DEFAULT_MAX_RESPONSE_BYTES, FieldPath, FieldPattern, FieldRules, Limit};
use endmark_failure::Exit;

pub(crate) use read::parse;

/// The largest manifest, in bytes.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The default time limit of a tool.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);
/// The default time to end after a request to end.
pub(crate) const DEFAULT_GRACE: Duration = Duration::from_secs(5);
/// The default memory for a tool's standard output: 4 MiB.
pub(crate) const DEFAULT_CAPTURED_BYTES: usize = 4 << 20;
/// The default limit of standard error that is passed on: 64 KiB.
pub(crate) const DEFAULT_PASSED_BYTES: u64 = 64 << 10;

/// The description of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The words that a command must begin with; empty for any command.
    pub(crate) command: Vec<String>,
    /// Flags without a limit whose value is the next word.
    pub(crate) flags_with_value: Vec<String>,
    /// Flags that are followed by two words, such as `--arg NAME VALUE`.
    pub(crate) flags_with_two_values: Vec<String>,
    /// Flags without a value, so that none of them is taken for a prefix of another.
    pub(crate) flags_without_value: Vec<String>,
    /// The limit of each argument without its own limit, in bytes.
    pub(crate) max_argument_bytes: Option<u64>,
    /// The limits of arguments.
    pub(crate) arguments: Vec<ArgumentLimit>,
    /// The limit of standard input, in bytes. Without one, the tool inherits standard input.
    pub(crate) max_stdin_bytes: Option<u64>,
    /// The limits within standard input, which must then be JSON.
    pub(crate) stdin_fields: Vec<PayloadLimit>,
    /// How long the tool may run; `None` for no limit.
    pub(crate) timeout: Option<Duration>,
    /// How long it may take to end after a request to end.
    pub(crate) grace: Duration,
    /// Its output.
    pub(crate) output: OutputRules,
    /// Bytes of its standard error that are passed on.
    pub(crate) max_stderr_bytes: u64,
    /// The meanings of its exit codes. By default, 0 is success and any other code a failure.
    pub(crate) exit_codes: BTreeMap<i32, ExitMeaning>,
}

/// The limit of one argument (EN-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentLimit {
    /// Its name in an error: `arguments.NAME`.
    pub(crate) name: String,
    pub(crate) place: ArgumentPlace,
    pub(crate) max_bytes: u64,
    /// The limits within it, which must then be JSON.
    pub(crate) fields: Vec<PayloadLimit>,
}

/// The limit of one field of a JSON payload, at all paths that match (EN-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PayloadLimit {
    pub(crate) path: FieldPattern,
    pub(crate) limit: Limit,
}

/// Where an argument is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgumentPlace {
    /// After this many words that belong to no flag, counted from the end if `from_end`.
    Position { index: usize, from_end: bool },
    /// After one of these flags: as the next word, after `=`, or directly after a short flag.
    Flags(Vec<String>),
    /// In this environment variable.
    Environment(String),
}

/// The standard output of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputRules {
    pub(crate) kind: OutputKind,
    /// Whether empty output is an empty list. Otherwise it depends on the kind.
    pub(crate) empty_is_list: bool,
    /// The kinds of output with certain flags. The last given flag counts.
    pub(crate) with_flag: Vec<OutputWithFlag>,
    /// Bytes of the output that are held in memory.
    pub(crate) max_captured_bytes: usize,
    /// The limit of the whole answer, in bytes (EN-5).
    pub(crate) max_response_bytes: usize,
    /// How the output shows that a field was already cut (EN-3).
    pub(crate) fields: FieldRules,
    /// The list that is paged if it does not fit. Naming one permits running the command again for each page.
    pub(crate) pages: Option<FieldPath>,
}

/// The standard output of a tool with one of these flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputWithFlag {
    pub(crate) flags: Vec<String>,
    pub(crate) kind: OutputKind,
    pub(crate) empty_is_list: bool,
}

/// The kind of a tool's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OutputKind {
    /// One JSON value.
    Json,
    /// JSON values, on lines or one after the other.
    Jsonl,
    /// Text.
    Text,
    /// JSON if it is valid, otherwise text.
    Auto,
}

/// The meaning of an exit code of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExitMeaning {
    /// Success.
    Fine,
    /// Failure.
    Error {
        /// The code for programs.
        code: String,
        /// The exit code of Endmark itself.
        exit: Exit,
        message: Option<String>,
        hint: Option<String>,
    },
}

impl OutputRules {
    /// Returns the output rules with these flags.
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
