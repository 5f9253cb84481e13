//! Derives the agent and the run of a result from its file name. (AR-4)

use std::collections::BTreeMap;

use super::merge::{DeliveredResult, fold_name};
use super::recovery::{Assignment, Run, RunKind};

/// The run that a file name states. Earlier runs sort first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedRun {
    /// The round, from 1. `u32::MAX` for an emergency run, which follows all others.
    round: u32,
    is_retry: bool,
}

impl NamedRun {
    /// Parses the run in a file name if the file is named after this agent: `auth-2.txt`, `auth-2.retry.txt`,
    /// `auth-2.2.txt`.
    pub(super) fn parse(origin: &str, agent_id: &str) -> Option<Self> {
        let name = file_name(origin).to_lowercase();
        let rest = name.strip_prefix(&fold_name(agent_id))?;
        let mut run = Self { round: 1, is_retry: false };
        if rest.is_empty() {
            return Some(run);
        }
        for word in rest.strip_prefix('.')?.split('.') {
            match (word, word.parse()) {
                ("retry", _) => run.is_retry = true,
                ("supplement", _) => run.round = run.round.max(2),
                ("emergency", _) => run.round = u32::MAX,
                (_, Ok(round)) => run.round = round,
                _ => break,
            }
        }
        Some(run)
    }

    /// Whether this run comes after the expected run, which therefore delivered nothing. Any later run comes after the
    /// first one, and a retry comes after its supplement.
    pub(super) fn follows(self, run: &Run) -> bool {
        match run.kind {
            RunKind::First => self.round > 1 || self.is_retry,
            RunKind::Supplement => self.is_retry && self.round == run.round,
            RunKind::Retry | RunKind::Emergency | RunKind::Unasked => false,
        }
    }
}

/// Sorts the files of one agent in one folder by the runs in their names, because a shell sorts `auth-2.retry.txt`
/// before `auth-2.txt`, and `part.10.txt` before `part.2.txt`. All other results keep their places. `agent` returns
/// the agent of a result.
pub(super) fn sort_by_run(
    delivered: Vec<DeliveredResult>,
    agent: impl Fn(&DeliveredResult) -> Option<String>,
) -> Vec<DeliveredResult> {
    let mut named: BTreeMap<(String, String, String), Vec<(NamedRun, usize)>> = BTreeMap::new();
    for (place, handed) in delivered.iter().enumerate() {
        let (origin, owner) = (&handed.origin, agent(handed).unwrap_or_default());
        let name = file_name(origin);
        // In the name of a file that is not named after its agent, the run follows another word: `part.2.txt`.
        let stem = name.split('.').next().unwrap_or(name);
        let mut runs = [&*owner, stem].into_iter();
        let run =
            runs.find_map(|named_for| Some((NamedRun::parse(origin, named_for)?, fold_name(named_for))));
        if let Some((run, named_for)) = run {
            let folder = origin.strip_suffix(name).unwrap_or_default();
            named.entry((folder.to_owned(), fold_name(&owner), named_for)).or_default().push((run, place));
        }
    }
    let mut sorted: Vec<(usize, DeliveredResult)> = delivered.into_iter().enumerate().collect();
    for runs in named.values_mut() {
        let places: Vec<usize> = runs.iter().map(|(_, place)| *place).collect();
        runs.sort_unstable();
        for ((_, from), to) in runs.iter().zip(places) {
            if let Some((place, _)) = sorted.get_mut(*from) {
                *place = to;
            }
        }
    }
    sorted.sort_unstable_by_key(|(place, _)| *place);
    sorted.into_iter().map(|(_, delivered)| delivered).collect()
}

/// Returns the file name of a path.
fn file_name(origin: &str) -> &str {
    origin.rsplit(['/', '\\']).next().unwrap_or(origin)
}

/// Returns the agent of the team that a file is named after.
pub(super) fn agent_in_name(origin: &str, agents: &[Assignment]) -> Option<String> {
    let names_file = |agent: &&Assignment| NamedRun::parse(origin, &agent.agent_id).is_some();
    agents.iter().filter(names_file).map(|agent| agent.agent_id.clone()).max_by_key(String::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[test]
    fn the_files_of_an_agent_are_ordered_by_run() {
        let ordered = |origins: &[&str]| {
            let result = read(b"===AGENT_RESULT===\nagent_id: a-1\n").results.remove(0);
            let delivered =
                |origin: &&str| DeliveredResult { origin: (*origin).to_owned(), result: result.clone() };
            let agent = |delivered: &DeliveredResult| {
                Some(if delivered.origin.contains("b-1") { "b-1" } else { "a-1" }.to_owned())
            };
            let delivered = sort_by_run(origins.iter().map(delivered).collect(), agent);
            delivered.into_iter().map(|delivered| delivered.origin).collect::<Vec<_>>().join(" ")
        };
        for (given, wanted) in [
            (&["a-1.retry.txt", "a-1.txt"][..], "a-1.txt a-1.retry.txt"),
            (
                &["a-1.10.txt", "a-1.2.txt", "a-1.retry.txt", "A-1.txt"],
                "A-1.txt a-1.retry.txt a-1.2.txt a-1.10.txt",
            ),
            (
                &["a-1.2.retry.txt", "a-1.2.txt", "a-1.emergency.txt", "a-1.txt"],
                "a-1.txt a-1.2.txt a-1.2.retry.txt a-1.emergency.txt",
            ),
            // Files in different folders may be from different rounds.
            (&["r1/a-1.retry.txt", "r2/a-1.txt", "r1/a-1.txt"], "r1/a-1.txt r2/a-1.txt r1/a-1.retry.txt"),
            // Files of another agent, or with no run in their names.
            (&["a-1.2.txt", "b-1.txt", "second.txt", "a-1.txt"], "a-1.txt b-1.txt second.txt a-1.2.txt"),
            (&["a-1.txt", "a-1.json", "a-1.md"], "a-1.txt a-1.json a-1.md"),
            // Files that are not named after their agent.
            (
                &["part.10.txt", "part.2.txt", "part.txt", "b-1.txt"],
                "part.txt part.2.txt part.10.txt b-1.txt",
            ),
            (&["out.2.txt", "part.txt", "out.txt"], "out.txt part.txt out.2.txt"),
        ] {
            assert_eq!(ordered(given), wanted);
        }
    }
}
