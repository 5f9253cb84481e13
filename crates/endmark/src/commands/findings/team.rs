//! The file that says who is in a team.

use std::collections::HashSet;
use std::path::Path;

use endmark_core::findings::{Assignment, RecoveryPolicy, Team};
use serde::Deserialize;

use crate::context::Context;
use crate::error::CommandError;
use crate::input::Input;

/// The team's file. An unknown name is a typing error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    agents: Vec<Member>,
    rounds: Option<u32>,
    emergency: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    agent_id: String,
    dimensions: Vec<String>,
    max_turns: Option<u32>,
}

const HINT: &str = "A team is {\"agents\": [{\"agent_id\": \"auth-2\", \"dimensions\": [\"authentication\"], \
                    \"max_turns\": 40}], \"rounds\": 2, \"emergency\": true}; only agent_id and dimensions are needed.";

/// Reads the team's file; without one the team is whoever hands something over.
pub(super) fn read(context: &Context, path: Option<&Path>, is_running: bool) -> Result<Team, CommandError> {
    let Some(path) = path else {
        return Ok(Team { is_running, ..Team::default() });
    };
    let name = path.display();
    let invalid = |message: String| CommandError::input("invalid_team", message, HINT);
    let text = Input::open(Some(path), context.terminal)?.text()?;
    let file: File =
        serde_json::from_str(&text).map_err(|error| invalid(format!("`{name}` is no team: {error}")))?;
    let mut known = HashSet::new();
    for agent in &file.agents {
        let id = &agent.agent_id;
        if id.trim().is_empty() {
            return Err(invalid(format!("`{name}`: an agent has no name")));
        }
        if !known.insert(id.trim().to_lowercase()) {
            return Err(invalid(format!("`{name}` names the agent `{id}` twice")));
        }
        if agent.dimensions.is_empty() {
            return Err(invalid(format!("`{name}`: the agent `{id}` has no dimensions")));
        }
        if agent.max_turns == Some(0) {
            return Err(invalid(format!("`{name}`: the agent `{id}` has no turn")));
        }
    }
    if file.rounds == Some(0) {
        return Err(invalid(format!("`{name}`: there is at least one round")));
    }
    let policy = RecoveryPolicy::default();
    let agents = file.agents.into_iter().map(|agent| Assignment {
        agent_id: agent.agent_id,
        dimensions: agent.dimensions,
        max_turns: agent.max_turns,
    });
    Ok(Team {
        agents: agents.collect(),
        policy: RecoveryPolicy {
            rounds: file.rounds.unwrap_or(policy.rounds),
            emergency: file.emergency.unwrap_or(policy.emergency),
        },
        is_running,
    })
}
