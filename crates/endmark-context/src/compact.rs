//! Compaction (CX-1 to CX-4) of a conversation that has become too long. It keeps the first and the newest messages,
//! and replaces the others by a summary. It needs no model, and the same conversation always gives the same result.
//!
//! The sliding window and the emergency brake are two policies of one algorithm, which reads a [`Conversation`] and
//! returns edits by turn. The prefix before the first edit stays byte for byte.

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
    Changes, Content, Conversation, Edit, Message, NewResult, Pairs, Place, ResultTurns, Role,
};
use anchors::Anchor;
pub use anchors::AnchorKind;
use groups::CallGroups;
pub use invariants::{Violation, violations};
use ledger::Ledger;
pub use model_narrative::{ModelNarrative, NarrativeRejection, question};
use plan::{FixedParts, LEDGER_TENTHS, Plan, Planner, VALUE_TENTHS};
pub use policy::{
    Count, EMERGENCY_TRIGGER_TOKENS, KEEP_TURNS, Mode, Policy, WINDOW_BUDGET_TOKENS, WINDOW_TRIGGER_TOKENS,
};
pub use progress::Progress;
pub use receipt::{NotCompacted, Receipt};
use relevance::Relevance;
use sizes::TURN_TOKENS;
pub use sizes::{Sizes, turn_sizes};
use summary::Draft;

/// How much of the trigger (or the budget, if smaller) a window compaction leaves of the history, in tenths.
const AFTER_TENTHS: u64 = 6;
/// Least room for a summary, even if the budget leaves less, because the condensed turns would otherwise be lost.
const MIN_ROOM_TOKENS: u64 = 64;
/// Most tokens for values in a summary. More room does not justify values that nothing refers to.
const MAX_VALUE_TOKENS: u64 = 8_000;
/// How many turns earlier the kept end may begin, so that no call is separated from its result. The number of turns
/// to keep applies if it is larger.
const MIN_BACK_TURNS: usize = 8;
/// Least reduction of the history by a compaction, in tenths. Does not apply to the first compaction by share that
/// condenses turns.
const MIN_GAIN_TENTHS: u64 = 2;

/// Result of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// The edits. Empty if nothing needs to be done.
    pub edits: Vec<Edit>,
    /// The turns that the summary replaces.
    pub folded: Vec<usize>,
    /// What was done, with sizes before and after.
    pub receipt: Receipt,
}

/// Compacts a conversation if the policy requires it.
///
/// The first and the newest user message stay unchanged, and so do the instructions, content that the provider has
/// condensed itself, and the newest turns. One message replaces all other turns. It reports what happened, with the
/// anchors.
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
pub fn compact(conversation: &Conversation<'_>, policy: &Policy) -> Compacted {
    compact_with(conversation, policy, &Sizes::of(conversation, policy.count), None)
}

/// Like [`compact`], with known sizes of the conversation.
///
/// `told` is an optional narrative by a model; the anchors are the same as those of [`compact`].
pub fn compact_with(
    conversation: &Conversation<'_>,
    policy: &Policy,
    sizes: &Sizes,
    narrated: Option<&ModelNarrative>,
) -> Compacted {
    compact_further(conversation, policy, sizes, narrated, &mut Progress::default())
}

/// Like [`compact_with`], for a conversation that continues.
///
/// `progress` records the outcome of earlier attempts with this policy. Compaction stops after three attempts in a row
/// without progress (CX-1).
pub fn compact_further(
    conversation: &Conversation<'_>,
    policy: &Policy,
    sizes: &Sizes,
    narrated: Option<&ModelNarrative>,
    progress: &mut Progress,
) -> Compacted {
    let machine = match machine(conversation, policy, sizes, narrated) {
        Ok(machine) => machine,
        Err(history) => return Compacted::unchanged(history, NotCompacted::BelowTrigger),
    };
    if let Some(why) = progress.stops(machine.history, machine.budget) {
        return Compacted::unchanged(machine.history, why);
    }
    let compacted = machine.run();
    progress.note(&compacted.receipt, machine.budget);
    compacted
}

/// Returns the compactor if the policy requires a compaction, otherwise the tokens of the history.
fn machine<'m>(
    conversation: &'m Conversation<'m>,
    policy: &'m Policy,
    sizes: &'m Sizes,
    narrated: Option<&'m ModelNarrative>,
) -> Result<Machine<'m>, u64> {
    let pairs = Pairs::of(conversation);
    let fixed = FixedParts::of(conversation, &pairs);
    let history = sizes.tokens_from(fixed.head);
    let whole = history + policy.fixed_tokens + (0..fixed.head).map(|turn| sizes.turn(turn)).sum::<u64>();
    let measured = if policy.mode == Mode::Emergency { whole } else { history };
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
    Ok(Machine { conversation, policy, sizes, pairs, fixed, history, beside, budget, narrative: narrated })
}

