//! `endmark compact`: shortens a conversation. (CX-1 to CX-4)

use std::collections::BTreeMap;

use endmark_context::compact::{CompactionMode, CompactionReceipt as Made, NotCompacted, Policy, compact};
use endmark_envelope::Warning;
use endmark_failure::CommandError;
use endmark_text::replace_lone_surrogates;
use endmark_wire::conversation::Dialogue;
use endmark_wire::format::{self, WireFormat};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::arguments::compact::{Compact, ModeChoice};
use crate::batch::{self, LineAnswer, LineError};
use crate::context::Context;
use crate::input::Input;
use crate::view::answer::{Answer, Outcome, to_data};

/// Compacts the named conversation, or one per line in a batch.
pub(crate) fn run(context: &Context, arguments: &Compact) -> Result<Outcome, CommandError> {
    let settings = CompactSettings::new(arguments);
    settings.check().map_err(|message| compact_error(&message))?;
    let input = Input::open(arguments.file.as_deref(), context.terminal)?;
    if arguments.batch {
        return batch::run(input, |line| answer_line(line, &settings)).map(Outcome::Streamed);
    }
    let format = find_format(settings.format.as_deref()).map_err(|message| compact_error(&message))?;
    let body = input.read_bytes()?;
    let done = settings.compact(format, &body).map_err(|message| compact_error(&message))?;
    context.terminal.progress(&done.describe());
    let mut receipt = CompactReceipt::new(&done.outcome);
    let mut warnings = Vec::new();
    if done.outcome.not_compacted.is_none() && !arguments.no_store {
        match store_original(context, arguments, &body)? {
            Ok(handle) => {
                context.terminal.progress(&format!("The original: `endmark read {handle}`."));
                receipt.handle = Some(handle);
            }
            // The compacted conversation is useful even without the stored original.
            Err(error) => {
                warnings.push(Warning::notice("NOT_KEPT", format!("the original is not stored: {error}")));
            }
        }
    }
    let request = serde_json::from_str(&replace_lone_surrogates(&done.request)).map_err(|error| {
        compact_error(&format!("the conversation is nested too deeply for the response: {error}"))
    })?;
    let data = to_data(&CompactReport { request, receipt })?;
    let answer = Answer { max_response_bytes: usize::MAX, ..Answer::yes(data, done.request) };
    Ok(answer.with_warnings(warnings).into())
}

/// Stores the original and returns its handle. The inner error explains why it is not stored.
fn store_original(
    context: &Context,
    arguments: &Compact,
    body: &[u8],
) -> Result<Result<String, String>, CommandError> {
    let effective = context.load_configuration(arguments.store.overrides())?;
    let mut keeper = effective.settings.keeper();
    let kept = keeper.keep(body, "json")?;
    keeper.close();
    Ok(kept)
}

fn compact_error(message: &str) -> CommandError {
    CommandError::input("not_a_conversation", message, "See `endmark compact --help` and docs/compact.md.")
}

/// The requested settings, from the arguments or from a line of a batch.
#[derive(Debug, Clone, PartialEq)]
struct CompactSettings {
    format: Option<String>,
    mode: CompactionMode,
    trigger_tokens: Option<u64>,
    budget_tokens: Option<u64>,
    keep_share: Option<f64>,
    keep: Option<usize>,
}

/// A conversation after compaction, or unchanged.
#[derive(Debug)]
struct CompactionOutcome {
    request: String,
    outcome: Made,
}

impl CompactSettings {
    fn new(arguments: &Compact) -> Self {
        Self {
            format: arguments.format.clone(),
            mode: match arguments.mode {
                ModeChoice::Window => CompactionMode::Window,
                ModeChoice::Emergency => CompactionMode::Emergency,
            },
            trigger_tokens: arguments.trigger_tokens,
            budget_tokens: arguments.budget_tokens,
            keep_share: arguments.keep_share,
            keep: arguments.keep,
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.keep_share.is_some_and(|share| !(share > 0.0 && share < 1.0)) {
            return Err("the share to keep must be above 0 and below 1".to_owned());
        }
        if self.keep == Some(0) {
            return Err("at least 1 message must be kept: the newest one always stays".to_owned());
        }
        if self.budget_tokens == Some(0) {
            return Err("the budget must be more than 0 tokens".to_owned());
        }
        Ok(())
    }

    /// Returns the policy for a request with `fixed_tokens` tokens outside its conversation.
    fn policy(&self, fixed_tokens: u64) -> Policy {
        let default = match self.mode {
            CompactionMode::Window => Policy::window(count_tokens),
            CompactionMode::Emergency => Policy::emergency(count_tokens),
        };
        Policy {
            keep_turns: self.keep.unwrap_or(default.keep_turns),
            keep_share: self.keep_share,
            fixed_tokens,
            ..default.with_sizes(self.trigger_tokens, self.budget_tokens)
        }
    }

    fn compact(&self, format: &'static dyn WireFormat, body: &[u8]) -> Result<CompactionOutcome, String> {
        let dialogue = Dialogue::read(format, body).map_err(|error| error.to_string())?;
        let around = dialogue.surroundings();
        // Only emergency mode limits the whole request.
        let fixed =
            if self.mode == CompactionMode::Emergency { around.map(count_tokens).iter().sum() } else { 0 };
        let compacted = compact(dialogue.conversation(), &self.policy(fixed));
        let bytes = dialogue.edit(&compacted.edits).map_err(|error| error.to_string())?;
        let request = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        Ok(CompactionOutcome { request, outcome: compacted.receipt })
    }
}

impl CompactionOutcome {
    /// Returns the result as readable text.
    fn describe(&self) -> String {
        let made = &self.outcome;
        if let Some(why) = made.not_compacted {
            return format!("Nothing was compacted: {} ({} tokens).", why.reason(), made.tokens_before);
        }
        let over = if made.is_over_budget {
            "; this exceeds the budget, but nothing else may be removed"
        } else {
            ""
        };
        format!("Compacted: {} tokens became {}{over}.", made.tokens_before, made.tokens_after)
    }
}

/// Counts tokens with the vocabulary of current OpenAI models. Other vocabularies differ by a few percent for
/// code and English.
pub(super) fn count_tokens(text: &str) -> u64 {
    endmark_context::count::Family::O200k.tokens(text)
}

fn find_format(name: Option<&str>) -> Result<&'static dyn WireFormat, String> {
    let name = name.ok_or_else(|| "`for` is missing: the wire format of the conversation".to_owned())?;
    format::find_by_name(name).ok_or_else(|| {
        let known: Vec<&str> = format::FORMATS.iter().map(|format| format.name()).collect();
        format!("unknown wire format `{name}`: use {}", known.join(", "))
    })
}

