//! What a manifest defines for a tool: its limits, its output and its exit codes. (EN-3, EN-4, EN-5)
//!
//! Parsing a manifest into these types includes all checks.

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
/// The default grace period between the request to stop and the kill.
pub(crate) const DEFAULT_GRACE: Duration = Duration::from_secs(5);
/// The default memory for captured standard output: 4 MiB.
pub(crate) const DEFAULT_CAPTURED_BYTES: usize = 4 << 20;
/// The default limit of forwarded standard error: 64 KiB.
pub(crate) const DEFAULT_PASSED_BYTES: u64 = 64 << 10;

/// The description of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The words with which a command must begin. Empty means any command.
    pub(crate) command: Vec<String>,
    /// Flags whose value is the next word and has no limit.
    pub(crate) flags_with_value: Vec<String>,
    /// Flags with two values, such as `--arg NAME VALUE`.
    pub(crate) flags_with_two_values: Vec<String>,
    /// Flags without a value. They are listed so that they are not taken for prefixes of other flags.
    pub(crate) flags_without_value: Vec<String>,
    /// The limit in bytes of each argument that has no specific limit.
    pub(crate) max_argument_bytes: Option<u64>,
    /// Limits of specific arguments.
    pub(crate) arguments: Vec<ArgumentLimit>,
    /// The limit of standard input in bytes. Without a limit, the tool inherits standard input.
    pub(crate) max_stdin_bytes: Option<u64>,
    /// The limits of values inside standard input, which must then be JSON.
    pub(crate) stdin_fields: Vec<PayloadLimit>,
    /// The time limit; `None` means unlimited.
    pub(crate) timeout: Option<Duration>,
    /// The grace period between the request to stop and the kill.
    pub(crate) grace: Duration,
    /// The rules for standard output.
    pub(crate) output: OutputRules,
    /// Bytes of standard error that are forwarded.
    pub(crate) max_stderr_bytes: u64,
    /// The meanings of its exit codes. By default, 0 is success and any other code a failure.
    pub(crate) exit_codes: BTreeMap<i32, ExitMeaning>,
}

/// The limit of one argument (EN-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentLimit {
    /// The name of the argument in an error: `arguments.NAME`.
    pub(crate) name: String,
    pub(crate) place: ArgumentPlace,
    pub(crate) max_bytes: u64,
    /// The limits of values inside the argument, which must then be JSON.
    pub(crate) fields: Vec<PayloadLimit>,
}

/// The limit of a field of a JSON payload, at every path that matches (EN-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PayloadLimit {
    pub(crate) path: FieldPattern,
    pub(crate) limit: Limit,
}

/// Where an argument is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgumentPlace {
    /// After `index` words that do not belong to a flag, counted from the end if `from_end`.
    Position { index: usize, from_end: bool },
    /// After one of these flags: the next word, the text after `=`, or the text directly after a short flag.
    Flags(Vec<String>),
    /// In this environment variable.
    Environment(String),
}

/// The rules for a tool's standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputRules {
    pub(crate) kind: OutputKind,
    /// Whether empty output means an empty list. Otherwise the kind of output decides.
    pub(crate) empty_is_list: bool,
    /// Different kinds of output for certain flags. The last matching flag decides.
    pub(crate) with_flag: Vec<OutputWithFlag>,
    /// Bytes of the output that are kept in memory.
    pub(crate) max_captured_bytes: usize,
    /// The limit of the whole response in bytes (EN-5).
    pub(crate) max_response_bytes: usize,
    /// How the output indicates that a field was already truncated (EN-3).
    pub(crate) fields: FieldRules,
    /// The list that is paged if it does not fit. Naming it permits running the command again for each page.
    pub(crate) pages: Option<FieldPath>,
}

/// The rules for standard output if one of these flags is given.
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
    /// Several JSON values, on separate lines or directly after each other.
    Jsonl,
    /// Plain text.
    Text,
    /// JSON if it is valid, otherwise text.
    Auto,
}

/// The meaning of an exit code of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExitMeaning {
    /// Success.
    Success,
    /// Failure.
    Error {
        /// The error code for programs.
        code: String,
        /// The exit code of Endmark itself.
        exit: Exit,
        message: Option<String>,
        hint: Option<String>,
    },
}

impl OutputRules {
    /// Returns the output rules that apply with the given flags.
    pub(crate) fn with_flags(self, is_given: impl Fn(&[String]) -> bool) -> Self {
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