/// Returns the anchors of the whole conversation within `room_tokens`. Returns `None` if there are no anchors.
///
/// An agent that condenses its conversation itself needs them afterwards.
pub fn anchor_ledger(conversation: &Conversation<'_>, room_tokens: u64, count: Count) -> Option<String> {
    let policy = Policy { trigger_tokens: 0, budget_tokens: room_tokens, ..Policy::window(count) };
    let sizes = Sizes::of(conversation, count);
    let machine = machine(conversation, &policy, &sizes, None).ok()?;
    let found = machine.anchors();
    let mut ledger = Ledger::default();
    for (turn, anchors) in found.iter().enumerate() {
        ledger.absorb(anchors, turn, count);
    }
    let draft = Draft {
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

/// Returns a share of a number of tokens.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tokens of a conversation, and a share between 0 and 1"
)]
fn fraction_of(tokens: u64, share: f64) -> u64 {
    (tokens as f64 * share.clamp(0.0, 1.0)) as u64
}

/// Returns how many tokens earlier compactions removed.
fn earlier_savings(fixed: &FixedParts, sizes: &Sizes) -> u64 {
    let more = |(turn, summary): &(usize, summary::Summary)| summary.tokens.saturating_sub(sizes.turn(*turn));
    fixed.summaries.iter().map(more).sum()
}

/// Facts about a conversation that do not depend on how many turns stay.
struct Material<'m> {
    relevance: Relevance,
    /// The anchors of each turn.
    found: &'m [Vec<Anchor<'m>>],
    /// The anchors of all turns.
    all: Ledger<'m>,
    /// For each turn, the tokens of the anchors of all turns before it.
    anchors_before: Vec<u64>,
}

struct Machine<'m> {
    conversation: &'m Conversation<'m>,
    policy: &'m Policy,
    sizes: &'m Sizes,
    pairs: Pairs,
    fixed: FixedParts,
    history: u64,
    /// Tokens of the request outside its history.
    beside: u64,
    budget: u64,
    /// The narrative, if a model has written it.
    narrative: Option<&'m ModelNarrative>,
}

