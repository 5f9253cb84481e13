//! Compacts a conversation that has become too long (CX-1 to CX-4). Compaction keeps the first and the newest
//! messages, and replaces the others by a summary. It needs no model, and the same conversation always gives
//! the same result.
//!
//! The sliding window and the emergency brake are two policies of the same algorithm, which reads a
//! [`Conversation`] and returns edits by turn. The bytes before the first edit do not change.

mod anchors;
mod digest;
mod groups;
mod invariants;
mod ledger;
mod model_narrative;
mod narrative;
mod plan;
mod policy;
mod progress;
mod receipt;
mod relevance;
mod repair;
mod sizes;
mod summary;

use std::collections::HashSet;

use crate::conversation::{
    CallPairs, Content, Conversation, ConversationChanges, Edit, InsertedMessage, NewResult, PartPosition,
    ResultTurns, Role,
};
use anchors::Anchor;
pub use anchors::AnchorKind;
use groups::CallGroups;
pub use invariants::{InvariantViolation, violations};
use ledger::Ledger;
pub use model_narrative::{ModelNarrative, NarrativeRejection, question};
use plan::{CompactionPlan, FixedParts, LEDGER_TENTHS, Planner, VALUE_TENTHS};
pub use policy::{
    CompactionMode, EMERGENCY_TRIGGER_TOKENS, KEEP_TURNS, Policy, TokenCounter, WINDOW_BUDGET_TOKENS,
    WINDOW_TRIGGER_TOKENS,
};
pub use progress::CompactionProgress;
pub use receipt::{CompactionReceipt, NotCompacted};
use relevance::Relevance;
use sizes::TURN_TOKENS;
pub use sizes::{PartSizes, turn_sizes};
use summary::SummaryDraft;

/// After a window compaction, the history has at most this many tenths of the trigger, or of the budget if
/// that is smaller.
const WINDOW_TARGET_TENTHS: u64 = 6;
/// Minimum tokens for a summary, even if the budget leaves less. Without a summary, the condensed turns would
/// be lost.
const MIN_SUMMARY_TOKENS: u64 = 64;
/// Maximum tokens for values in a summary. A larger limit would only keep values that nothing refers to.
const MAX_VALUE_TOKENS: u64 = 8_000;
/// The kept tail may begin this many turns earlier than planned, so that no call is separated from its
/// result. If the policy keeps more turns than this, that number applies instead.
const MIN_LOOKBACK_TURNS: usize = 8;
/// A compaction must reduce the history by at least this many tenths. Exception: the first compaction by
/// share, if it condenses turns.
const MIN_GAIN_TENTHS: u64 = 2;

/// The result of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionResult {
    /// The edits of the conversation. Empty if it needs no compaction.
    pub edits: Vec<Edit>,
    /// The indexes of the turns that the summary replaces.
    pub condensed_turns: Vec<usize>,
    /// A record of what was done, with the sizes before and after.
    pub receipt: CompactionReceipt,
}

/// Compacts a conversation if the policy requires it.
///
/// The instructions, the first and the newest user message, content that the provider itself condensed, and
/// the newest turns stay unchanged. One message with a summary and the anchors replaces all other turns.
///
/// ```
/// use endmark_context::compact::{Policy, compact};
/// use endmark_context::conversation::{Content, Conversation, Part, Role, Turn};
/// let say = |role, text: String| Turn { role, span: 0..0, parts: vec![Part { span: 0..0, content: Content::Text(text.into()) }] };
/// let mut turns = vec![say(Role::User, "Sort the orders".into())];
/// for number in 0..40 {
///     turns.push(say(Role::Assistant, format!("Order A{number} is sorted now, and the next one follows. ").repeat(9)));
///     turns.push(say(Role::User, format!("Go on with {number}")));
/// }
/// let conversation = Conversation { turns, ..Conversation::default() };
/// let count = |text: &str| (text.len() / 4) as u64;
/// let policy = Policy { trigger_tokens: 1_000, budget_tokens: 2_000, ..Policy::window(count) };
/// let compacted = compact(&conversation, &policy);
/// assert!(compacted.receipt.tokens_after < 2_000 && compacted.receipt.tokens_before > 4_000);
/// ```
pub fn compact(conversation: &Conversation<'_>, policy: &Policy) -> CompactionResult {
    compact_with(conversation, policy, &PartSizes::of(conversation, policy.count), None)
}

