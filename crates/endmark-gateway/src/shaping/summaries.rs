//! Condenses the older part of a conversation. The summary is stored under the prefix of the conversation that it
//! replaces. Therefore later requests contain the same bytes, even after a restart.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use endmark_context::compact::{
    CompactionMode, CompactionProgress, ModelNarrative, NotCompacted, Policy, compact_further, question,
};
use endmark_context::count::Family;
use endmark_store::{CondensedSession, Handle, KeptSummary, sha256_hex};
use endmark_wire::conversation::Dialogue;
use endmark_wire::request::Request;

use super::ShapingContext;
use super::summariser::Summariser;
use super::tokens::{TokenCounts, token_counter};
use crate::work::{self, COUNTING_COST_FACTOR, LARGE_BYTES, LargeInput};

/// Tokens reserved for the reply if a request has no limit and the model's window also contains the reply.
const ASSUMED_REPLY_TOKENS: u64 = 4_096;

/// Size of the history after an emergency compaction, in tenths of the model's window.
const TARGET_WINDOW_TENTHS: u64 = 6;

/// Estimates tend to be too high, so a request up to this percentage of the window may still fit. The provider
/// decides, and a rejection is handled.
const SLACK_PERCENT: u64 = 115;

/// The fraction of a rejected request's history that is kept if the window is unknown.
const KEPT_HISTORY_FRACTION: f64 = 0.5;

/// Size in bytes below which requests fit into every model's window.
const MIN_REQUEST_BYTES: usize = 4 * 1024;

/// Minimum number of turns. With fewer, there are no turns between the first and the newest ones.
const MIN_TURNS: usize = 3;

/// The disclosed facts about the summary of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) mode: &'static str,
    /// Tokens of the history before and after condensing.
    pub(crate) tokens_before: u64,
    pub(crate) tokens_after: u64,
    /// The handle of the request from which the summary was made.
    pub(crate) handle: Option<String>,
    /// The model that wrote the summary, if it was just called.
    pub(crate) by_model: Option<String>,
}

/// A request whose beginning was condensed.
pub(crate) struct CondensedRequest {
    pub(crate) request: Request,
    pub(crate) summary: Summary,
}

/// The result of condensing a conversation.
#[derive(Default)]
pub(crate) struct CompactionResult {
    /// The condensed request. `None` if the request stays unchanged.
    pub(crate) condensed: Option<CondensedRequest>,
    /// Why the conversation cannot be condensed further, although the request is too long.
    pub(crate) stop_reason: Option<NotCompacted>,
}

/// Condenses a conversation if its size requires it, or if it was condensed before. `has_window` states
/// whether the sliding window is enabled.
pub(crate) async fn compact(
    subject: &ShapingContext<'_>,
    request: &Request,
    window: bool,
) -> CompactionResult {
    let Some(policies) = due_policies(subject, request, window).await else {
        return CompactionResult::default();
    };
    let _large = count_in_pool(request).await;
    let Some(known) = hash_turns(request) else { return CompactionResult::default() };
    let memory = &subject.shaping.summaries;
    let mut progress = memory.progress(subject, &known);
    let had_stopped = progress.values().any(|progress| progress.stop_reason().is_some());
    // Box the future, because few requests need it.
    let condensed = Box::pin(condense(subject, request, &known, policies, &mut progress)).await;
    let stopped = progress.values().find_map(CompactionProgress::stop_reason);
    if let Some(why) = stopped.filter(|_| !had_stopped) {
        let why = why.reason();
        tracing::warn!(
            request = subject.id,
            why,
            "a conversation is still too long, but cannot be condensed further"
        );
    }
    memory.note_progress(subject, &known, progress);
    CompactionResult { condensed, stop_reason: stopped }
}

/// Counts a request's tokens, on another thread if it is long or if the vocabulary must be loaded first.
async fn count_in_pool(request: &Request) -> LargeInput {
    let bytes = request.body().len().saturating_mul(COUNTING_COST_FACTOR);
    let is_ready = Family::of(&request.view().model).is_ready();
    work::enter_pool_if_large(if is_ready { bytes } else { bytes.max(LARGE_BYTES) }).await
}

