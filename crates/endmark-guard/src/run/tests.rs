use proptest::prelude::*;

use super::*;

fn limits(attempts: u32, seconds: u64, nanodollars: Option<u64>) -> RunLimits {
    RunLimits {
        attempts: NonZeroU32::new(attempts).unwrap(),
        seconds: NonZeroU64::new(seconds).unwrap(),
        nanodollars: nanodollars.and_then(NonZeroU64::new),
    }
}

fn run_with_attempts(attempts: u32) -> Run {
    Run::new(limits(attempts, 1_000, None), RiskRule { threshold: 0.85, limit_tokens: Some(100_000) })
}

fn stub(fingerprint: &str) -> AttemptResult {
    AttemptResult {
        checks_pass: false,
        fingerprint: fingerprint.to_owned(),
        verdict: AttemptVerdict::Whole,
        usage: AgentUsage::default(),
        run_seconds: 1,
        was_stopped_at_ceiling: false,
    }
}

fn attempt(run: &mut Run, result: AttemptResult) -> Vec<Notice> {
    run.handle(RunEvent::Started);
    run.handle(RunEvent::Ended(result))
}

#[test]
fn the_artifact_is_judged_before_the_attempt_limit() {
    let mut run = run_with_attempts(2);
    attempt(&mut run, stub("a"));
    let finished = AttemptResult { checks_pass: true, ..stub("b") };
    assert_eq!(attempt(&mut run, finished), [Notice::Succeeded]);
}

#[test]
fn an_unfinished_artifact_is_released_with_one_notice() {
    let mut run = run_with_attempts(2);
    attempt(&mut run, stub("a"));
    let notices = attempt(&mut run, stub("a"));
    assert_eq!(notices, [Notice::ContextExhausted, Notice::Released(Reason::ContextExhaustion)]);
}

#[test]
fn a_resumed_run_keeps_its_remaining_attempts_and_budget() {
    let limits = RunLimits { nanodollars: NonZeroU64::new(10), ..*run_with_attempts(2).limits() };
    let rule = RiskRule { threshold: 0.85, limit_tokens: None };
    let usage = TokenUsage::new(100, 10);
    let before = EarlierProgress { finished_attempts: 1, usage, nanodollars: Some(6), seconds: 5 };
    let mut run = Run::resume(limits, rule, before);
    assert_eq!((run.state(), run.next_step(), run.token_usage()), (State::Queued, RunStep::Start(2), usage));
    run.handle(RunEvent::Started);
    let cost = AgentUsage { run: usage, cost_nanodollars: Some(4), ..AgentUsage::default() };
    run.handle(RunEvent::Used(cost.clone(), 6));
    assert_eq!((run.next_step(), run.token_usage().total, run.nanodollars()), (RunStep::Stop, 220, Some(10)));
    let notices = run.handle(RunEvent::Ended(AttemptResult { usage: cost, ..stub("a") }));
    assert_eq!(notices, [Notice::ContextExhausted, Notice::Released(Reason::ContextExhaustion)]);
}

#[test]
fn two_attempts_without_changes_end_the_run() {
    let mut run = run_with_attempts(9);
    for _ in 0..2 {
        assert_eq!(attempt(&mut run, stub("same")), [Notice::RetryQueued(Reason::ContextGuardFail)]);
    }
    assert_eq!(attempt(&mut run, stub("same")), [Notice::Failed(Reason::Stalled)]);
    // An attempt with progress resets the count.
    let mut run = run_with_attempts(9);
    for fingerprint in ["a", "a", "b", "b"] {
        assert_eq!(attempt(&mut run, stub(fingerprint)), [Notice::RetryQueued(Reason::ContextGuardFail)]);
    }
}

#[test]
fn a_call_over_the_threshold_warns_and_ends_a_stub_run() {
    let full = AgentUsage { largest_call_tokens: Some(90_000), ..AgentUsage::default() };
    let mut run = run_with_attempts(5);
    run.handle(RunEvent::Started);
    let warned = run.handle(RunEvent::Used(full.clone(), 1));
    assert_eq!(warned, [Notice::ContextRisk { is_sum: false }]);
    assert_eq!(run.handle(RunEvent::Used(full.clone(), 2)), []);
    assert_eq!(run.next_step(), RunStep::Wait);
    let ended = run.handle(RunEvent::Ended(AttemptResult { usage: full, ..stub("a") }));
    assert_eq!(ended, [Notice::ContextExhausted, Notice::Released(Reason::ContextExhaustion)]);
}

#[test]
fn the_sum_of_all_calls_only_warns() {
    let sum = AgentUsage { run: TokenUsage::new(500_000, 1), ..AgentUsage::default() };
    let mut run = run_with_attempts(5);
    run.handle(RunEvent::Started);
    let ended = run.handle(RunEvent::Ended(AttemptResult { usage: sum, ..stub("a") }));
    assert_eq!(ended, [Notice::ContextRisk { is_sum: true }, Notice::RetryQueued(Reason::ContextGuardFail)]);
}