impl Machine<'_> {
    /// Keeps fewer turns until the result would not be compacted again at once. A compacted conversation is compacted
    /// again only after new turns have arrived.
    fn run(&self) -> Compacted {
        let found = self.anchors();
        let material = self.material(&found);
        let most = self.policy.keep_turns.max(1);
        let (mut keep, mut most_back) = (most, most.max(MIN_BACK_TURNS));
        loop {
            let (plan, compacted) = self.attempt(keep, most_back, &material);
            let kept = self.conversation.turns.len().saturating_sub(plan.tail);
            let fewer = kept.min(keep).saturating_sub(1);
            let is_last = fewer == 0 && most_back == 0;
            if is_last || compacted.edits.is_empty() || self.is_settled(&compacted) {
                return compacted;
            }
            // As a last resort a result in the tail may lose its call: then both are condensed.
            (keep, most_back) = if fewer == 0 { (most, 0) } else { (fewer, most_back) };
        }
    }

    /// Whether another compaction of the result would change nothing.
    fn is_settled(&self, compacted: &Compacted) -> bool {
        let after = compacted.receipt.tokens_after;
        let is_due = match (self.policy.keep_share, self.policy.mode) {
            (Some(_), _) => after > self.budget,
            (None, Mode::Window) => after >= self.policy.trigger_tokens,
            (None, Mode::Emergency) => after + self.beside >= self.policy.trigger_tokens,
        };
        if !is_due {
            return true;
        }
        let Ok(changes) = Changes::new(self.conversation, &compacted.edits) else { return true };
        let after = changes.apply(self.conversation);
        let sizes = Sizes::of(&after, self.policy.count);
        machine(&after, self.policy, &sizes, None).map_or(true, |machine| {
            let most = self.policy.keep_turns.max(1);
            let found = machine.anchors();
            let (_, again) = machine.attempt(most, most.max(MIN_BACK_TURNS), &machine.material(&found));
            again.edits.is_empty()
        })
    }

    fn material<'f>(&self, found: &'f [Vec<Anchor<'f>>]) -> Material<'f> {
        let (mut all, mut anchors_before) = (Ledger::default(), Vec::with_capacity(found.len()));
        for (turn, anchors) in found.iter().enumerate() {
            anchors_before.push(all.tokens());
            all.absorb(anchors, turn, self.policy.count);
        }
        Material { relevance: Relevance::of(self.conversation), found, all, anchors_before }
    }

    /// Attempts a compaction that keeps at most `keep` turns, and at most `most_back` earlier turns that belong to
    /// them.
    fn attempt(&self, keep: usize, most_back: usize, material: &Material<'_>) -> (Plan, Compacted) {
        let count = self.policy.count;
        let Material { relevance, found, all, anchors_before } = material;
        let planner = Planner {
            conversation: self.conversation,
            fixed: &self.fixed,
            sizes: self.sizes,
            anchors_before,
            budget: self.goal(),
            ledger_tenths: if self.policy.keep_share.is_some() { LEDGER_TENTHS } else { VALUE_TENTHS },
        };
        let plan = planner.plan(keep, most_back);
        let stays = self.stays(&plan);
        let folded: Vec<usize> = (0..stays.len()).filter(|turn| !stays[*turn]).collect();
        let mut edits = repair::edits(self.conversation, &self.pairs, &stays);
        let mut visible = self.visible(&stays);
        let shortened = self.shorten(&planner, &plan, relevance, &stays, &mut visible, &mut edits);
        let is_new = |turn: &usize| self.fixed.summaries.iter().all(|(own, _)| own != turn);
        if !folded.iter().any(is_new) && shortened == 0 {
            return (plan, Compacted::unchanged(self.history, NotCompacted::NothingToCondense));
        }
        let mut ledger = Ledger::counted_by(all);
        for turn in &folded {
            ledger.absorb(&found[*turn], *turn, count);
        }
        ledger.forget(&visible);
        let lines =
            self.narrative.map_or_else(|| self.lines(&folded, found), |narrated| narrated.lines.clone());
        let messages: u64 = folded.iter().filter(|turn| is_new(turn)).count() as u64
            + self.fixed.summaries.iter().map(|(_, summary)| summary.messages).sum::<u64>();
        // Subtracts the kept tokens from those of the original history, so that the next compaction can recover the
        // original size.
        let kept = self.tokens_after(&edits, &stays);
        let before = self.history + earlier_savings(&self.fixed, self.sizes);
        let draft = Draft {
            messages,
            tokens: before.saturating_sub(kept),
            // If there is hardly room for the ledger, the narrative is dropped.
            lines: if self.goal() > kept + MIN_ROOM_TOKENS { &lines } else { &[] },
            earlier_calls: self.earlier_calls(&folded),
            ledger: &ledger,
            relevance,
            most_value_tokens: self.policy.keep_share.is_none().then_some(MAX_VALUE_TOKENS),
        };
        let mut written = summary::WrittenSummary::default();
        if !folded.is_empty() {
            written = draft.write(self.room(kept), count);
            Self::insert_summary(&folded, &written.text, &mut edits);
        }
        let after = kept + if folded.is_empty() { 0 } else { written.tokens + TURN_TOKENS };
        // A small gain does not justify condensing a summary again, or shortening results.
        let is_first = self.fixed.summaries.is_empty();
        let limit = match self.policy.keep_share {
            Some(_) if is_first && !folded.is_empty() => self.history.saturating_sub(1),
            _ => self.history - self.history * MIN_GAIN_TENTHS / 10,
        };
        if after > limit {
            return (plan, Compacted::unchanged(self.history, NotCompacted::TooLittleGain));
        }
        let mut receipt = Receipt::of(self.conversation, &folded, self.history, after);
        receipt.shortened_results = shortened;
        receipt.is_over_budget = after > self.budget;
        let conclusions = lines.iter().filter(|line| narrative::is_conclusion(line)).count() as u64;
        receipt.anchors = receipt::anchors(&ledger, conclusions, &written);
        (plan, Compacted { edits, folded, receipt }.check_invariants(self.conversation))
    }

    /// Returns the anchors of each turn. The anchors of an earlier summary are those of its ledger.
    fn anchors(&self) -> Vec<Vec<Anchor<'_>>> {
        anchors::anchors_by_turn(self.conversation, &self.pairs, |turn| {
            let own = self.fixed.summaries.iter().find(|(own, _)| *own == turn);
            own.map(|(_, own)| own.anchors.clone())
        })
    }

    /// Returns the exact words in the turns that stay, without tool results.
    fn visible(&self, stays: &[bool]) -> HashSet<String> {
        let mut visible = HashSet::new();
        let kept = self.conversation.turns.iter().zip(stays).filter(|(_, stays)| **stays);
        // Values in instructions may have nothing to do with this conversation.
        let kept = kept.filter(|(turn, _)| turn.role != Role::System);
        for part in kept.flat_map(|(turn, _)| &turn.parts) {
            match &part.content {
                Content::Text(text) => anchors::exact_words(text, &mut visible),
                Content::Call(call) => anchors::exact_words(&call.arguments, &mut visible),
                _ => {}
            }
        }
        visible
    }

    fn lines(&self, folded: &[usize], found: &[Vec<Anchor<'_>>]) -> Vec<String> {
        let of = |turn: &usize| {
            let own = self.fixed.summaries.iter().find(|(own, _)| own == turn);
            match own {
                Some((_, own)) => own.lines.clone(),
                None => narrative::lines(&self.conversation.turns[*turn], &found[*turn], self.policy.mode),
            }
        };
        narrative::merge_duplicates(folded.iter().flat_map(of))
    }

    /// Returns the grouped calls of earlier summaries.
    fn earlier_calls(&self, folded: &[usize]) -> CallGroups {
        let mut groups = CallGroups::default();
        for (_, own) in self.fixed.summaries.iter().filter(|(own, _)| folded.contains(own)) {
            groups.merge(&own.earlier_calls);
        }
        groups
    }

    fn stays(&self, plan: &Plan) -> Vec<bool> {
        let stays = |turn: usize| {
            let is_own = self.fixed.summaries.iter().any(|(own, _)| *own == turn);
            turn < self.fixed.from || self.fixed.pinned.contains(&turn) || (turn >= plan.tail && !is_own)
        };
        let mut all: Vec<bool> = (0..self.conversation.turns.len()).map(stays).collect();
        for step in self.pairs.steps() {
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

    /// Shortens results among the newest turns, and returns their number.
    fn shorten(
        &self,
        planner: &Planner<'_>,
        plan: &Plan,
        relevance: &Relevance,
        stays: &[bool],
        visible: &mut HashSet<String>,
        edits: &mut Vec<Edit>,
    ) -> u64 {
        let Some(most) = plan.result_tokens else { return 0 };
        let mut shortened = 0;
        for place in planner.results(plan.tail) {
            let call = self.pairs.call_of(place).map_or(place.turn, |call| call.turn);
            let is_kept = stays[place.turn] && stays[call] && !self.pairs.is_orphan(place);
            let result = self.conversation.turns[place.turn].parts[place.part].result();
            let Some(result) = result.filter(|_| is_kept) else { continue };
            let tokens = self.sizes.part(place);
            let short = digest::shorten(&result.text, tokens, most, relevance, visible, self.policy.count);
            anchors::exact_words(short.as_deref().unwrap_or(&result.text), visible);
            if let Some(text) = short {
                edits.push(Edit::SetText { place, text });
                shortened += 1;
            }
        }
        shortened
    }

    /// Returns the target size of the history. After a window compaction, the next one must be several turns away.
    fn goal(&self) -> u64 {
        match (self.policy.keep_share, self.policy.mode) {
            (None, Mode::Window) => self.policy.trigger_tokens.min(self.budget) * AFTER_TENTHS / 10,
            _ => self.budget,
        }
    }

    /// Returns the room of the summary.
    fn room(&self, kept: u64) -> u64 {
        self.goal().saturating_sub(kept + TURN_TOKENS).max(MIN_ROOM_TOKENS)
    }

    /// Returns the tokens of the history after these edits, without its summary.
    fn tokens_after(&self, edits: &[Edit], stays: &[bool]) -> u64 {
        let Ok(changes) = Changes::new(self.conversation, edits) else {
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
                let place = Place { turn, part };
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

    fn message_tokens(&self, message: &Message, changes: &Changes) -> u64 {
        let count = self.policy.count;
        let results = match message {
            Message::User(text) => return TURN_TOKENS + count(text),
            Message::Results(results) => results,
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

    /// Inserts the summary at the first run of condensed turns, and drops the other condensed turns.
    fn insert_summary(folded: &[usize], text: &str, edits: &mut Vec<Edit>) {
        let Some(start) = folded.first().copied() else { return };
        let run = folded.iter().zip(start..).take_while(|(turn, expected)| **turn == *expected).count();
        let message = Message::User(text.to_owned());
        edits.push(Edit::Replace { turns: start..start + run, message });
        edits.extend(folded[run..].iter().map(|turn| Edit::DropTurn(*turn)));
    }
}

impl Compacted {
    fn unchanged(history: u64, reason: NotCompacted) -> Self {
        Self { edits: Vec::new(), folded: Vec::new(), receipt: Receipt::unchanged(history, reason) }
    }

    /// Panics in debug builds if an invariant is violated.
    fn check_invariants(self, conversation: &Conversation<'_>) -> Self {
        if cfg!(debug_assertions) {
            let changes = Changes::new(conversation, &self.edits);
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
