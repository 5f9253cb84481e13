//! The file that lists the agents of a team.

use std::path::Path;

use endmark_envelope::Warning;
use endmark_failure::CommandError;
use endmark_findings::{MergedResults, Team};

use crate::context::Context;
use crate::input::Input;

const TEAM_FILE_HINT: &str = "A team is {\"agents\": [{\"agent_id\": \"auth-2\", \"dimensions\": [\"authentication\"], \
                    \"max_turns\": 40}], \"rounds\": 2, \"emergency\": true}; only agent_id and dimensions are required.";

/// Returns a warning for each result of an agent that is not in the team.
pub(super) fn unknown_agent_warnings(merged: &MergedResults) -> Vec<Warning> {
    let of_others = merged.not_in_team().map(|(handed, agent)| {
        let message = format!(
            "{}: the agent `{agent}` is not in the team, and counts as an additional one: correct its name, or add it to --team",
            handed.origin
        );
        Warning::notice("NOT_IN_TEAM", message)
    });
    of_others.collect()
}

/// Reads the team's file. Without one, every agent that delivers a result is in the team.
pub(super) fn read_team(
    context: &Context,
    path: Option<&Path>,
    is_running: bool,
) -> Result<Team, CommandError> {
    let Some(path) = path else {
        return Ok(Team { is_running, ..Team::default() });
    };
    let text = Input::open_file(path, context.terminal)?.read_hand_written()?;
    let team = Team::parse(&text).map_err(|error| {
        let message = format!("`{}` is not a team: {error}", path.display());
        CommandError::input("invalid_team", message, TEAM_FILE_HINT)
    })?;
    Ok(Team { is_running, ..team })
}