/// Returns the policies that may require condensing. Returns `None` for a conversation that is small or that the
/// provider keeps.
async fn due_policies(subject: &ShapingContext<'_>, request: &Request, window: bool) -> Option<Vec<Policy>> {
    let settings = subject.settings.compact;
    let bytes = request.body().len();
    if bytes < MIN_REQUEST_BYTES || !(window || settings.emergency.enabled) {
        return None;
    }
    let limit = settings.emergency.enabled.then(|| limit_tokens(subject, request));
    // A token has at least one byte.
    let window_trigger = window.then_some(settings.window.trigger_tokens);
    let least = window_trigger.into_iter().chain(limit).min()?;
    let known = subject.shaping.summaries.smallest_condensed_bytes(subject).await;
    if (bytes as u64) < least.min(known) {
        return None;
    }
    if let Some(why) = request.provider_storage_field() {
        tracing::debug!(
            request = subject.id,
            why,
            "the provider keeps the conversation: it is not compacted"
        );
        return None;
    }
    let count = token_counter(&request.view().model);
    let known_window = window_tokens(subject, request).unwrap_or(u64::MAX);
    let policies = [
        window_trigger.map(|_| Policy {
            trigger_tokens: settings.window.trigger_tokens,
            budget_tokens: settings.window.budget_tokens,
            keep_turns: settings.window.keep_turns,
            ..Policy::window(count)
        }),
        limit.map(|limit| Policy {
            trigger_tokens: limit,
            budget_tokens: (limit.min(known_window) / 10).saturating_mul(TARGET_WINDOW_TENTHS),
            keep_turns: settings.emergency.keep_turns,
            ..Policy::emergency(count)
        }),
    ];
    Some(policies.into_iter().flatten().collect())
}

/// Condenses a conversation that its provider rejected as too long. Returns `None` if that is impossible.
/// `request` must not contain a summary yet.
pub(crate) async fn compact_refused(
    subject: &ShapingContext<'_>,
    request: &Request,
) -> Option<CondensedRequest> {
    let settings = subject.settings.compact.emergency;
    if !settings.enabled || request.provider_storage_field().is_some() {
        return None;
    }
    let count = token_counter(&request.view().model);
    let _large = count_in_pool(request).await;
    let counted = count(&String::from_utf8_lossy(request.body()));
    subject.shaping.summaries.note_rejection(subject.upstream, &request.view().model, counted);
    let window = window_tokens(subject, request).filter(|window| *window < counted);
    let policy = Policy {
        trigger_tokens: 0,
        budget_tokens: window.unwrap_or(counted) / 10 * TARGET_WINDOW_TENTHS,
        keep_turns: settings.keep_turns,
        keep_share: window.is_none().then_some(KEPT_HISTORY_FRACTION),
        ..Policy::emergency(count)
    };
    let known = hash_turns(request)?;
    // Ignore earlier failed attempts, because the provider's refusal is stronger evidence.
    Box::pin(condense(subject, request, &known, vec![policy], &mut HashMap::new())).await
}

/// Returns the size from which a request is too long, in tokens: the setting, but at most the model's window.
fn limit_tokens(subject: &ShapingContext<'_>, request: &Request) -> u64 {
    let most = subject.settings.compact.emergency.trigger_tokens;
    let refused = subject.shaping.summaries.learned_limit(subject.upstream, &request.view().model);
    let is_exact = Family::of(&request.view().model).is_exact();
    let slack = if is_exact { 100 } else { SLACK_PERCENT };
    let known = window_tokens(subject, request).map(|window| window.saturating_mul(slack) / 100);
    [Some(most), refused, known].into_iter().flatten().min().unwrap_or(most)
}

/// Returns the tokens that the model's window leaves for a request, if the window is known.
fn window_tokens(subject: &ShapingContext<'_>, request: &Request) -> Option<u64> {
    let view = request.view();
    let model = subject.settings.models().find(&view.model)?;
    let window =
        model.context_tokens.map(|window| window.saturating_sub(view.limit.unwrap_or(ASSUMED_REPLY_TOKENS)));
    match (model.max_input_tokens, window) {
        (Some(input), Some(window)) => Some(input.min(window.max(1))),
        (input, window) => input.or(window),
    }
}

