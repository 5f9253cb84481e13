//! An agent that is cut again and again, and does what the plan asks for: what is said of its findings is true. (AR-4, AR-6)

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use crate::{Assignment, Handed, Merged, RecoveryState, Run, Team, read};

/// How an agent goes about its runs.
#[derive(Debug, Clone)]
struct Manner {
    /// For each dimension how many findings there are.
    findings: Vec<usize>,
    later: Later,
    declares: bool,
    prints_checkpoints: bool,
    /// Where in thousandths of its text each run is cut; beyond all of it not at all.
    cuts: Vec<usize>,
}

/// What it tells in a later run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Later {
    /// All of it again.
    All,
    /// What is not handed over yet, with ids from the first.
    Rest,
    /// The same, with ids that go on.
    RestGoingOn,
}

fn manner() -> impl Strategy<Value = Manner> {
    let cuts = proptest::collection::vec(0_usize..1_400, 7);
    let later = prop_oneof![Just(Later::All), Just(Later::Rest), Just(Later::RestGoingOn)];
    let findings = proptest::collection::vec(0_usize..4, 1..4);
    (findings, later, any::<bool>(), any::<bool>(), cuts).prop_map(
        |(findings, later, declares, prints_checkpoints, cuts)| Manner {
            findings,
            later,
            declares,
            prints_checkpoints,
            cuts,
        },
    )
}

fn dimension(at: usize) -> String {
    format!("dimension {at}")
}

/// The file that only this finding is in.
fn place(dimension: usize, number: usize) -> String {
    format!("src/{dimension}{number}.rs")
}

/// What the agent writes in a run that is not cut. `handed` are the places of the findings that it has handed over.
fn written(manner: &Manner, run: &Run, handed: &BTreeSet<String>) -> String {
    let of_run = |at: &usize| run.dimensions.contains(&dimension(*at));
    let dimensions: Vec<usize> = (0..manner.findings.len()).filter(of_run).collect();
    let is_told = |place: &String| manner.later == Later::All || !handed.contains(place);
    let told = dimensions.iter().flat_map(|at| (0..manner.findings[*at]).map(move |number| (*at, number)));
    let told: Vec<(usize, usize)> = told.filter(|(at, number)| is_told(&place(*at, *number))).collect();
    let names: Vec<String> = dimensions.iter().map(|at| dimension(*at)).collect();
    let mut text = String::new();
    if manner.prints_checkpoints {
        let left = names.last().map_or("", String::as_str);
        let made = told.iter().filter(|(at, _)| Some(at) != dimensions.last()).count();
        let _ = writeln!(text, "[CHECKPOINT] turn:10 findings:{made} files_read:1 remaining_dims:{left}");
    }
    let _ = writeln!(text, "===AGENT_RESULT===\nagent_id: x\ndimensions: {}", names.join(", "));
    if manner.declares {
        let _ = writeln!(text, "declared_findings: {}", told.len());
    }
    let first = if manner.later == Later::RestGoingOn { handed.len() + 1 } else { 1 };
    for ((at, number), id) in told.iter().zip(first..) {
        let cwe = 100 + at * 10 + number;
        let _ = write!(
            text,
            "\n[F{id:03}] Problem {cwe}\nseverity: High\ncwe: CWE-{cwe}\nlocation: {}:9\nsource: source {cwe}\n\
             sink: sink {cwe}\nevidence:\n  evidence({cwe});\n",
            place(*at, *number)
        );
    }
    text + "===AGENT_RESULT_END===\n"
}

/// Lets the agent work as long as the plan asks it to, and compares what is said with what is so.
fn check(manner: &Manner) {
    let dimensions = (0..manner.findings.len()).map(dimension).collect();
    let agents = vec![Assignment { agent_id: "x".into(), dimensions, max_turns: None }];
    let team = Team { agents, is_running: true, ..Team::default() };
    let (mut handed, mut log) = (Vec::new(), String::new());
    for cut in &manner.cuts {
        let merged = Merged::new(&team, handed.clone());
        let Some(run) = merged.agents()[0].next() else { break };
        let text = written(manner, run, &places(&merged));
        let text = &text[..(text.len() * cut / 1_000).min(text.len())];
        let _ = writeln!(log, "{:?} in round {}:\n{text}\n", run.kind, run.round);
        handed.push(Handed { origin: "x.txt".to_owned(), result: read(text.as_bytes()).results.remove(0) });
    }
    let merged = Merged::new(&team, handed);
    let report = merged.report();
    let unrecovered = &report.disclosure().unrecovered;
    let lost = manner.findings.iter().sum::<usize>() - places(&merged).len();
    let is_silent = unrecovered.count == 0 && !unrecovered.at_least;
    assert!(lost == 0 || !is_silent, "{lost} lost\n{log}");
    assert!(lost == 0 || merged.recovery_state(0) != RecoveryState::Recovered, "{lost} lost\n{log}");
}

fn places(merged: &Merged) -> BTreeSet<String> {
    merged.findings().iter().map(|merged| merged.finding.places()[0].file.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_silently_however_often_an_agent_is_cut(manner in manner()) {
        check(&manner);
    }
}
