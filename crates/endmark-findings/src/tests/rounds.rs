//! Simulates an agent that is cut repeatedly and follows the plan, and checks the reported loss. (AR-4, AR-6)

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use crate::{Assignment, DeliveredResult, MergedResults, RecoveryState, Run, Team, read};

/// The behaviour of an agent.
#[derive(Debug, Clone)]
struct AgentBehaviour {
    /// The number of findings for each dimension.
    findings: Vec<usize>,
    later: LaterRun,
    declares: bool,
    prints_checkpoints: bool,
    /// Whether a later run repeats a cut finding that already had source and sink.
    completes: bool,
    order: FieldOrder,
    /// Where each run is cut, in thousandths of its text. Values above 1,000 mean no cut.
    cuts: Vec<usize>,
}

/// The order of a finding's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldOrder {
    PlaceFirst,
    /// The place comes last and there is no weakness, so that a cut finding lacks both.
    FlowFirst,
}

/// The content of a later run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaterRun {
    /// All findings again.
    All,
    /// The findings that were not delivered yet, numbered from the first id.
    Rest,
    /// The same findings, with continued numbering.
    RestInSameFile,
}

fn agent_behaviour() -> impl Strategy<Value = AgentBehaviour> {
    let cuts = proptest::collection::vec(0_usize..1_400, 7);
    let later = prop_oneof![Just(LaterRun::All), Just(LaterRun::Rest), Just(LaterRun::RestInSameFile)];
    let findings = proptest::collection::vec(0_usize..4, 1..4);
    let order = prop_oneof![Just(FieldOrder::PlaceFirst), Just(FieldOrder::FlowFirst)];
    let habits = (any::<bool>(), any::<bool>(), any::<bool>(), order);
    (findings, later, habits, cuts).prop_map(
        |(findings, later, (declares, prints_checkpoints, completes, order), cuts)| AgentBehaviour {
            findings,
            later,
            declares,
            prints_checkpoints,
            completes,
            order,
            cuts,
        },
    )
}

fn dimension(at: usize) -> String {
    format!("dimension {at}")
}

/// Returns the sink, which is unique to this finding.
fn sink(dimension: usize, number: usize) -> String {
    format!("sink {}", 100 + dimension * 10 + number)
}

/// Returns the uncut output of a run. `handed` contains the sinks of the findings delivered so far.
fn write_run(behaviour: &AgentBehaviour, run: &Run, delivered_sinks: &BTreeSet<String>) -> String {
    let of_run = |at: &usize| run.dimensions.contains(&dimension(*at));
    let dimensions: Vec<usize> = (0..behaviour.findings.len()).filter(of_run).collect();
    let is_written = |sink: &String| behaviour.later == LaterRun::All || !delivered_sinks.contains(sink);
    let delivered =
        dimensions.iter().flat_map(|at| (0..behaviour.findings[*at]).map(move |number| (*at, number)));
    let delivered: Vec<(usize, usize)> =
        delivered.filter(|(at, number)| is_written(&sink(*at, *number))).collect();
    let names: Vec<String> = dimensions.iter().map(|at| dimension(*at)).collect();
    let mut text = String::new();
    if behaviour.prints_checkpoints {
        let left = names.last().map_or("", String::as_str);
        let made = delivered.iter().filter(|(at, _)| Some(at) != dimensions.last()).count();
        let _ = writeln!(text, "[CHECKPOINT] turn:10 findings:{made} files_read:1 remaining_dims:{left}");
    }
    let _ = writeln!(text, "===AGENT_RESULT===\nagent_id: x\ndimensions: {}", names.join(", "));
    if behaviour.declares {
        let _ = writeln!(text, "declared_findings: {}", delivered.len());
    }
    let first = if behaviour.later == LaterRun::RestInSameFile { delivered_sinks.len() + 1 } else { 1 };
    for ((at, number), id) in delivered.iter().zip(first..) {
        let cwe = 100 + at * 10 + number;
        let place = format!("location: src/{at}{number}.rs:9\n");
        let flow = format!("source: source {cwe}\nsink: {}\n", sink(*at, *number));
        let fields = if behaviour.order == FieldOrder::FlowFirst {
            format!("{flow}severity: High\n{place}")
        } else {
            format!("severity: High\ncwe: CWE-{cwe}\n{place}{flow}")
        };
        let _ = write!(text, "\n[F{id:03}] Problem {cwe}\n{fields}evidence:\n  evidence({cwe});\n");
    }
    text + "===AGENT_RESULT_END===\n"
}