/// One line of a batch.
#[derive(Deserialize)]
struct BatchLine<'l> {
    #[serde(default)]
    id: Value,
    #[serde(rename = "for")]
    format: Option<String>,
    mode: Option<String>,
    #[serde(borrow)]
    request: &'l RawValue,
    trigger_tokens: Option<u64>,
    budget_tokens: Option<u64>,
    keep: Option<usize>,
    keep_share: Option<f64>,
}

fn answer_line(line: &str, defaults: &CompactSettings) -> Result<LineAnswer, LineError> {
    let line: BatchLine<'_> = batch::parse_request(line, &[])?;
    let failed = |message: String| LineError { id: line.id.clone(), message };
    let mode = match line.mode.as_deref() {
        None => defaults.mode,
        Some("window") => CompactionMode::Window,
        Some("emergency") => CompactionMode::Emergency,
        Some(word) => return Err(failed(format!("unknown `mode`: `{word}`: use window or emergency"))),
    };
    // If a line sets one size, it inherits no other: its own trigger would conflict with a share from the
    // arguments.
    let has_sizes =
        line.trigger_tokens.is_some() || line.budget_tokens.is_some() || line.keep_share.is_some();
    let settings = CompactSettings {
        format: line.format.clone().or_else(|| defaults.format.clone()),
        mode,
        trigger_tokens: if has_sizes { line.trigger_tokens } else { defaults.trigger_tokens },
        budget_tokens: if has_sizes { line.budget_tokens } else { defaults.budget_tokens },
        keep_share: if has_sizes { line.keep_share } else { defaults.keep_share },
        keep: line.keep.or(defaults.keep),
    };
    settings.check().map_err(failed)?;
    let format = find_format(settings.format.as_deref()).map_err(failed)?;
    let done = settings.compact(format, line.request.get().as_bytes()).map_err(failed)?;
    let request = RawValue::from_string(done.request).map_err(|error| failed(error.to_string()))?;
    let answer = BatchLineReport {
        id: &line.id,
        compacted: done.outcome.not_compacted.is_none(),
        request: &request,
        receipt: CompactReceipt::new(&done.outcome),
    };
    let json = serde_json::to_string(&answer).map_err(|error| failed(error.to_string()))?;
    Ok(LineAnswer { json, is_yes: true })
}

#[derive(Serialize)]
struct BatchLineReport<'r> {
    id: &'r Value,
    compacted: bool,
    request: &'r RawValue,
    receipt: CompactReceipt,
}

/// Answer data: the compacted conversation. The field names are public.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CompactReport {
    /// The request, or the list of messages, in the form of the input.
    request: Value,
    receipt: CompactReceipt,
}

/// Describes the compaction. Token counts are estimates and cover only the history.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CompactReceipt {
    tokens_before: u64,
    tokens_after: u64,
    /// The number of omitted or shortened items, by kind.
    dropped: BTreeMap<&'static str, u64>,
    /// The handle of the stored original; null in a batch, if nothing was compacted, or if the original is
    /// not stored.
    handle: Option<String>,
    /// The number of shortened results among the newest messages.
    shortened_results: u64,
    /// Whether the result exceeds the budget although everything removable was removed.
    over_budget: bool,
    /// The number of anchors of each kind in the condensed part, and how many were kept.
    anchors: BTreeMap<&'static str, AnchorCounts>,
    /// Why the conversation was not compacted; null if it was.
    not_compacted: Option<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AnchorCounts {
    found: u64,
    kept: u64,
}

impl CompactReceipt {
    fn new(made: &Made) -> Self {
        let anchors = made
            .anchors
            .iter()
            .map(|(kind, (found, kept))| (kind.name(), AnchorCounts { found: *found, kept: *kept }));
        Self {
            tokens_before: made.tokens_before,
            tokens_after: made.tokens_after,
            dropped: made.dropped.clone(),
            handle: None,
            shortened_results: made.shortened_results,
            over_budget: made.is_over_budget,
            anchors: anchors.collect(),
            not_compacted: made.not_compacted.map(NotCompacted::reason),
        }
    }
}
