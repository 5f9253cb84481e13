//! `endmark findings plan`: who does what again. (AR-4)

use std::fmt::Write;

use endmark_envelope::FieldPath;
use endmark_failure::{CommandError, in_one_line};
use endmark_findings::{Merged, Recovery, RecoveryState, Run};
use serde::Serialize;

use super::pages::Asked;
use super::{sources, team, warnings};
use crate::arguments::findings::Plan;
use crate::context::Context;
use crate::view::answer::{Answer, to_data};

/// A plan, as it is answered.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Report<'a> {
    /// Whether there is nothing left to do.
    done: bool,
    /// What is to be done now; the result of each is handed over under its `agent_id`.
    runs: Vec<&'a Run>,
    agents: Vec<AgentReport<'a>>,
    /// Files with results that do not say whose they are, and that are named for no agent of the team.
    not_attributed: Vec<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AgentReport<'a> {
    agent_id: &'a str,
    dimensions: &'a [String],
    state: RecoveryState,
    past: Vec<PastReport<'a>>,
    /// What stays open when no run is left.
    gaps: &'a [String],
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PastReport<'a> {
    run: &'a Run,
    /// `whole`, `mild` or `severe`.
    cut: &'static str,
    /// What it has left open.
    remaining: &'a [String],
}

/// Plans from all results so far.
pub(super) fn run(context: &Context, arguments: &Plan) -> Result<Answer, CommandError> {
    let sources = sources::read_all(context, &arguments.team.files)?;
    let mut team = team::read(context, arguments.team.team.as_deref(), arguments.team.running)?;
    team.policy.rounds = arguments.rounds.unwrap_or(team.policy.rounds);
    team.policy.emergency &= !arguments.no_emergency;
    let (remarks, omitted) = sources::remarks(&sources);
    let said = warnings(&remarks, omitted);
    let merged = Merged::new(&team, sources::handed(sources));
    let report = Report::of(&merged);
    let text = report.text();
    let lost = (!report.not_attributed.is_empty()).then(|| {
        let files = report.not_attributed.join(", ");
        endmark_envelope::Warning::notice(
            "NOT_ATTRIBUTED",
            format!(
                "{files}: it is not known whose this is; name the file for its agent, and the agent in --team"
            ),
        )
    });
    let (agents, given) = (FieldPath::data().key("agents"), &arguments.team);
    let asked =
        Asked { command: "plan", files: &given.files, with: Some(&team), cursor: given.cursor.as_deref() };
    let pages = asked.in_pages(agents, context)?;
    let answer = Answer::yes(to_data(&report)?, text).with_warnings(said).with_warnings(lost);
    Ok(answer.with_warnings(team::not_in_team(&merged)).with_pages(pages))
}

impl<'a> Report<'a> {
    fn of(merged: &'a Merged) -> Self {
        let runs: Vec<&Run> = merged
            .agents()
            .iter()
            .filter(|agent| !agent.past().is_empty())
            .filter_map(Recovery::next)
            .collect();
        Self {
            done: runs.is_empty()
                && merged.not_attributed().next().is_none()
                && merged.agents().iter().all(|agent| agent.next().is_none()),
            runs,
            agents: (0..)
                .zip(merged.agents())
                .map(|(at, agent)| AgentReport::of(merged, at, agent))
                .collect(),
            not_attributed: merged.not_attributed().map(|handed| handed.origin.as_str()).collect(),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for run in &self.runs {
            let limit = |limit: Option<u32>, of: &str| {
                limit.map_or(String::new(), |limit| format!(", at most {limit} {of}"))
            };
            let _ = writeln!(
                text,
                "{}: {} in round {}: {}{}{}",
                in_one_line(&run.agent_id),
                run.kind.name(),
                run.round,
                in_one_line(&run.dimensions.join(", ")),
                limit(run.max_turns, "turns"),
                limit(run.max_findings, "findings")
            );
        }
        for agent in self.agents.iter().filter(|agent| !agent.gaps.is_empty()) {
            let (id, gaps) = (in_one_line(agent.agent_id), in_one_line(&agent.gaps.join(", ")));
            let _ = writeln!(text, "{id}: no run is left; may have gaps: {gaps}");
        }
        let is_short =
            |agent: &&AgentReport<'_>| agent.gaps.is_empty() && agent.state == RecoveryState::NotRecovered;
        for agent in self.agents.iter().filter(is_short) {
            let id = in_one_line(agent.agent_id);
            let _ = writeln!(
                text,
                "{id}: all was looked into again, but findings are still missing: `endmark findings report` says how many"
            );
        }
        for origin in &self.not_attributed {
            let _ = writeln!(
                text,
                "{}: nothing can be planned, since it is not known whose it is",
                in_one_line(origin)
            );
        }
        if text.is_empty() {
            text.push_str(if self.done {
                "Nothing is to be done again.\n"
            } else {
                "Nothing yet: agents are still at it.\n"
            });
        }
        text
    }
}

impl<'a> AgentReport<'a> {
    fn of(merged: &Merged, at: usize, agent: &'a Recovery) -> Self {
        Self {
            agent_id: &agent.assignment().agent_id,
            dimensions: &agent.assignment().dimensions,
            state: merged.recovery_state(at),
            past: agent
                .past()
                .iter()
                .map(|past| PastReport { run: &past.run, cut: past.cut.name(), remaining: &past.remaining })
                .collect(),
            gaps: agent.gaps(),
        }
    }
}