/// The conversation as received, with hashes of its turns.
pub(super) struct HashedTurns {
    pub(super) turns: usize,
    /// The hash of the conversation up to and including each turn.
    pub(super) digests: Vec<String>,
}

async fn condense(
    subject: &ShapingContext<'_>,
    request: &Request,
    known: &HashedTurns,
    policies: Vec<Policy>,
    progress: &mut HashMap<CompactionMode, CompactionProgress>,
) -> Option<CondensedRequest> {
    let owner = subject.owner();
    let mut before = match subject
        .wait_for_store(subject.store.summaries(&owner, known.digests.first()?))
        .await
    {
        Ok(all) => longest_summary(all, known),
        Err(error) => {
            tracing::error!(request = subject.id, %error, "the store cannot be read: earlier summaries of the conversation are unknown");
            None
        }
    };
    let narrator = Narrator::Own(subject.summariser_limit(request));
    let counted = &subject.shaping.summaries.token_counts;
    let earlier = progress.clone();
    let mut made =
        condense_further(subject.id, request, before.as_ref(), &policies, counted, &narrator, progress);
    if made.is_some()
        && let Some(elsewhere) = fetch_from_others(subject, &owner, known, before.as_ref()).await
    {
        before = Some(elsewhere);
        *progress = earlier;
        made =
            condense_further(subject.id, request, before.as_ref(), &policies, counted, &narrator, progress);
    }
    let Some(mut made) = made else {
        let before = before?;
        let (request, summary) = (with_summary(request, &before)?, Summary::new(&before));
        return Some(CondensedRequest { request, summary });
    };
    if let Some(question) = made.question.take() {
        let narrated = summarise_by_model(subject, request, before.as_ref(), &policies, &question).await;
        // Both summaries replace the same turns. Only the description differs.
        made = narrated.filter(|narrated| narrated.turns == made.turns).unwrap_or(made);
    }
    let by_model =
        made.is_by_model.then(|| subject.summariser.and_then(|model| Some(model.model()?.to_owned())));
    let mut kept = KeptSummary {
        first_sha256: known.digests.first()?.clone(),
        turns: made.turns as u64,
        sha256: known.digests.get(made.turns.checked_sub(1)?)?.clone(),
        items: made.items,
        mode: made.mode.to_owned(),
        tokens_before: made.tokens_before,
        tokens_after: made.tokens_after,
        handle: None,
        bytes: request.body().len() as u64,
    };
    if let Ok(handle) = Handle::random() {
        match subject.wait_for_store(subject.store_output(&handle, request.body(), "json")).await {
            Ok(()) => kept.handle = Some(handle.to_string()),
            Err(error) => {
                tracing::error!(request = subject.id, %error, "the original of a condensed request is not stored");
            }
        }
    }
    let keeping = subject.store.keep_summary(
        &owner,
        subject.settings.store_policy.keep_days,
        kept.clone(),
        CondensedSession { session: subject.session.to_owned(), dropped: made.dropped },
    );
    subject.shaping.summaries.note_condensed_bytes(kept.bytes);
    if let Err(error) = subject.wait_for_store(keeping).await {
        tracing::error!(request = subject.id, %error, "a summary is not stored: the next request makes it again");
    }
    tracing::info!(
        request = subject.id,
        mode = kept.mode,
        tokens_before = kept.tokens_before,
        tokens_after = kept.tokens_after,
        "the older part of a conversation is condensed"
    );
    let summary = Summary { by_model: by_model.flatten(), ..Summary::new(&kept) };
    let request = with_summary(request, &kept)?;
    Some(CondensedRequest { request, summary })
}

/// Returns a longer summary of this conversation from another gateway. It is requested only if the conversation would
/// be condensed now, because the other gateway used the same threshold.
async fn fetch_from_others(
    subject: &ShapingContext<'_>,
    owner: &str,
    known: &HashedTurns,
    before: Option<&KeptSummary>,
) -> Option<KeptSummary> {
    let beyond = before.map_or(0, |before| before.turns);
    let found = subject.store.summary_of_other_instance(owner, &known.digests, beyond);
    match subject.wait_for_store(found).await {
        Ok(found) => {
            let found = found.and_then(|found| longest_summary(vec![found], known))?;
            subject.shaping.summaries.note_condensed_bytes(found.bytes);
            Some(found)
        }
        Err(error) => {
            tracing::warn!(request = subject.id, %error, "summaries of other gateways cannot be read");
            None
        }
    }
}

