//! Caps tool results in a request. The same result always gives the same bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use endmark_context::cap::{CappedValue, Limits, ReadMethod, RequestedFormat, Unit, cap};
use endmark_context::conversation::{Edit, PartPosition, ToolResult};
use endmark_store::{Handle, StoreError, sha256_hex};
use endmark_wire::conversation::Dialogue;
use endmark_wire::request::Request;

use super::{READ_TOOL, ShapingContext};
use crate::settings::CapSettings;
use crate::work::{self, COUNTING_COST_FACTOR};

/// Maximum total size of remembered capped results. When it is exceeded, the oldest are forgotten, and are
/// capped again if needed.
const MAX_REMEMBERED_BYTES: usize = 32 * 1024 * 1024;

/// How often the use of a result is recorded in the store. Results that are unused for an hour may be removed.
const USE_RECORD_INTERVAL: Duration = Duration::from_mins(10);

/// Capped results by owner and content.
#[derive(Default)]
pub(super) struct CapMemory(Mutex<RememberedResults>);

#[derive(Default)]
struct RememberedResults {
    outcomes: HashMap<String, (CapOutcome, Instant)>,
    order: VecDeque<String>,
    bytes: usize,
}

/// The outcome of capping a result.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CapOutcome {
    /// The result stays unchanged.
    Unchanged,
    Capped(CappedText),
}

/// The capped text of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CappedText {
    text: Arc<str>,
    /// The handle under which the full result can be read.
    handle: Option<Handle>,
}

/// A request whose large results are capped.
pub(crate) struct CappedRequest {
    pub(crate) request: Request,
    /// The number of capped results.
    pub(crate) results: usize,
    /// Whether the request offers the model the tool for reading omitted parts.
    pub(crate) offers_read_tool: bool,
}

/// A result that may be too large.
struct LargeResult {
    place: PartPosition,
    text: String,
}

/// Caps the results in a request that are too large. Returns `None` if no result is too large. If the store
/// fails, the capped results have no handle.
pub(crate) async fn cap_results(subject: &ShapingContext<'_>, request: &Request) -> Option<CappedRequest> {
    let settings = subject.settings.cap;
    // A smaller request cannot contain a result that is too large.
    let min_body_bytes = settings.max_chars.min(settings.max_items);
    if !settings.enabled || request.body().len() <= min_body_bytes || !request.may_have_results() {
        return None;
    }
    let large = large_results(request, settings);
    if large.is_empty() {
        return None;
    }
    let read_method =
        if settings.tool && request.may_offer(&READ_TOOL) { ReadMethod::Tool } else { ReadMethod::Command };
    let (mut edits, mut is_any_kept) = (Vec::new(), false);
    for result in large {
        // Box the future, because few requests need it but every request would reserve memory for it.
        if let CapOutcome::Capped(shown) = Box::pin(cap_or_recall(subject, &result.text, read_method)).await {
            is_any_kept |= shown.handle.is_some();
            edits.push(Edit::SetText { place: result.place, text: shown.text.as_ref().to_owned() });
        }
    }
    if edits.is_empty() {
        return None;
    }
    let results = edits.len();
    let request = apply_edits(subject, request, &edits)?;
    let offering =
        (read_method == ReadMethod::Tool && is_any_kept).then(|| request.with_tool(&READ_TOOL)).flatten();
    Some(CappedRequest {
        offers_read_tool: offering.is_some(),
        request: offering.unwrap_or(request),
        results,
    })
}

/// Returns the results that may exceed the limits of characters or items, judging by their size in bytes.
fn large_results(request: &Request, settings: CapSettings) -> Vec<LargeResult> {
    let Ok(dialogue) = Dialogue::read(request.format(), request.body()) else { return Vec::new() };
    let mut large = Vec::new();
    for (turn, turn_content) in dialogue.conversation().turns.iter().enumerate() {
        for (part, content) in turn_content.parts.iter().enumerate() {
            // A result with images can be changed only together with the images.
            let can_change = |result: &&ToolResult<'_>| result.media.is_empty() && !result.is_fixed;
            let Some(result) = content.result().filter(can_change) else { continue };
            if is_large(&result.text, settings) {
                large.push(LargeResult { place: PartPosition { turn, part }, text: result.text.to_string() });
            }
        }
    }
    large
}

/// Whether a text may exceed the limits on characters or items. A comma or a line break follows each item
/// except the last.
fn is_large(text: &str, settings: CapSettings) -> bool {
    let separators = || text.bytes().filter(|byte| matches!(byte, b',' | b'\n')).count();
    text.len() > settings.max_chars || (text.len() > settings.max_items && separators() >= settings.max_items)
}

fn apply_edits(subject: &ShapingContext<'_>, request: &Request, edits: &[Edit]) -> Option<Request> {
    let dialogue = Dialogue::read(request.format(), request.body()).ok()?;
    let body = dialogue
        .edit(edits)
        .inspect_err(|error| tracing::error!(request = subject.id, %error, "results cannot be capped"))
        .ok()?;
    Request::parse(request.format(), &body, request.address()).ok()
}

