//! Functions for the input of agents: capping of tool results, compaction of conversations, and token counts
//! with prices.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use endmark::context::cap::{CapError, FORMATS, Keep, Limits, ReadMethod, RequestedFormat, Unit};
use endmark::context::compact::{NotCompacted, Policy};
use endmark::context::count::{Family, request, text as count_text};
use endmark::context::read::{ExcerptError, PartContent, PartLocation, read_part, tool};
use endmark::context::{Models, Moment, Tokens, dollars};
use endmark::envelope::Warning;
use endmark::wire::conversation::Dialogue;
use endmark::wire::format::{self, WireFormat};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failure::{Failure, FailureKind};
use crate::options::{answer, find_input, input_text, parse, unknown_word};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CapOptions {
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    max_chars: Option<usize>,
    #[serde(default)]
    max_bytes: Option<usize>,
    #[serde(default)]
    max_tokens: Option<usize>,
    #[serde(default)]
    max_items: Option<usize>,
    #[serde(default)]
    keep: Option<String>,
    /// The handle under which the full value can be read.
    #[serde(default)]
    handle: Option<String>,
    /// Whether the agent has the tool `endmark_read`. Otherwise markers name the command.
    #[serde(default)]
    tool: bool,
}

#[derive(Serialize)]
struct Capped<'c> {
    text: &'c str,
    format: &'static str,
    is_cut: bool,
    warnings: &'c [Warning],
}

/// Counts the tokens of a text with the tokenizer of current OpenAI models.
fn tokens(text: &str) -> u64 {
    Family::O200k.tokens(text)
}

fn token_count(text: &str) -> usize {
    usize::try_from(tokens(text)).unwrap_or(usize::MAX)
}

fn build_limits(
    chars: Option<usize>,
    bytes: Option<usize>,
    most_tokens: Option<usize>,
) -> Result<Limits, Failure> {
    let default = Limits::default();
    let (most, unit) = match (chars, bytes, most_tokens) {
        (None, None, None) => (default.most, Unit::Chars),
        (Some(most), None, None) => (most, Unit::Chars),
        (None, Some(most), None) => (most, Unit::Bytes),
        (None, None, Some(most)) => (most, Unit::Tokens(token_count)),
        _ => {
            let message = "`max_chars`, `max_bytes` and `max_tokens` exclude one another";
            let names = ["max_chars", "max_bytes", "max_tokens"];
            return Err(Failure::invalid("invalid_limit", message).about(&names));
        }
    };
    Ok(Limits { most, unit, ..default })
}

fn cap_failure(error: &CapError) -> Failure {
    match error {
        CapError::Limits(_) => Failure::invalid("invalid_limit", error),
        CapError::NotUtf8 { .. } => Failure::invalid("not_utf8", error),
    }
}

pub(crate) fn cap(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (raw, options): (_, CapOptions) = (find_input(inputs, 0)?, parse(options)?);
    let limits = options.limits()?;
    let name = options.format.as_deref().unwrap_or("auto");
    let unknown = || format!("`format`: unknown format `{name}`: use {}", FORMATS.join(", "));
    let requested_format = RequestedFormat::from_name(name)
        .ok_or_else(|| Failure::invalid("invalid_format", unknown()).about(&["format"]))?;
    let capped =
        endmark::context::cap::cap(raw, requested_format, &limits).map_err(|error| cap_failure(&error))?;
    answer(&Capped {
        text: &capped.text,
        format: capped.format.name(),
        is_cut: capped.is_cut,
        warnings: &capped.warnings,
    })
}