/// Like [`compact`], with sizes that the caller has already computed.
///
/// `narrated` is an optional narrative that a model wrote. The anchors are the same as those of [`compact`].
pub fn compact_with(
    conversation: &Conversation<'_>,
    policy: &Policy,
    sizes: &PartSizes,
    narrated: Option<&ModelNarrative>,
) -> CompactionResult {
    compact_further(conversation, policy, sizes, narrated, &mut CompactionProgress::default())
}

/// Like [`compact_with`], for a conversation that was compacted before.
///
/// `progress` records the results of earlier attempts with this policy. After three attempts in a row without
/// progress, the conversation is no longer compacted (CX-1).
pub fn compact_further(
    conversation: &Conversation<'_>,
    policy: &Policy,
    sizes: &PartSizes,
    narrated: Option<&ModelNarrative>,
    progress: &mut CompactionProgress,
) -> CompactionResult {
    let machine = match compactor_if_due(conversation, policy, sizes, narrated) {
        Ok(machine) => machine,
        Err(history) => return CompactionResult::unchanged(history, NotCompacted::BelowTrigger),
    };
    if let Some(why) = progress.stop_reason_at(machine.history, machine.budget) {
        return CompactionResult::unchanged(machine.history, why);
    }
    let compacted = machine.compact_until_settled();
    progress.record(&compacted.receipt, machine.budget);
    compacted
}

/// Returns a compactor if the policy requires a compaction. Otherwise returns the number of tokens in the
/// history.
fn compactor_if_due<'m>(
    conversation: &'m Conversation<'m>,
    policy: &'m Policy,
    sizes: &'m PartSizes,
    narrated: Option<&'m ModelNarrative>,
) -> Result<Compactor<'m>, u64> {
    let pairs = CallPairs::of(conversation);
    let fixed = FixedParts::of(conversation, &pairs);
    let history = sizes.tokens_from(fixed.head);
    let whole = history + policy.fixed_tokens + (0..fixed.head).map(|turn| sizes.turn(turn)).sum::<u64>();
    let measured = if policy.mode == CompactionMode::Emergency { whole } else { history };
    let budget = match policy.keep_share {
        Some(share) => fraction_of(history + earlier_savings(&fixed, sizes), share),
        None => policy.budget_tokens,
    };
    let is_due = match policy.keep_share {
        Some(_) => history > budget,
        None => measured >= policy.trigger_tokens,
    };
    if !is_due {
        return Err(history);
    }
    let beside = whole - history;
    Ok(Compactor {
        conversation,
        policy,
        sizes,
        pairs,
        fixed,
        history,
        tokens_outside_history: beside,
        budget,
        narrative: narrated,
    })
}

/// Returns the anchors of the whole conversation, in at most `room_tokens` tokens. Returns `None` if there
/// are no anchors.
///
/// An agent that condenses its own conversation needs the anchors afterwards.
pub fn anchor_ledger(
    conversation: &Conversation<'_>,
    room_tokens: u64,
    count: TokenCounter,
) -> Option<String> {
    let policy = Policy { trigger_tokens: 0, budget_tokens: room_tokens, ..Policy::window(count) };
    let sizes = PartSizes::of(conversation, count);
    let machine = compactor_if_due(conversation, &policy, &sizes, None).ok()?;
    let found = machine.anchors();
    let mut ledger = Ledger::default();
    for (turn, anchors) in found.iter().enumerate() {
        ledger.absorb(anchors, turn, count);
    }
    let draft = SummaryDraft {
        messages: conversation.turns.len() as u64,
        tokens: machine.history,
        lines: &[],
        earlier_calls: CallGroups::default(),
        ledger: &ledger,
        relevance: &Relevance::of(conversation),
        most_value_tokens: None,
    };
    let written = draft.write(room_tokens, count);
    (!written.kept_anchors.is_empty()).then_some(written.text)
}

