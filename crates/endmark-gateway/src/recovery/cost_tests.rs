//! Measures the cost of recoveries with models that loop or never end. The clock is simulated, and the models count
//! their own tokens.

use std::time::Duration;

use endmark_recovery::{
    AskFailure, CutKind, Ending, Join, LoopDetector, Pipeline, PipelinePolicy, PipelineStep, Reply,
    RequestedReply, ResumePolicy, Stop,
};
use endmark_text::Format;
use endmark_wire::reply::Usage;
use tokio::time::Instant;

use super::account::TokenAccount;
use super::allowance::{Allowance, client_tokens, time_at_pace};
use super::bound::RecoveryBound;
use crate::ledger::CallUsage;

/// Reproducible pseudo-random numbers.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// A recovery with a model that never ends its reply.
struct SimulatedRecovery {
    numbers: RandomNumbers,
    account: TokenAccount,
    started: Instant,
    now: Instant,
    pace: Duration,
    /// All tokens that the model generated, except after an empty reply.
    generated: u64,
    is_streamed: bool,
}

impl SimulatedRecovery {
    /// Makes one call of at most `wanted` tokens after a cut of this kind.
    fn call(&mut self, wanted: u64, kind: CutKind) -> Result<Reply, AskFailure> {
        let limit = self
            .account
            .reserve_limit(wanted, kind)
            .map_err(|bound| AskFailure::Budget(bound.to_string()))?;
        let longest = self.account.retry_waits.remaining_at(self.now);
        if longest.is_zero() {
            return Err(AskFailure::Budget(self.account.time_bound().to_string()));
        }
        let until = self.now + longest;
        let (loops, breaks_after) = (self.numbers.below(3) > 0, self.numbers.below(6_000));
        let mut detector = LoopDetector::default();
        let (mut text, mut tokens) = (String::new(), 0);
        let (ending, stop) = loop {
            match () {
                () if tokens == limit => break (Ending::Clean, Some(Stop::Limit)),
                () if self.now + self.pace > until => break (Ending::OverCap, None),
                () if tokens == breaks_after => break (Ending::Dropped, None),
                () if self.is_streamed && detector.is_looping(&text) => {
                    break (Ending::OverCap, Some(Stop::Repetition));
                }
                () => {}
            }
            let word = if loops { "go".to_owned() } else { self.numbers.below(100).to_string() };
            text += &word;
            text.push(' ');
            (tokens, self.now) = (tokens + 1, self.now + self.pace);
        };
        if kind != CutKind::Empty {
            self.generated += tokens;
        }
        // Some providers report usage, and some do not.
        let reports = self.numbers.below(2) == 0;
        let usage = Usage { completion: tokens, ..Usage::default() };
        let spent = CallUsage { usage, reports_prompt: reports, reports_output: reports };
        self.account.charge(Some(&spent), ending, limit, kind);
        Ok(Reply { stop, output_tokens: Some(tokens), limit: Some(limit), ..Reply::broken_off(text, ending) })
    }

    fn run(&mut self, mut pipeline: Pipeline, wanted: u64) {
        loop {
            let join = if self.numbers.below(8) > 0 { Join::Exact } else { Join::Prompted };
            match pipeline.next() {
                PipelineStep::Resume(ask) => {
                    let wanted = if ask.wanted == RequestedReply::Rest { wanted } else { wanted * 2 };
                    match self.call(wanted, ask.kind) {
                        Ok(reply) => pipeline.accept_continuation(reply, join),
                        Err(failure) => pipeline.note_failure(failure),
                    }
                }
                PipelineStep::Correct(_) => match self.call(wanted, CutKind::Format) {
                    Ok(reply) => pipeline.accept_correction(reply),
                    Err(failure) => pipeline.note_failure(failure),
                },
                PipelineStep::Done(_) => return,
            }
        }
    }
}

#[test]
fn a_looping_model_never_exceeds_its_recovery_limits() {
    let mut most = (0, Duration::ZERO);
    for seed in 0..1_000 {
        let mut numbers = RandomNumbers(seed);
        let limit = 1 + numbers.below(900);
        let (pace, max_time) = (Duration::from_millis(1 + numbers.below(200)), Duration::from_mins(1));
        let time = time_at_pace(pace * 20, 20, limit).max(max_time);
        let tokens = client_tokens(limit, 4);
        let now = Instant::now();
        let allowance = Allowance {
            tokens: 16_384,
            client_tokens: Some(tokens),
            attempts: 6,
            corrections: 2,
            waiting_time: Duration::from_secs(30),
            call_time: time,
            time_bound: RecoveryBound::Seconds,
        };
        let mut recovery = SimulatedRecovery {
            account: TokenAccount::starting_at(allowance, now),
            is_streamed: numbers.below(2) == 0,
            numbers,
            started: now,
            now,
            pace,
            generated: 0,
        };
        let first = if seed % 5 == 0 { "" } else { r#"{"a": "the first words and "# };
        let first = Reply { reasoned: true, ..Reply::with_stop(first, Stop::Limit) };
        let resume = ResumePolicy { max_attempts: 6, room_to_restart: true, ..ResumePolicy::default() };
        let policy = PipelinePolicy { resume, max_corrections: 2, may_change: false };
        let demanded = (seed % 3 > 0).then_some(Format::Json);
        recovery.run(Pipeline::new(policy, demanded, None, first), limit.max(4_096));
        let took = recovery.now - recovery.started;
        assert!(recovery.generated <= tokens, "{seed}: {} of {tokens} tokens", recovery.generated);
        assert!(took <= time, "{seed}: {took:?} of {time:?}");
        most = (most.0.max(recovery.generated), most.1.max(took));
    }
    // The recoveries must reach their bounds, because a model that stops by itself would prove nothing.
    assert!(most.0 > 3_000 && most.1 >= Duration::from_secs(59), "{most:?}");
}