impl CapOptions {
    fn limits(&self) -> Result<Limits, Failure> {
        let limits = build_limits(self.max_chars, self.max_bytes, self.max_tokens)?;
        let keep = match self.keep.as_deref() {
            None | Some("both") => Keep::Both,
            Some("head") => Keep::Head,
            Some("tail") => Keep::Tail,
            Some(word) => return Err(unknown_word("keep", word, "both, head or tail")),
        };
        Ok(Limits {
            keep,
            max_items: self.max_items.unwrap_or(limits.max_items),
            handle: self.handle.clone(),
            way: if self.tool { ReadMethod::Tool } else { ReadMethod::Command },
            ..limits
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadOptions<'o> {
    /// The arguments of a call of the tool `endmark_read`.
    #[serde(borrow)]
    arguments: &'o RawValue,
    #[serde(default)]
    max_chars: Option<usize>,
    #[serde(default)]
    max_bytes: Option<usize>,
    #[serde(default)]
    max_tokens: Option<usize>,
}

#[derive(Serialize, Default)]
struct Excerpt<'e> {
    text: Option<&'e str>,
    base64: Option<String>,
    for_model: String,
    page: Option<u64>,
    pages: Option<u64>,
    bytes: Option<[u64; 2]>,
    lines: Option<[u64; 2]>,
    matches: Option<u64>,
    warnings: &'e [Warning],
}

pub(crate) fn read(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (raw, options): (_, ReadOptions<'_>) = (find_input(inputs, 0)?, parse(options)?);
    let wanted = parse_wanted(options.arguments.get())?;
    let limits = build_limits(options.max_chars, options.max_bytes, options.max_tokens)?;
    limits.check().map_err(|error| Failure::invalid("invalid_limit", error))?;
    let limits = Limits { handle: Some(wanted.handle), way: ReadMethod::Tool, ..limits };
    let excerpt = read_part(raw, &wanted.part, &limits).map_err(|error| match &error {
        ExcerptError::Part(part) => Failure::invalid(part.code(), part),
        ExcerptError::Cap(cap) => cap_failure(cap),
    })?;
    let mut shown = Excerpt {
        for_model: excerpt.to_model_text(&limits).map_err(|error| cap_failure(&error))?,
        ..Excerpt::default()
    };
    match &excerpt.content {
        PartContent::Bytes(bytes) => match str::from_utf8(bytes) {
            Ok(text) => shown.text = Some(text),
            Err(_) => shown.base64 = Some(STANDARD.encode(bytes)),
        },
        PartContent::Capped(capped) => {
            (shown.text, shown.warnings) = (Some(capped.text.as_str()), capped.warnings.as_slice());
        }
    }
    match &excerpt.location {
        PartLocation::Page { page, pages, bytes } => {
            (shown.page, shown.pages) = (Some(*page), Some(*pages));
            shown.bytes = Some([bytes.start, bytes.end]);
        }
        PartLocation::Bytes(bytes) => shown.bytes = Some([bytes.start, bytes.end]),
        PartLocation::Lines(lines) => shown.lines = Some(*lines),
        PartLocation::Matches(matches) => shown.matches = Some(*matches),
        PartLocation::Value => {}
    }
    answer(&shown)
}

fn parse_wanted(arguments: &str) -> Result<tool::ReadRequest, Failure> {
    tool::ReadRequest::parse(arguments).map_err(|error| Failure::invalid("invalid_part", error))
}

#[derive(Serialize)]
struct ReadTool {
    name: &'static str,
    description: &'static str,
    schema: Box<RawValue>,
}

/// Returns the tool with which a model reads omitted parts of a result.
pub(crate) fn read_tool(_: &[&[u8]], _: &str) -> Result<String, Failure> {
    let schema = RawValue::from_string(tool::SCHEMA.to_owned());
    let schema = schema.map_err(|error| Failure::internal(&error.to_string()))?;
    answer(&ReadTool { name: tool::NAME, description: tool::DESCRIPTION, schema })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompactOptions {
    #[serde(rename = "for")]
    format: String,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    trigger_tokens: Option<u64>,
    #[serde(default)]
    budget_tokens: Option<u64>,
    #[serde(default)]
    keep: Option<usize>,
    #[serde(default)]
    keep_share: Option<f64>,
}

#[derive(Serialize)]
struct Compacted<'c> {
    request: &'c RawValue,
    receipt: Receipt,
}

#[derive(Serialize)]
struct Receipt {
    tokens_before: u64,
    tokens_after: u64,
    dropped: BTreeMap<&'static str, u64>,
    shortened_results: u64,
    over_budget: bool,
    anchors: BTreeMap<&'static str, Anchors>,
    not_compacted: Option<&'static str>,
}

#[derive(Serialize)]
struct Anchors {
    found: u64,
    kept: u64,
}

fn parse_wire(name: &str) -> Result<&'static dyn WireFormat, Failure> {
    format::find_by_name(name).ok_or_else(|| {
        let known: Vec<&str> = format::FORMATS.iter().map(|format| format.name()).collect();
        Failure::invalid(
            "invalid_format",
            format!("`for`: there is no wire format `{name}`: use {}", known.join(", ")),
        )
        .about(&["for"])
    })
}

fn not_a_conversation(error: impl ToString) -> Failure {
    Failure::new(FailureKind::Invalid, "not_a_conversation", error)
}

pub(crate) fn compact(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (body, options): (_, CompactOptions) = (find_input(inputs, 0)?, parse(options)?);
    let dialogue = Dialogue::read(parse_wire(&options.format)?, body).map_err(not_a_conversation)?;
    let invalid = |message: &str| {
        Err(Failure::invalid("invalid_options", message).about(&["keep_share", "keep", "budget_tokens"]))
    };
    if options.keep_share.is_some_and(|share| !(share > 0.0 && share < 1.0)) {
        return invalid("`keep_share` must be above 0 and below 1");
    }
    if options.keep == Some(0) || options.budget_tokens == Some(0) {
        return invalid("`keep` and `budget_tokens` must be at least 1");
    }
    let policy = match options.mode.as_deref() {
        None | Some("window") => Policy::window(tokens),
        Some("emergency") => {
            let fixed_tokens = dialogue.surroundings().map(tokens).iter().sum();
            Policy { fixed_tokens, ..Policy::emergency(tokens) }
        }
        Some(_) => return invalid("`mode` must be window or emergency"),
    };
    let policy = Policy {
        keep_turns: options.keep.unwrap_or(policy.keep_turns),
        keep_share: options.keep_share,
        ..policy.with_sizes(options.trigger_tokens, options.budget_tokens)
    };
    let compacted = endmark::context::compact::compact(dialogue.conversation(), &policy);
    let edited = dialogue.edit(&compacted.edits).map_err(not_a_conversation)?;
    let request = String::from_utf8(edited).map_err(not_a_conversation)?;
    let request = RawValue::from_string(request).map_err(not_a_conversation)?;
    let made = &compacted.receipt;
    let anchors = made.anchors.iter();
    let anchors = anchors.map(|(kind, (found, kept))| (kind.name(), Anchors { found: *found, kept: *kept }));
    let receipt = Receipt {
        tokens_before: made.tokens_before,
        tokens_after: made.tokens_after,
        dropped: made.dropped.clone(),
        shortened_results: made.shortened_results,
        over_budget: made.is_over_budget,
        anchors: anchors.collect(),
        not_compacted: made.not_compacted.map(NotCompacted::name),
    };
    answer(&Compacted { request: &request, receipt })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountOptions {
    model: String,
    #[serde(default, rename = "for")]
    format: Option<String>,
    /// Time for the price, in seconds since 1970; null means now.
    #[serde(default)]
    at: Option<u64>,
}

#[derive(Serialize)]
struct TokenCount {
    tokens: u64,
    exact: bool,
    counted_as: &'static str,
    usd: Option<String>,
    prices_as_of: &'static str,
}

pub(crate) fn count(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (counted, options): (_, CountOptions) = (input_text(inputs, 0)?, parse(options)?);
    let model = options.model.as_str();
    let count = match &options.format {
        None => count_text(counted, model),
        Some(name) => {
            Dialogue::read(parse_wire(name)?, counted.as_bytes()).map_err(not_a_conversation)?;
            request(counted, model).map_err(not_a_conversation)?
        }
    };
    let tokens = Tokens { prompt: count.tokens, ..Tokens::default() };
    let models = Models::builtin();
    let cost = models.find(model).and_then(|model| model.prices.cost(&tokens, price_time(options.at), None));
    answer(&TokenCount {
        tokens: count.tokens,
        exact: count.exact,
        counted_as: Family::of(model).name(),
        usd: cost.map(|cost| dollars(cost.nano_usd)),
        prices_as_of: models.as_of(),
    })
}

/// Returns this time in seconds since 1970, or the current time.
pub(crate) fn price_time(at: Option<u64>) -> Moment {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Moment::from_unix_seconds(at.unwrap_or_else(now))
}