/// Returns `share` times `tokens`, rounded down.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tokens of a conversation, and a share between 0 and 1"
)]
fn fraction_of(tokens: u64, share: f64) -> u64 {
    (tokens as f64 * share.clamp(0.0, 1.0)) as u64
}

/// Returns how many tokens earlier compactions have removed.
fn earlier_savings(fixed: &FixedParts, sizes: &PartSizes) -> u64 {
    let more =
        |(turn, summary): &(usize, summary::ParsedSummary)| summary.tokens.saturating_sub(sizes.turn(*turn));
    fixed.summaries.iter().map(more).sum()
}

/// Facts about a conversation that do not depend on the number of kept turns.
struct ConversationFacts<'m> {
    relevance: Relevance,
    /// The anchors of each turn.
    anchors_by_turn: &'m [Vec<Anchor<'m>>],
    /// The anchors of all turns.
    ledger: Ledger<'m>,
    /// For each turn, the number of tokens of the anchors in all earlier turns.
    anchors_before: Vec<u64>,
}

struct Compactor<'m> {
    conversation: &'m Conversation<'m>,
    policy: &'m Policy,
    sizes: &'m PartSizes,
    pairs: CallPairs,
    fixed: FixedParts,
    history: u64,
    /// Tokens of the request outside its history.
    tokens_outside_history: u64,
    budget: u64,
    /// The narrative that a model wrote, if there is one.
    narrative: Option<&'m ModelNarrative>,
}