#[test]
fn an_attempt_stopped_at_a_limit_can_still_succeed() {
    let dear = AgentUsage { cost_nanodollars: Some(600), ..AgentUsage::default() };
    let rule = RiskRule { threshold: 0.85, limit_tokens: None };
    let mut run = Run::new(limits(5, 1_000, Some(1_000)), rule);
    attempt(&mut run, AttemptResult { usage: dear.clone(), ..stub("a") });
    run.handle(RunEvent::Started);
    assert_eq!(run.next_step(), RunStep::Wait);
    run.handle(RunEvent::Used(dear.clone(), 2));
    assert_eq!((run.next_step(), run.nanodollars()), (RunStep::Stop, Some(1_200)));
    let stopped = AttemptResult { usage: dear, was_stopped_at_ceiling: true, ..stub("b") };
    let mut other = run.clone();
    assert_eq!(run.handle(RunEvent::Ended(stopped.clone())), [Notice::Released(Reason::Budget)]);
    let finished = AttemptResult { checks_pass: true, verdict: AttemptVerdict::Stuck, ..stopped };
    assert_eq!(other.handle(RunEvent::Ended(finished)), [Notice::Succeeded]);

    let mut slow = Run::new(limits(5, 10, None), rule);
    let late = AttemptResult { run_seconds: 10, ..stub("a") };
    assert_eq!(attempt(&mut slow, late), [Notice::Released(Reason::Budget)]);
}

#[test]
fn usage_of_attempts_is_added_up() {
    let used =
        AgentUsage { run: TokenUsage::new(100, 10), cost_nanodollars: Some(7), ..AgentUsage::default() };
    let mut run = run_with_attempts(3);
    for _ in 0..2 {
        attempt(&mut run, AttemptResult { usage: used.clone(), ..stub("a") });
    }
    assert_eq!((run.token_usage(), run.nanodollars()), (TokenUsage::new(200, 20), Some(14)));
    run.handle(RunEvent::Started);
    run.handle(RunEvent::Used(used, 1));
    assert_eq!((run.token_usage().total, run.nanodollars()), (330, Some(21)));
}

fn any_usage() -> impl Strategy<Value = AgentUsage> {
    (0..200_000_u64, proptest::option::of(0..200_000_u64), proptest::option::of(0..50_u64)).prop_map(
        |(input, largest_call_tokens, cost_nanodollars)| AgentUsage {
            run: TokenUsage::new(input, 1),
            largest_call_tokens,
            cost_nanodollars,
            ..AgentUsage::default()
        },
    )
}

fn any_event() -> impl Strategy<Value = RunEvent> {
    let verdict = proptest::sample::select(AttemptVerdict::ALL.to_vec());
    let attempted = (any::<bool>(), "[ab]", verdict, any_usage(), 0..40_u64, any::<bool>()).prop_map(
        |(checks_pass, fingerprint, verdict, usage, run_seconds, was_stopped_at_ceiling)| {
            RunEvent::Ended(AttemptResult {
                checks_pass,
                fingerprint,
                verdict,
                usage,
                run_seconds,
                was_stopped_at_ceiling,
            })
        },
    );
    prop_oneof![
        6 => Just(RunEvent::Started),
        2 => (any_usage(), 0..40_u64).prop_map(|(usage, seconds)| RunEvent::Used(usage, seconds)),
        6 => attempted,
        1 => Just(RunEvent::NotStarted),
        1 => Just(RunEvent::Interrupted),
    ]
}

proptest! {
    /// The invariants of a run hold for any event in any state.
    #[test]
    fn run_invariants_hold_for_any_events(
        events in proptest::collection::vec(any_event(), 1..60),
        attempts in 1..5_u32,
        money in proptest::option::of(1..100_u64),
    ) {
        let rule = RiskRule { threshold: 0.85, limit_tokens: Some(100_000) };
        let mut run = Run::new(limits(attempts, 30, money), rule);
        let (mut exhausted, mut ends) = (0, 0);
        for event in events {
            let before = (run.state(), run.attempt());
            let did_end = matches!(event, RunEvent::Ended(_)) && before.0 == State::Running;
            let notices = run.handle(event);
            exhausted += notices.iter().filter(|notice| **notice == Notice::ContextExhausted).count();
            ends += notices.iter().filter(|notice| matches!(
                notice, Notice::Succeeded | Notice::Released(_) | Notice::Failed(_))).count();
            // Nothing follows a final state.
            if before.0.is_final() {
                prop_assert_eq!((run.state(), run.attempt()), before);
                prop_assert!(notices.is_empty());
            }
            // The end of an attempt ends the running state.
            prop_assert!(!did_end || run.state() != State::Running);
            // The number of attempts never exceeds the limit.
            prop_assert!(run.attempt() <= attempts);
            if let RunStep::Start(number) = run.next_step() {
                prop_assert!(number <= attempts && number == run.attempt() + 1);
            }
            prop_assert_eq!(run.next_step() == RunStep::Done, run.state().is_final());
            let is_exhausted = run.reason() == Some(Reason::ContextExhaustion);
            prop_assert_eq!(exhausted, usize::from(is_exhausted));
            prop_assert!(!is_exhausted || run.state() == State::Released);
        }
        prop_assert_eq!(ends, usize::from(run.state().is_final()));
        // A driver that follows the steps always reaches the end of the run.
        let mut steps = 0;
        while run.next_step() != RunStep::Done {
            match run.next_step() {
                RunStep::Start(_) => run.handle(RunEvent::Started),
                _ => run.handle(RunEvent::Ended(stub("a"))),
            };
            steps += 1;
            prop_assert!(steps <= 2 * attempts + 1);
        }
    }
}