/// Starts runs of the agent as long as the plan requests them, and compares the report with the truth.
fn check_disclosure(behaviour: &AgentBehaviour) {
    let dimensions = (0..behaviour.findings.len()).map(dimension).collect();
    let agents = vec![Assignment { agent_id: "x".into(), dimensions, max_turns: None }];
    let team = Team { agents, is_running: true, ..Team::default() };
    let (mut handed, mut log) = (Vec::new(), String::new());
    for cut in &behaviour.cuts {
        let merged = MergedResults::new(&team, handed.clone());
        let Some(run) = merged.agents()[0].next() else { break };
        let text = write_run(behaviour, run, &sinks(&merged, behaviour.completes));
        let text = &text[..(text.len() * cut / 1_000).min(text.len())];
        let _ = writeln!(log, "{:?} in round {}:\n{text}\n", run.kind, run.round);
        handed.push(DeliveredResult {
            origin: "x.txt".to_owned(),
            result: read(text.as_bytes()).results.remove(0),
        });
    }
    let merged = MergedResults::new(&team, handed);
    let report = merged.report();
    let unrecovered = &report.disclosure().unrecovered;
    let lost = behaviour.findings.iter().sum::<usize>() - sinks(&merged, false).len();
    let is_silent = unrecovered.count == 0 && !unrecovered.at_least;
    assert_eq!(sinks(&merged, false).len(), merged.findings().len(), "one is listed twice\n{log}");
    assert!(lost == 0 || !is_silent, "{lost} lost\n{log}");
    assert!(lost == 0 || merged.recovery_state(0) != RecoveryState::Recovered, "{lost} lost\n{log}");
}

/// Returns the sinks of all findings, or only of those that are complete.
fn sinks(merged: &MergedResults, are_whole: bool) -> BTreeSet<String> {
    let findings = merged.findings().iter().map(|merged| &merged.finding);
    let found = findings.filter(|finding| !are_whole || !finding.originally_truncated);
    found.filter_map(|finding| finding.sink.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn repeated_cuts_of_an_agent_lose_nothing_silently(manner in agent_behaviour()) {
        check_disclosure(&manner);
    }
}

/// Wherever a finding was cut, its completion replaces that finding and no other.
#[test]
fn a_cut_finding_and_its_completion_are_one_finding() {
    let header = "===AGENT_RESULT===\nagent_id: x\ndimensions: d\ndeclared_findings:";
    let whole = |id: u32, title: &str, place: &str| {
        format!(
            "\n[F{id:03}] {title}\nseverity: High\nlocation: {place}\nsource: s\nsink: k\nevidence:\n  e({id});\n"
        )
    };
    let handed = |texts: &[String]| {
        let handed = |text: &String| DeliveredResult {
            origin: "x.txt".to_owned(),
            result: read(text.as_bytes()).results.remove(0),
        };
        MergedResults::new(&Team::default(), texts.iter().map(handed).collect())
    };
    for cut in [
        "source: s\nsink: k\n",
        "source: s\nsink: k\nseverity: High\n",
        "source: s\nsink: k\nseverity: High\nlocation: src/",
        "source: s\nsink: k\nlocation: src/b.rs:20\nseverity: High\n",
        "severity: High\nlocation: src/b.rs:20\nsource: s\nsink: k\nevidence:\n  e(",
    ] {
        let first = format!("{header} 4\n{}\n[F002] Two\n{cut}", whole(1, "One", "src/a.rs:1"));
        let second = format!("{header} 1\n{}===AGENT_RESULT_END===\n", whole(1, "Two", "src/b.rs:20-31"));
        let merged = handed(&[first.clone(), second.clone()]);
        let count = |merged: &MergedResults| {
            (merged.findings().len(), merged.report().disclosure().unrecovered.count)
        };
        assert_eq!(count(&merged), (2, 2), "{cut}");
        assert!(merged.findings().iter().all(|merged| !merged.finding.originally_truncated), "{cut}");
        // The same words at another place are another finding.
        let third = format!("{header} 1\n{}===AGENT_RESULT_END===\n", whole(1, "Two", "src/c.rs:7"));
        assert_eq!(count(&handed(&[first, second, third])), (3, 1), "{cut}");
    }
}