/// Makes the same summary again, but with a description that a model writes. Returns `None` if the model
/// fails.
async fn summarise_by_model(
    subject: &ShapingContext<'_>,
    request: &Request,
    before: Option<&KeptSummary>,
    policies: &[Policy],
    question: &str,
) -> Option<NewSummary> {
    let (summariser, count) = (subject.summariser?, policies.first()?.count);
    match summariser.summarise(request, question, count).await {
        Ok(narrated) => {
            let counted = &subject.shaping.summaries.token_counts;
            let narrator = Narrator::ByModel(narrated);
            condense_further(subject.id, request, before, policies, counted, &narrator, &mut HashMap::new())
        }
        Err(error) => {
            let model = summariser.model().unwrap_or_default();
            tracing::warn!(
                request = subject.id,
                model,
                %error,
                "the model's summary does not describe the condensed messages: a summary is made without it"
            );
            None
        }
    }
}

impl ShapingContext<'_> {
    /// Returns the maximum length in characters of the question for the summary model. Returns `None` if there is no
    /// such model.
    fn summariser_limit(&self, request: &Request) -> Option<usize> {
        let model = self.summariser.as_ref()?.model()?;
        let known = self.settings.models().find(model).and_then(|model| model.context_tokens);
        // If the model is not in the table but is the request's own model, its window may be known.
        let own = || (model == request.view().model).then(|| window_tokens(self, request)).flatten();
        Some(Summariser::max_question_chars(known.or_else(own)))
    }
}

/// The author of the description.
enum Narrator {
    /// Endmark itself. If a model may write the description later, a question is also prepared, with at most
    /// this number of characters.
    Own(Option<usize>),
    /// A model wrote the description.
    ByModel(ModelNarrative),
}

/// Hashes a conversation. Returns `None` if there are no turns between the first and the newest ones.
fn hash_turns(request: &Request) -> Option<HashedTurns> {
    let dialogue = Dialogue::read(request.format(), request.body()).ok()?;
    let turns = dialogue.items().count();
    let mut digests = Vec::with_capacity(turns);
    let mut before = request.format().name().to_owned();
    for turn in 0..turns {
        before.push_str(&sha256_hex(dialogue.item_without_cache_markers(turn)?.as_bytes()));
        before = sha256_hex(before.as_bytes());
        digests.push(before.clone());
    }
    (turns >= MIN_TURNS).then_some(HashedTurns { turns, digests })
}

/// Returns the summary that replaces most of this conversation.
fn longest_summary(all: Vec<KeptSummary>, known: &HashedTurns) -> Option<KeptSummary> {
    let matches_conversation = |summary: &KeptSummary| {
        let last = usize::try_from(summary.turns).ok().and_then(|turns| turns.checked_sub(1));
        last.filter(|last| *last < known.turns).and_then(|last| known.digests.get(last))
            == Some(&summary.sha256)
    };
    all.into_iter().filter(matches_conversation).max_by_key(|summary| summary.turns)
}

/// A summary that was just made.
struct NewSummary {
    /// The number of received turns that the summary replaces.
    turns: usize,
    items: Vec<String>,
    mode: &'static str,
    tokens_before: u64,
    tokens_after: u64,
    /// The number of values that are no longer kept in full, by kind.
    dropped: BTreeMap<String, u64>,
    /// The question for the model that should write the description.
    question: Option<String>,
    /// Whether a model wrote the description.
    is_by_model: bool,
}

