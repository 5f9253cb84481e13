//! Parses a team file.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Error, SeqAccess, Visitor};

use super::merge::Team;
use super::recovery::{Assignment, RecoveryPolicy};

/// The content of a team file. Unknown fields are rejected, because they are probably typing errors.
///
/// Values are checked while they are parsed, so that errors have a line and a column.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamFile {
    #[serde(deserialize_with = "deserialize_members")]
    agents: Vec<TeamMember>,
    #[serde(default, deserialize_with = "deserialize_rounds")]
    rounds: Option<u32>,
    emergency: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamMember {
    #[serde(deserialize_with = "deserialize_name")]
    agent_id: String,
    #[serde(deserialize_with = "deserialize_dimensions")]
    dimensions: Vec<String>,
    #[serde(default, deserialize_with = "deserialize_turns")]
    max_turns: Option<u32>,
}

/// Parses an agent's name, which must not be blank.
fn deserialize_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.trim().is_empty() {
        return Err(D::Error::custom("an agent has no name: `agent_id` is empty"));
    }
    Ok(name)
}

fn deserialize_dimensions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let dimensions = Vec::<String>::deserialize(deserializer)?;
    if dimensions.is_empty() {
        return Err(D::Error::custom("an agent has no dimensions: name what it must examine"));
    }
    if dimensions.iter().any(|dimension| dimension.trim().is_empty()) {
        return Err(D::Error::custom("a dimension has no name"));
    }
    let mut known = HashSet::new();
    if let Some(twice) = dimensions.iter().find(|dimension| !known.insert(normalise_dimension(dimension))) {
        return Err(D::Error::custom(format_args!("an agent has the dimension `{twice}` twice")));
    }
    Ok(dimensions)
}

/// Returns a dimension without case and punctuation, for comparison.
fn normalise_dimension(name: &str) -> String {
    let letters: String =
        name.chars().filter(|ch| ch.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    if letters.is_empty() { name.trim().to_owned() } else { letters }
}

fn deserialize_turns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    deserialize_at_least_one(
        deserializer,
        "an agent needs at least one turn: omit `max_turns` if there is no limit",
    )
}

fn deserialize_rounds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    deserialize_at_least_one(deserializer, "there is at least one round: `rounds` counts the first one")
}

fn deserialize_at_least_one<'de, D: Deserializer<'de>>(
    deserializer: D,
    problem: &'static str,
) -> Result<Option<u32>, D::Error> {
    let number = Option::<u32>::deserialize(deserializer)?;
    if number == Some(0) { Err(D::Error::custom(problem)) } else { Ok(number) }
}

/// Parses the agents. Their names must be unique.
fn deserialize_members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<TeamMember>, D::Error> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<TeamMember>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list of agents")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<TeamMember>, A::Error> {
            let (mut members, mut known) = (Vec::new(), HashSet::new());
            while let Some(member) = list.next_element::<TeamMember>()? {
                // Quotes and emphasis around a name do not make it a different name.
                let is_ornament = |ch: char| ch.is_whitespace() || "`*\"'<>".contains(ch);
                if !known.insert(member.agent_id.trim_matches(is_ornament).to_lowercase()) {
                    let id = &member.agent_id;
                    return Err(de::Error::custom(format_args!("the agent `{id}` is named twice")));
                }
                members.push(member);
            }
            Ok(members)
        }
    }

    deserializer.deserialize_seq(Members)
}

impl Team {
    /// Parses a team: `{"agents": [{"agent_id", "dimensions", "max_turns"}], "rounds", "emergency"}`. Only `agent_id`
    /// and `dimensions` are required. A byte order mark is allowed.
    ///
    /// ```
    /// use endmark_findings::Team;
    /// let team = Team::parse(r#"{"agents": [{"agent_id": "auth-2", "dimensions": ["authentication"]}]}"#)?;
    /// assert_eq!((team.agents.len(), team.policy.rounds), (1, 2));
    /// assert!(Team::parse(r#"{"agents": [{"agent_id": " ", "dimensions": ["x"]}]}"#).is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error with line and column for an unknown field, an agent without a name or dimensions, or a
    /// repeated agent.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        let file: TeamFile = serde_json::from_str(json.strip_prefix('\u{feff}').unwrap_or(json))?;
        let policy = RecoveryPolicy::default();
        let agents = file.agents.into_iter().map(|agent| Assignment {
            agent_id: agent.agent_id,
            dimensions: agent.dimensions,
            max_turns: agent.max_turns,
        });
        Ok(Self {
            agents: agents.collect(),
            policy: RecoveryPolicy {
                rounds: file.rounds.unwrap_or(policy.rounds),
                emergency: file.emergency.unwrap_or(policy.emergency),
            },
            is_running: false,
        })
    }
}
