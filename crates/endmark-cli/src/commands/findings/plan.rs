//! `endmark findings plan`: plans which agent repeats which work (AR-4).

use std::fmt::Write;

use endmark_envelope::FieldPath;
use endmark_failure::{CommandError, to_single_line};
use endmark_findings::{AgentPlan, MergedResults, RecoveryState};

use super::pages::ListIdentity;
use super::{remark_warnings, sources, team};
use crate::arguments::findings::Plan;
use crate::context::Context;
use crate::view::answer::{Answer, to_data};

/// Prints a plan, based on all results so far.
pub(super) fn run(context: &Context, arguments: &Plan) -> Result<Answer, CommandError> {
    let sources = sources::read_all(context, &arguments.team.files)?;
    let mut team = team::read_team(context, arguments.team.team.as_deref(), arguments.team.running)?;
    team.policy.rounds = arguments.rounds.unwrap_or(team.policy.rounds);
    team.policy.emergency &= !arguments.no_emergency;
    let (remarks, omitted) = sources::remarks(&sources);
    let notices = remark_warnings(&remarks, omitted);
    let merged = MergedResults::new(&team, sources::into_results(sources));
    let report = merged.plan();
    let text = describe(&report);
    let lost = (!report.not_attributed.is_empty()).then(|| {
        let files = report.not_attributed.join(", ");
        endmark_envelope::Warning::notice(
            "NOT_ATTRIBUTED",
            format!(
                "{files}: the agent is unknown; name the file after its agent, and list the agent in --team"
            ),
        )
    });
    let (agents, given) = (FieldPath::data().key("agents"), &arguments.team);
    let list_identity = ListIdentity {
        command: "plan",
        files: &given.files,
        options: Some(&team),
        cursor: given.cursor.as_deref(),
    };
    let pages = list_identity.into_pages(agents, context)?;
    let answer = Answer::yes(to_data(&report)?, text).with_warnings(notices).with_warnings(lost);
    Ok(answer.with_warnings(team::unknown_agent_warnings(&merged)).with_pages(pages))
}

fn describe(plan: &endmark_findings::Plan<'_>) -> String {
    let mut text = String::new();
    for run in &plan.runs {
        let limit = |limit: Option<u32>, of: &str| {
            limit.map_or(String::new(), |limit| format!(", at most {limit} {of}"))
        };
        let _ = writeln!(
            text,
            "{}: {} in round {}: {}{}{}",
            to_single_line(&run.agent_id),
            run.kind.name(),
            run.round,
            to_single_line(&run.dimensions.join(", ")),
            limit(run.max_turns, "turns"),
            limit(run.max_findings, "findings")
        );
    }
    for agent in plan.agents.iter().filter(|agent| !agent.gaps.is_empty()) {
        let (id, gaps) = (to_single_line(agent.agent_id), to_single_line(&agent.gaps.join(", ")));
        let _ = writeln!(text, "{id}: no runs left; possible gaps: {gaps}");
    }
    let is_short =
        |agent: &&AgentPlan<'_>| agent.gaps.is_empty() && agent.state == RecoveryState::NotRecovered;
    for agent in plan.agents.iter().filter(is_short) {
        let id = to_single_line(agent.agent_id);
        let _ = writeln!(
            text,
            "{id}: all dimensions were repeated, but findings are still missing: `endmark findings report` counts them"
        );
    }
    for origin in &plan.not_attributed {
        let _ =
            writeln!(text, "{}: nothing can be planned because its agent is unknown", to_single_line(origin));
    }
    if text.is_empty() {
        text.push_str(if plan.done {
            "Nothing has to be repeated.\n"
        } else {
            "Nothing yet: agents are still running.\n"
        });
    }
    text
}
