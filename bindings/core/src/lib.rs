//! The functions of Endmark for other languages: bytes and JSON in, JSON out.
//!
//! The package of a language only converts types, and calls [`call`] or an [`Object`]. All packages must
//! return the same bytes, which the shared cases in `bindings/cases.json` check.
//!
//! ```
//! let answer = endmark_bindings::call("detect", &[br#"{"a": [1, 2"#], r#"{"format": "json"}"#)?;
//! assert!(answer.contains(r#""verdict":"truncated""#) && answer.contains(r#""truncation_index":10"#));
//! # Ok::<(), endmark_bindings::Failure>(())
//! ```

mod context;
mod detect;
mod envelope;
mod failure;
mod findings;
mod guard;
mod meter;
mod offsets;
mod options;
mod recover;
mod runs;
mod stitch;
mod stop;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

pub use failure::{Failure, FailureKind};

use meter::SessionMeter;
use recover::Recovery;
use runs::AgentRun;

/// The SQL that creates the table for cut replies. It can run twice.
pub const LOG_TABLE: &str = include_str!("partial_completion_log.sql");

/// The SQL that creates the table for full values of capped results. It can run twice.
pub const OUTPUTS_TABLE: &str = "CREATE TABLE IF NOT EXISTS outputs_of_tools (handle TEXT PRIMARY KEY, value BLOB NOT NULL, used REAL NOT NULL DEFAULT (julianday('now')))";
/// The SQL that stores a value under a handle. Both are parameters.
pub const KEEP_OUTPUT: &str = "INSERT OR REPLACE INTO outputs_of_tools (handle, value) VALUES (?, ?)";
/// The SQL that removes the least recently used values above a total size in bytes, except for the value of
/// one handle. The size and the handle are parameters.
pub const REMOVE_OLDEST_OUTPUTS: &str = "DELETE FROM outputs_of_tools WHERE handle IN (SELECT handle FROM (SELECT handle, sum(length(value)) OVER (ORDER BY used DESC, rowid DESC) AS upto FROM outputs_of_tools) WHERE upto > ?) AND handle <> ?";
/// The SQL that returns the value of a handle. It does not use `RETURNING`, which the SQLite of Python may
/// lack.
pub const READ_OUTPUT: &str = "SELECT value FROM outputs_of_tools WHERE handle = ?";
/// The SQL that records a use of the value of a handle.
pub const USE_OUTPUT: &str = "UPDATE outputs_of_tools SET used = julianday('now') WHERE handle = ?";

/// A function, which gets inputs and options, and returns JSON.
type Function = fn(&[&[u8]], &str) -> Result<String, Failure>;

/// All functions, each with its name and the names of its inputs. The last input may be repeated.
const FUNCTIONS: [(&str, &[&str], Function); 23] = [
    ("detect", &["text"], detect::detect),
    ("complete", &["text"], detect::complete),
    ("build_resume_prompt", &["last_valid_token"], stitch::build_resume_prompt),
    ("merge_chunks", &["initial", "continuation"], stitch::merge_chunks),
    ("stitch", &["parts"], stitch::stitch),
    ("stop_meaning", &[], stop::stop_meaning),
    ("ask_failure", &[], stop::ask_failure),
    ("cap", &["value"], context::cap),
    ("read", &["value"], context::read),
    ("read_tool", &[], context::read_tool),
    ("compact", &["request"], context::compact),
    ("count", &["text"], context::count),
    ("guard", &["artifact"], guard::guard),
    ("findings_protocol", &[], findings::protocol),
    ("findings_estimate", &[], findings::estimate),
    ("findings_fit", &["draft"], findings::fit),
    ("findings_check", &["transcript"], findings::check),
    ("findings_plan", &["results"], findings::plan),
    ("findings_merge", &["results"], findings::merge),
    ("envelope", &["data"], envelope::envelope),
    ("check_limits", &[], envelope::check_limits),
    ("check_names", &[], options::check_names),
    ("token_budget", &[], meter::token_budget),
];

/// Returns the names of the inputs of a function or a class, for messages.
pub fn input_names(function: &str) -> &'static [&'static str] {
    let found = FUNCTIONS.iter().find(|(name, ..)| *name == function);
    found.map_or(&["text"], |(_, names, _)| names)
}

/// Calls the function with this name. `options` is a JSON object, and the answer is JSON. It never panics.
///
/// # Errors
/// [`Failure`] for an unknown name, invalid options, an error of the function itself, or a bug.
pub fn call(function: &str, inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let Some((_, names, function)) = FUNCTIONS.iter().find(|(name, ..)| *name == function) else {
        return Err(Failure::invalid("unknown_function", format!("there is no function `{function}`")));
    };
    catch_panic(|| function(inputs, options)).map_err(|failure| failure.with_input_name(names))
}

/// An object with state: the recovery of one reply, the meter of one session, or a run of an agent. It
/// handles one call at a time; calls from other threads wait.
pub struct Object(Mutex<ObjectKind>);

enum ObjectKind {
    Recovery(Box<Recovery>),
    Meter(Box<SessionMeter>),
    Run(Box<AgentRun>),
}

impl Object {
    /// Creates an object of this class: `recovery`, `meter` or `agent_run`.
    ///
    /// # Errors
    /// The same as those of [`call`].
    pub fn new(class: &str, inputs: &[&[u8]], options: &str) -> Result<Self, Failure> {
        catch_panic(|| match class {
            "recovery" => Ok(ObjectKind::Recovery(Box::new(Recovery::new(inputs, options)?))),
            "meter" => Ok(ObjectKind::Meter(Box::new(SessionMeter::new(options)?))),
            "agent_run" => Ok(ObjectKind::Run(Box::new(AgentRun::new(options)?))),
            _ => Err(Failure::invalid("unknown_class", format!("there is no class `{class}`"))),
        })
        .map(|kind| Self(Mutex::new(kind)))
        .map_err(|failure| failure.with_input_name(input_names(class)))
    }

    /// Calls the method with this name.
    ///
    /// # Errors
    /// The same as those of [`call`].
    pub fn call(&self, method: &str, inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
        // A panic during a call was already reported, and left a state that later calls can read.
        let mut kind = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        catch_panic(|| match &mut *kind {
            ObjectKind::Recovery(recovery) => recovery.call(method, inputs, options),
            ObjectKind::Meter(meter) => meter.call(method, options),
            ObjectKind::Run(run) => run.call(method, inputs, options),
        })
        .map_err(|failure| failure.with_input_name(input_names(method)))
    }
}

/// Converts a panic to a failure. A panic is a bug in Endmark, and must not end the process of its user.
fn catch_panic<T>(function: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(|panic| {
        let panic_message = panic.downcast_ref::<&str>().map(|panic_message| (*panic_message).to_owned());
        let panic_message =
            panic_message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure::internal(&panic_message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_that_requests_a_report() {
        let failure = catch_panic::<()>(|| std::panic::panic_any("index out of range")).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Bug);
        assert!(failure.message.contains("index out of range") && failure.message.contains("report"));
    }

    #[test]
    fn an_unknown_name_is_a_failure() {
        assert_eq!(call("guess", &[], "{}").unwrap_err().code, "unknown_function");
        assert_eq!(
            Object::new("guess", &[], "{}").err().map(|failure| failure.code),
            Some("unknown_class".into())
        );
    }
}