impl Compactor<'_> {
    /// Keeps fewer and fewer turns until the result no longer needs a compaction itself. A compacted
    /// conversation is compacted again only after new turns have arrived.
    fn compact_until_settled(&self) -> CompactionResult {
        let found = self.anchors();
        let material = self.collect_facts(&found);
        let most = self.policy.keep_turns.max(1);
        let (mut keep, mut most_back) = (most, most.max(MIN_LOOKBACK_TURNS));
        loop {
            let (plan, compacted) = self.attempt(keep, most_back, &material);
            let kept = self.conversation.turns.len().saturating_sub(plan.tail);
            let fewer = kept.min(keep).saturating_sub(1);
            let is_last = fewer == 0 && most_back == 0;
            if is_last || compacted.edits.is_empty() || self.is_settled(&compacted) {
                return compacted;
            }
            // As a last resort, the kept tail may begin with a result without its call. Then both are
            // condensed.
            (keep, most_back) = if fewer == 0 { (most, 0) } else { (fewer, most_back) };
        }
    }

    /// Whether compacting the result again would change nothing.
    fn is_settled(&self, compacted: &CompactionResult) -> bool {
        let after = compacted.receipt.tokens_after;
        let is_due = match (self.policy.keep_share, self.policy.mode) {
            (Some(_), _) => after > self.budget,
            (None, CompactionMode::Window) => after >= self.policy.trigger_tokens,
            (None, CompactionMode::Emergency) => {
                after + self.tokens_outside_history >= self.policy.trigger_tokens
            }
        };
        if !is_due {
            return true;
        }
        let Ok(changes) = ConversationChanges::new(self.conversation, &compacted.edits) else { return true };
        let after = changes.apply(self.conversation);
        let sizes = PartSizes::of(&after, self.policy.count);
        compactor_if_due(&after, self.policy, &sizes, None).map_or(true, |machine| {
            let most = self.policy.keep_turns.max(1);
            let found = machine.anchors();
            let (_, again) =
                machine.attempt(most, most.max(MIN_LOOKBACK_TURNS), &machine.collect_facts(&found));
            again.edits.is_empty()
        })
    }

    fn collect_facts<'f>(&self, found: &'f [Vec<Anchor<'f>>]) -> ConversationFacts<'f> {
        let (mut all, mut anchors_before) = (Ledger::default(), Vec::with_capacity(found.len()));
        for (turn, anchors) in found.iter().enumerate() {
            anchors_before.push(all.tokens());
            all.absorb(anchors, turn, self.policy.count);
        }
        ConversationFacts {
            relevance: Relevance::of(self.conversation),
            anchors_by_turn: found,
            ledger: all,
            anchors_before,
        }
    }

    /// Compacts with at most `keep` newest turns, plus at most `most_back` earlier turns that belong to them.
    fn attempt(
        &self,
        keep: usize,
        most_back: usize,
        material: &ConversationFacts<'_>,
    ) -> (CompactionPlan, CompactionResult) {
        let count = self.policy.count;
        let ConversationFacts { relevance, anchors_by_turn: found, ledger: all, anchors_before } = material;
        let planner = Planner {
            conversation: self.conversation,
            fixed: &self.fixed,
            sizes: self.sizes,
            anchors_before,
            budget: self.target_tokens(),
            ledger_tenths: if self.policy.keep_share.is_some() { LEDGER_TENTHS } else { VALUE_TENTHS },
        };
        let plan = planner.plan(keep, most_back);
        let stays = self.kept_turns(&plan);
        let folded: Vec<usize> = (0..stays.len()).filter(|turn| !stays[*turn]).collect();
        let mut edits = repair::repair_edits(self.conversation, &self.pairs, &stays);
        let mut visible = self.kept_words(&stays);
        let shortened = self.shorten_results(&planner, &plan, relevance, &stays, &mut visible, &mut edits);
        let is_new = |turn: &usize| self.fixed.summaries.iter().all(|(own, _)| own != turn);
        if !folded.iter().any(is_new) && shortened == 0 {
            return (plan, CompactionResult::unchanged(self.history, NotCompacted::NothingToCondense));
        }
        let mut ledger = Ledger::with_counts_of(all);
        for turn in &folded {
            ledger.absorb(&found[*turn], *turn, count);
        }
        ledger.remove_visible(&visible);
        let lines = self
            .narrative
            .map_or_else(|| self.narrative_lines(&folded, found), |narrated| narrated.lines.clone());
        let messages: u64 = folded.iter().filter(|turn| is_new(turn)).count() as u64
            + self.fixed.summaries.iter().map(|(_, summary)| summary.messages).sum::<u64>();
        // Keep the original size in the receipt: subtract the tokens that stay from the tokens of the
        // original history. The next compaction starts from this figure.
        let kept = self.tokens_after(&edits, &stays);
        let before = self.history + earlier_savings(&self.fixed, self.sizes);
        let draft = SummaryDraft {
            messages,
            tokens: before.saturating_sub(kept),
            // Drop the narrative if there is hardly any room for the ledger.
            lines: if self.target_tokens() > kept + MIN_SUMMARY_TOKENS { &lines } else { &[] },
            earlier_calls: self.earlier_calls(&folded),
            ledger: &ledger,
            relevance,
            most_value_tokens: self.policy.keep_share.is_none().then_some(MAX_VALUE_TOKENS),
        };
        let mut written = summary::WrittenSummary::default();
        if !folded.is_empty() {
            written = draft.write(self.summary_room_tokens(kept), count);
            Self::insert_summary(&folded, &written.text, &mut edits);
        }
        let after = kept + if folded.is_empty() { 0 } else { written.tokens + TURN_TOKENS };
        // A small gain does not justify condensing an earlier summary again or shortening results.
        let is_first = self.fixed.summaries.is_empty();
        let limit = match self.policy.keep_share {
            Some(_) if is_first && !folded.is_empty() => self.history.saturating_sub(1),
            _ => self.history - self.history * MIN_GAIN_TENTHS / 10,
        };
        if after > limit {
            return (plan, CompactionResult::unchanged(self.history, NotCompacted::TooLittleGain));
        }
        let mut receipt = CompactionReceipt::of(self.conversation, &folded, self.history, after);
        receipt.shortened_results = shortened;
        receipt.is_over_budget = after > self.budget;
        let conclusions = lines.iter().filter(|line| narrative::is_conclusion(line)).count() as u64;
        receipt.anchors = receipt::count_anchors(&ledger, conclusions, &written);
        (
            plan,
            CompactionResult { edits, condensed_turns: folded, receipt }.check_invariants(self.conversation),
        )
    }

    /// Returns the anchors of each turn. For an earlier summary, these are the anchors in its ledger.
    fn anchors(&self) -> Vec<Vec<Anchor<'_>>> {
        anchors::anchors_by_turn(self.conversation, &self.pairs, |turn| {
            let own = self.fixed.summaries.iter().find(|(own, _)| *own == turn);
            own.map(|(_, own)| own.anchors.clone())
        })
    }

    /// Returns the exact words of the kept turns, except those in tool results.
    fn kept_words(&self, stays: &[bool]) -> HashSet<String> {
        let mut visible = HashSet::new();
        let kept = self.conversation.turns.iter().zip(stays).filter(|(_, stays)| **stays);
        // Ignore instructions: their values may have nothing to do with this conversation.
        let kept = kept.filter(|(turn, _)| turn.role != Role::System);
        for part in kept.flat_map(|(turn, _)| &turn.parts) {
            match &part.content {
                Content::Text(text) => anchors::add_words(text, &mut visible),
                Content::Call(call) => anchors::add_words(&call.arguments, &mut visible),
                _ => {}
            }
        }
        visible
    }

    fn narrative_lines(&self, folded: &[usize], found: &[Vec<Anchor<'_>>]) -> Vec<String> {
        let of = |turn: &usize| {
            let own = self.fixed.summaries.iter().find(|(own, _)| own == turn);
            match own {
                Some((_, own)) => own.lines.clone(),
                None => narrative::narrative_lines(
                    &self.conversation.turns[*turn],
                    &found[*turn],
                    self.policy.mode,
                ),
            }
        };
        narrative::merge_duplicates(folded.iter().flat_map(of))
    }

    /// Returns the grouped calls of the earlier summaries.
    fn earlier_calls(&self, folded: &[usize]) -> CallGroups {
        let mut groups = CallGroups::default();
        for (_, own) in self.fixed.summaries.iter().filter(|(own, _)| folded.contains(own)) {
            groups.merge(&own.earlier_calls);
        }
        groups
    }

    fn kept_turns(&self, plan: &CompactionPlan) -> Vec<bool> {
        let stays = |turn: usize| {
            let is_own = self.fixed.summaries.iter().any(|(own, _)| *own == turn);
            turn < self.fixed.from || self.fixed.pinned.contains(&turn) || (turn >= plan.tail && !is_own)
        };
        let mut all: Vec<bool> = (0..self.conversation.turns.len()).map(stays).collect();
        for step in self.pairs.turn_groups() {
            if step.iter().any(|turn| !all[*turn]) {
                let is_fixed = |turn: &usize| *turn < self.fixed.from || self.fixed.pinned.contains(turn);
                let stay = step.iter().any(is_fixed);
                for turn in step {
                    all[*turn] = stay;
                }
            }
        }
        all
    }

    /// Shortens results among the newest turns. Returns how many were shortened.
    fn shorten_results(
        &self,
        planner: &Planner<'_>,
        plan: &CompactionPlan,
        relevance: &Relevance,
        stays: &[bool],
        visible: &mut HashSet<String>,
        edits: &mut Vec<Edit>,
    ) -> u64 {
        let Some(most) = plan.result_tokens else { return 0 };
        let mut shortened = 0;
        for place in planner.shortenable_results(plan.tail) {
            let call = self.pairs.call_of(place).map_or(place.turn, |call| call.turn);
            let is_kept = stays[place.turn] && stays[call] && !self.pairs.is_orphan(place);
            let result = self.conversation.turns[place.turn].parts[place.part].result();
            let Some(result) = result.filter(|_| is_kept) else { continue };
            let tokens = self.sizes.part(place);
            let short =
                digest::shorten_result(&result.text, tokens, most, relevance, visible, self.policy.count);
            anchors::add_words(short.as_deref().unwrap_or(&result.text), visible);
            if let Some(text) = short {
                edits.push(Edit::SetText { place, text });
                shortened += 1;
            }
        }
        shortened
    }

    /// Returns the target size of the history in tokens. After a window compaction, several turns must fit
    /// before the next one.
    fn target_tokens(&self) -> u64 {
        match (self.policy.keep_share, self.policy.mode) {
            (None, CompactionMode::Window) => {
                self.policy.trigger_tokens.min(self.budget) * WINDOW_TARGET_TENTHS / 10
            }
            _ => self.budget,
        }
    }

    /// Returns the number of tokens that are available for the summary.
    fn summary_room_tokens(&self, kept: u64) -> u64 {
        self.target_tokens().saturating_sub(kept + TURN_TOKENS).max(MIN_SUMMARY_TOKENS)
    }

    /// Returns the number of tokens in the edited history, without its summary.
    fn tokens_after(&self, edits: &[Edit], stays: &[bool]) -> u64 {
        let Ok(changes) = ConversationChanges::new(self.conversation, edits) else {
            return self.history;
        };
        let mut kept = 0;
        for (turn, standing) in self.conversation.turns.iter().enumerate().skip(self.fixed.head) {
            for before in changes.inserted_messages(turn) {
                kept += self.message_tokens(before, &changes);
            }
            if !stays[turn] || changes.drops_turn(turn) {
                continue;
            }
            kept += TURN_TOKENS;
            for part in 0..standing.parts.len() {
                let place = PartPosition { turn, part };
                if !changes.drops_part(place) {
                    kept += changes.text(place).map_or_else(|| self.sizes.part(place), self.policy.count);
                }
            }
        }
        kept + changes
            .inserted_messages(self.conversation.turns.len())
            .iter()
            .map(|it| self.message_tokens(it, &changes))
            .sum::<u64>()
    }

    fn message_tokens(&self, message: &InsertedMessage, changes: &ConversationChanges) -> u64 {
        let count = self.policy.count;
        let results = match message {
            InsertedMessage::User(text) => return TURN_TOKENS + count(text),
            InsertedMessage::Results(results) => results,
        };
        let tokens = results.iter().map(|result| match result {
            NewResult::Moved(place) => changes.text(*place).map_or_else(|| self.sizes.part(*place), count),
            NewResult::Absent { text, .. } => count(text),
        });
        let turns = match self.conversation.order.turns_of_results {
            ResultTurns::OnePerResult => results.len() as u64,
            ResultTurns::Shared | ResultTurns::SingleTurn => 1,
        };
        TURN_TOKENS * turns + tokens.sum::<u64>()
    }

    /// Inserts the summary at the first condensed turns, and drops all other condensed turns.
    fn insert_summary(folded: &[usize], text: &str, edits: &mut Vec<Edit>) {
        let Some(start) = folded.first().copied() else { return };
        let run = folded.iter().zip(start..).take_while(|(turn, expected)| **turn == *expected).count();
        let message = InsertedMessage::User(text.to_owned());
        edits.push(Edit::Replace { turns: start..start + run, message });
        edits.extend(folded[run..].iter().map(|turn| Edit::DropTurn(*turn)));
    }
}

impl CompactionResult {
    fn unchanged(history: u64, reason: NotCompacted) -> Self {
        Self {
            edits: Vec::new(),
            condensed_turns: Vec::new(),
            receipt: CompactionReceipt::unchanged(history, reason),
        }
    }

    /// Panics in debug builds if the result violates an invariant.
    fn check_invariants(self, conversation: &Conversation<'_>) -> Self {
        if cfg!(debug_assertions) {
            let changes = ConversationChanges::new(conversation, &self.edits);
            let found = changes.as_ref().map(|changes| violations(conversation, changes));
            debug_assert!(
                matches!(&found, Ok(found) if found.is_empty()),
                "{found:?} after {:?}",
                self.edits
            );
        }
        self
    }
}
