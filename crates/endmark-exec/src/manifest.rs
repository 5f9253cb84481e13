//! The contents of a manifest: the limits, the output and the exit codes of a tool. (EN-3, EN-4, EN-5)
//!
//! A manifest of these types is valid: all checks are made when it is parsed.

mod error;
mod read;
mod section;

use std::collections::BTreeMap;
use std::time::Duration;

use endmark_envelope::{DEFAULT_MAX_RESPONSE_BYTES, FieldPath, FieldPattern, FieldRules, Limit};
use endmark_failure::ExitStatus;

pub(crate) use read::parse;

/// Maximum size of a manifest in bytes.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The default time limit of a tool.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);
/// The default time between asking a tool to stop and killing it.
pub(crate) const DEFAULT_GRACE: Duration = Duration::from_secs(5);
/// The default number of bytes of standard output that are kept in memory: 4 MiB.
pub(crate) const DEFAULT_CAPTURED_BYTES: usize = 4 << 20;
/// The default number of bytes of standard error that are forwarded: 64 KiB.
pub(crate) const DEFAULT_FORWARDED_BYTES: u64 = 64 << 10;

/// The description of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The words with which a command must begin. If empty, any command is allowed.
    pub(crate) command: Vec<String>,
    /// Flags whose value is the next word. The value has no limit.
    pub(crate) flags_with_value: Vec<String>,
    /// Flags with two values, such as `--arg NAME VALUE`.
    pub(crate) flags_with_two_values: Vec<String>,
    /// Flags without a value. A listed flag does not count as a prefix of another flag.
    pub(crate) flags_without_value: Vec<String>,
    /// Maximum size in bytes of every argument that has no limit of its own.
    pub(crate) max_argument_bytes: Option<u64>,
    /// Limits of particular arguments.
    pub(crate) arguments: Vec<ArgumentLimit>,
    /// Maximum size of standard input in bytes. Without a limit, the tool inherits standard input.
    pub(crate) max_stdin_bytes: Option<u64>,
    /// Limits of values inside standard input. If there are any, standard input must be JSON.
    pub(crate) stdin_fields: Vec<PayloadLimit>,
    /// The time limit of the tool. `None` means unlimited.
    pub(crate) timeout: Option<Duration>,
    /// The time between asking the tool to stop and killing it.
    pub(crate) grace: Duration,
    /// The rules for standard output.
    pub(crate) output: OutputRules,
    /// Maximum bytes of standard error that are forwarded.
    pub(crate) max_stderr_bytes: u64,
    /// The meanings of exit codes. A code that is not listed means success if it is 0, and failure otherwise.
    pub(crate) exit_codes: BTreeMap<i32, ExitMeaning>,
}

/// The limit of one argument (EN-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentLimit {
    /// The name of the argument. Errors write it as `arguments.NAME`.
    pub(crate) name: String,
    pub(crate) source: ArgumentSource,
    pub(crate) max_bytes: u64,
    /// Limits of values inside the argument. If there are any, the argument must be JSON.
    pub(crate) fields: Vec<PayloadLimit>,
}

/// The limit of a field in a JSON payload. It applies at every path that matches (EN-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PayloadLimit {
    pub(crate) path: FieldPattern,
    pub(crate) limit: Limit,
}

/// Where the value of an argument is in the command or the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgumentSource {
    /// The word at this index among the words that are not flags or their values. If `from_end`, the index
    /// counts from the end.
    Position { index: usize, from_end: bool },
    /// The value of one of these flags: the next word, the text after `=`, or the text directly after a short
    /// flag.
    Flags(Vec<String>),
    /// The value of this environment variable.
    Environment(String),
}

/// The rules for the standard output of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputRules {
    pub(crate) kind: OutputKind,
    /// Whether an empty output means an empty list. If not, the kind of output decides what it means.
    pub(crate) empty_is_list: bool,
    /// Other kinds of output that certain flags cause. If several flags match, the last one decides.
    pub(crate) with_flag: Vec<OutputWithFlag>,
    /// Maximum bytes of the output that are kept in memory.
    pub(crate) max_captured_bytes: usize,
    /// Maximum size of the whole response in bytes (EN-5).
    pub(crate) max_response_bytes: usize,
    /// How to recognise that a field of the output was already truncated by the tool (EN-3).
    pub(crate) fields: FieldRules,
    /// The list that is divided into pages if it does not fit. Naming a list permits that the command runs
    /// again for each page.
    pub(crate) pages: Option<FieldPath>,
}

/// The rules for standard output if the command has one of these flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputWithFlag {
    pub(crate) flags: Vec<String>,
    pub(crate) kind: OutputKind,
    pub(crate) empty_is_list: bool,
}

/// The kind of standard output that a tool writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OutputKind {
    /// A single JSON value.
    Json,
    /// Several JSON values, on separate lines or directly after each other.
    Jsonl,
    /// Plain text.
    Text,
    /// JSON if the output is valid JSON, otherwise text.
    Auto,
}

/// The meaning of an exit code of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExitMeaning {
    /// The tool succeeded.
    Success,
    /// The tool failed.
    Error {
        /// The error code in the response.
        code: String,
        /// The exit code with which Endmark itself ends.
        exit: ExitStatus,
        message: Option<String>,
        hint: Option<String>,
    },
}

impl OutputRules {
    /// Returns the rules that apply to a command. `is_given` tests whether the command has one of the flags.
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
            max_stderr_bytes: DEFAULT_FORWARDED_BYTES,
            exit_codes: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests;