/// Condenses the turns after an earlier summary, by the first policy that requires it.
fn condense_further(
    id: &str,
    request: &Request,
    before: Option<&KeptSummary>,
    policies: &[Policy],
    counted: &TokenCounts,
    narrator: &Narrator,
    progress: &mut HashMap<CompactionMode, CompactionProgress>,
) -> Option<NewSummary> {
    let all = Dialogue::read(request.format(), request.body()).ok()?.items().count();
    let shorter = before.and_then(|before| with_summary(request, before));
    let base = shorter.as_ref().unwrap_or(request);
    let dialogue = Dialogue::read(base.format(), base.body()).ok()?;
    let family = Family::of(&request.view().model);
    let sizes = counted.sizes(&dialogue, base.format().name(), family, policies.first()?.count);
    policies.iter().filter(|_| !work::is_stopped()).find_map(|policy| {
        let is_emergency = policy.mode == CompactionMode::Emergency;
        let around = || dialogue.surroundings().map(|text| counted.tokens(text, family, policy.count));
        let fixed_tokens = if is_emergency { around().iter().sum() } else { 0 };
        let budget_tokens = if is_emergency {
            policy.budget_tokens.saturating_sub(fixed_tokens).max(1)
        } else {
            policy.budget_tokens
        };
        let policy = Policy { fixed_tokens, budget_tokens, ..*policy };
        let narrated = match narrator {
            Narrator::Own(_) => None,
            Narrator::ByModel(narrated) => Some(narrated),
        };
        let progress = progress.entry(policy.mode).or_default();
        let compacted = compact_further(dialogue.conversation(), &policy, &sizes, narrated, progress);
        if compacted.edits.is_empty() {
            return None;
        }
        let edited = dialogue
            .edit(&compacted.edits)
            .inspect_err(|error| {
                tracing::error!(request = id, %error, "a conversation cannot be condensed");
                progress.stop_after_write_failure(&compacted.receipt);
            })
            .ok()?;
        let after = Dialogue::read(base.format(), &edited).ok()?;
        let (old, new): (Vec<&str>, Vec<&str>) = (dialogue.items().collect(), after.items().collect());
        // Exclude unedited turns after the last edit, because the summary does not cover them.
        let summary_items = before.map_or(0, |before| before.items.len());
        let unchanged_turns =
            old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
        let same = unchanged_turns.min(old.len().saturating_sub(summary_items));
        let items =
            (0..new.len().saturating_sub(same)).filter_map(|turn| after.item_without_cache_markers(turn));
        Some(NewSummary {
            turns: all.saturating_sub(same),
            items: items.map(Cow::into_owned).collect(),
            mode: if is_emergency { "emergency" } else { "window" },
            tokens_before: compacted.receipt.tokens_before,
            tokens_after: compacted.receipt.tokens_after,
            dropped: compacted
                .receipt
                .dropped
                .iter()
                .map(|(kind, count)| ((*kind).to_owned(), *count))
                .collect(),
            question: match narrator {
                Narrator::Own(Some(room)) => question(dialogue.conversation(), &compacted, *room),
                Narrator::Own(None) | Narrator::ByModel(_) => None,
            },
            is_by_model: narrated.is_some(),
        })
    })
}

/// Returns the request with this summary instead of its beginning.
fn with_summary(request: &Request, summary: &KeptSummary) -> Option<Request> {
    let dialogue = Dialogue::read(request.format(), request.body()).ok()?;
    let body = dialogue.with_replaced_beginning(usize::try_from(summary.turns).ok()?, &summary.items);
    Request::parse(request.format(), &body, request.address()).ok()
}

impl Summary {
    /// Returns the value of the header `x-endmark-compacted`.
    pub(crate) fn header_value(&self) -> String {
        let mut disclosed =
            format!("{}; before={}; after={}", self.mode, self.tokens_before, self.tokens_after);
        if let Some(handle) = &self.handle {
            disclosed.push_str("; handle=");
            disclosed.push_str(handle);
        }
        if let Some(model) = &self.by_model {
            disclosed.push_str("; by=");
            disclosed.extend(
                model
                    .chars()
                    .map(|letter| if letter.is_ascii_graphic() && letter != ';' { letter } else { '_' }),
            );
        }
        disclosed
    }

    fn new(kept: &KeptSummary) -> Self {
        Self {
            mode: if kept.mode == "window" { "window" } else { "emergency" },
            tokens_before: kept.tokens_before,
            tokens_after: kept.tokens_after,
            handle: kept.handle.clone(),
            by_model: None,
        }
    }
}

#[cfg(test)]
mod tests;