async fn cap_or_recall(subject: &ShapingContext<'_>, text: &str, way: ReadMethod) -> CapOutcome {
    let settings = subject.settings.cap;
    let digest = sha256_hex(text.as_bytes());
    // The text depends on the limits.
    let name = format!("{digest}-{}-{}", settings.max_chars, settings.max_items);
    let known = format!("{}/{name}/{way:?}", subject.owner());
    if let Some((known, is_stale)) = subject.shaping.results.get(&known) {
        if let CapOutcome::Capped(CappedText { handle: Some(handle), .. }) = &known
            && is_stale
            && let Err(error) = subject.wait_for_store(subject.store.touch_output(handle)).await
        {
            tracing::warn!(request = subject.id, %error, "the use of a result cannot be recorded");
        }
        return known;
    }
    let outcome =
        cap_result(subject, text, &name, way).await.map_or(CapOutcome::Unchanged, CapOutcome::Capped);
    subject.shaping.results.remember(known, outcome.clone());
    outcome
}

/// Caps a result, or returns `None` if it is not too large.
async fn cap_result(
    subject: &ShapingContext<'_>,
    text: &str,
    name: &str,
    way: ReadMethod,
) -> Option<CappedText> {
    let settings = subject.settings.cap;
    // All gateways derive the same handle, so a conversation has the same bytes on each of them.
    let handle = Handle::derive("result", &subject.owner(), name);
    let limits = Limits {
        most: settings.max_chars,
        unit: Unit::Chars,
        max_items: settings.max_items,
        handle: Some(handle.to_string()),
        way,
        ..Limits::default()
    };
    let large = work::enter_pool_if_large(text.len().saturating_mul(COUNTING_COST_FACTOR)).await;
    let capped = cap(text.as_bytes(), RequestedFormat::Auto, &limits);
    drop(large);
    let capped = match capped {
        Ok(capped) if capped.is_cut => capped,
        Ok(_) => return None,
        Err(error) => {
            tracing::warn!(request = subject.id, %error, "a result cannot be capped: it is forwarded unchanged");
            return None;
        }
    };
    let (capped, kept) = store_capped(subject, capped, &handle, text).await;
    for warning in &capped.warnings {
        let (code, message, handle) = (&warning.code, &warning.message, warning.handle.as_deref());
        tracing::info!(request = subject.id, code, message, handle, "the result of a tool is capped");
    }
    Some(CappedText { text: capped.text.into(), handle: kept })
}

/// Stores the full value under its handle, unless it is already stored. The capped text contains the handle only if
/// the value is stored.
async fn store_capped(
    subject: &ShapingContext<'_>,
    capped: CappedValue,
    handle: &Handle,
    text: &str,
) -> (CappedValue, Option<Handle>) {
    match store_value(subject, handle, text, capped.format.name()).await {
        Ok(()) => (capped, Some(handle.clone())),
        Err(error) => {
            tracing::error!(request = subject.id, %error, "the full result of a tool is not stored");
            (capped.without_handle(handle.as_str()), None)
        }
    }
}

async fn store_value(
    subject: &ShapingContext<'_>,
    handle: &Handle,
    text: &str,
    format: &str,
) -> Result<(), StoreError> {
    if subject.wait_for_store(subject.store.reuse_output(handle)).await? {
        return Ok(());
    }
    subject.wait_for_store(subject.store_output(handle, text.as_bytes(), format)).await?;
    subject.wait_for_store(subject.store.record_output_session(handle, subject.session)).await
}

impl CapOutcome {
    fn bytes(&self) -> usize {
        if let Self::Capped(shown) = self { shown.text.len() } else { 0 }
    }
}

impl CapMemory {
    /// Returns the outcome for a result, and whether to record its use in the store.
    fn get(&self, known: &str) -> Option<(CapOutcome, bool)> {
        let mut remembered = self.lock();
        let (became, noted) = remembered.outcomes.get_mut(known)?;
        let is_stale = noted.elapsed() >= USE_RECORD_INTERVAL;
        if is_stale {
            *noted = Instant::now();
        }
        Some((became.clone(), is_stale))
    }

    fn remember(&self, known: String, became: CapOutcome) {
        let mut remembered = self.lock();
        remembered.bytes += known.len() + became.bytes();
        if remembered.outcomes.insert(known.clone(), (became, Instant::now())).is_none() {
            remembered.order.push_back(known);
        }
        while remembered.bytes > MAX_REMEMBERED_BYTES {
            let Some(oldest) = remembered.order.pop_front() else { break };
            let freed =
                oldest.len() + remembered.outcomes.remove(&oldest).map_or(0, |(gone, _)| gone.bytes());
            remembered.bytes = remembered.bytes.saturating_sub(freed);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RememberedResults> {
        // The memory is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_scan_misses_no_oversized_result() {
        let settings = CapSettings { max_chars: 300, max_items: 3, ..CapSettings::default() };
        for (text, expected) in [
            ("[1,2,3]", false),
            ("[1,2,3,4]", true),
            ("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", true),
            ("short", false),
        ] {
            assert_eq!(is_large(text, settings), expected, "{text}");
        }
        assert!(is_large(&"x".repeat(301), settings));
        assert!(!is_large(&"x".repeat(300), settings));
    }

    #[test]
    fn the_oldest_entry_is_evicted() {
        let memory = CapMemory::default();
        let large = CappedText { text: "x".repeat(MAX_REMEMBERED_BYTES / 2).into(), handle: None };
        for name in ["a", "b", "c"] {
            memory.remember(name.to_owned(), CapOutcome::Capped(large.clone()));
        }
        assert_eq!(memory.get("a"), None);
        assert_eq!(memory.get("c"), Some((CapOutcome::Capped(large), false)));
        memory.remember("d".to_owned(), CapOutcome::Unchanged);
        assert_eq!(memory.get("d"), Some((CapOutcome::Unchanged, false)));
    }
}
