//! The options and environment variables that connect each agent to a gateway.

use std::ffi::OsString;
use std::path::Path;

use endmark_config::Environment;
use endmark_guard::Agent;
use endmark_runs::Task;
use endmark_wire::anthropic_messages::ANTHROPIC;
use endmark_wire::gemini::GEMINI;
use endmark_wire::openai_chat::OPENAI;
use endmark_wire::provider::Provider;
use serde_json::{Map, Value, json};

/// The option of Claude Code for additional settings, as JSON or as a file. They override the user's and the
/// project's settings.
pub(super) const CLAUDE_SETTINGS: &str = "--settings";
/// Variables that contain an agent's key. All agents of a provider read the first one.
const KEY_VARIABLES: [(&Provider, &[&str]); 3] = [
    (&OPENAI, &["OPENAI_API_KEY"]),
    (&ANTHROPIC, &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]),
    (&GEMINI, &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
];
/// Variables with the address of a proxy. Connections to this machine must not use a proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// Variables with the hosts that are reached without a proxy.
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// Variables with which Gemini CLI uses another service than the one of its key.
const GEMINI_OTHER_SERVICE_VARIABLES: [&str; 2] = ["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"];
/// Variable of opencode with a configuration that overrides its files.
const OPENCODE_CONFIG_VARIABLE: &str = "OPENCODE_CONFIG_CONTENT";
/// The providers of opencode that have their own format, with the API version in their addresses. Other
/// providers use OpenAI's format.
const OPENCODE_PROVIDERS: [(&str, &Provider, &str); 3] =
    [("openai", &OPENAI, "v1"), ("anthropic", &ANTHROPIC, "v1"), ("google", &GEMINI, "v1beta")];

/// Returns the variables that may contain a key of this provider.
pub(super) fn key_variables(provider: &Provider) -> &'static [&'static str] {
    let found = KEY_VARIABLES.iter().find(|(of, _)| *of == provider);
    found.map_or(&[], |(_, names)| names)
}

/// Returns the providers whose formats an agent may use.
pub(super) fn agent_providers(agent: Agent) -> Vec<&'static Provider> {
    match agent {
        Agent::Claude => vec![&ANTHROPIC],
        Agent::Codex => vec![&OPENAI],
        Agent::Gemini => vec![&GEMINI],
        Agent::Opencode | Agent::Plain => Provider::all(),
    }
}

/// Returns the command with additional options at the end, because the last of two contradictory options
/// applies.
pub(super) fn command_with_options(
    agent: Agent,
    command: &[OsString],
    origin: &str,
    file: Option<&Path>,
) -> Vec<OsString> {
    let mut words = command.to_vec();
    let options = match (agent, file) {
        (Agent::Codex, _) => codex_options(origin),
        (Agent::Claude, Some(file)) => vec![CLAUDE_SETTINGS.into(), file.into()],
        _ => return words,
    };
    let is_end = |word: &OsString| {
        word == "--" || (agent == Agent::Codex && word.to_str().is_some_and(|word| word.contains("{prompt}")))
    };
    let at = words.iter().position(is_end).unwrap_or(words.len());
    words.splice(at..at, options);
    words
}

fn codex_options(origin: &str) -> Vec<OsString> {
    // Codex uses HTTP for custom providers. For its built-in provider, it first tries a WebSocket.
    let options = [
        "model_provider=\"endmark\"".to_owned(),
        "model_providers.endmark.name=\"Endmark\"".to_owned(),
        format!("model_providers.endmark.base_url=\"{}\"", OPENAI.base_url_for_origin(origin)),
        "model_providers.endmark.wire_api=\"responses\"".to_owned(),
        "model_providers.endmark.env_key=\"OPENAI_API_KEY\"".to_owned(),
    ];
    options.into_iter().flat_map(|option| ["-c".to_owned(), option]).map(OsString::from).collect()
}

/// Returns the variables to set: the gateway's address, and the run's key instead of the key of each
/// provider.
pub(super) fn gateway_variables(
    task: &Task,
    served: &[&'static Provider],
    origin: &str,
    secret: &str,
    environment: &Environment,
) -> Vec<(String, OsString)> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for provider in served {
        variables.push((provider.base_url_variable.to_owned(), provider.base_url_for_origin(origin)));
        let names = key_variables(provider).iter().enumerate();
        let set = names.filter(|(place, name)| *place == 0 || environment.get(name).is_some());
        variables.extend(set.map(|(_, name)| ((*name).to_owned(), secret.to_owned())));
    }
    if PROXY_VARIABLES.iter().any(|name| environment.get(name).is_some()) {
        for name in NO_PROXY_VARIABLES {
            let others = environment.get(name).map(|others| format!("{others},")).unwrap_or_default();
            variables.push((name.to_owned(), format!("{others}127.0.0.1")));
        }
    }
    if task.agent == Agent::Gemini {
        variables.extend(GEMINI_OTHER_SERVICE_VARIABLES.map(|name| (name.to_owned(), "false".to_owned())));
    }
    if task.agent == Agent::Opencode {
        let found =
            environment.get(OPENCODE_CONFIG_VARIABLE).and_then(|text| serde_json::from_str(text).ok());
        let config =
            opencode_config(found.unwrap_or_else(|| json!({})), &task.command, served, origin, secret);
        variables.push((OPENCODE_CONFIG_VARIABLE.to_owned(), config.to_string()));
    }
    variables.into_iter().map(|(name, value)| (name, value.into())).collect()
}

/// Returns a configuration of opencode with the gateway's addresses, for its built-in providers and the
/// provider of the model in the command.
fn opencode_config(
    mut config: Value,
    command: &[OsString],
    served: &[&'static Provider],
    origin: &str,
    secret: &str,
) -> Value {
    let is_served = |provider: &Provider| served.contains(&provider);
    let mut ways: Vec<(String, &str)> = OPENCODE_PROVIDERS
        .into_iter()
        .filter(|(_, provider, _)| is_served(provider))
        .map(|(name, _, version)| (name.to_owned(), version))
        .collect();
    let named = OPENCODE_PROVIDERS.map(|(name, ..)| name);
    if let Some(other) = model_provider(command).filter(|other| !named.contains(&other.as_str())) {
        ways.push((other, "v1"));
    }
    for (name, version) in ways {
        let options = json!({"baseURL": format!("{origin}/{version}"), "apiKey": secret});
        set_fields(&mut config, &["provider", &name, "options"], options);
    }
    config
}

/// Returns the provider in the option `--model PROVIDER/MODEL`.
fn model_provider(command: &[OsString]) -> Option<String> {
    let words: Vec<&str> = command.iter().filter_map(|word| word.to_str()).collect();
    let behind = words.windows(2).find(|pair| matches!(pair[0], "--model" | "-m")).map(|pair| pair[1]);
    let model = behind.or_else(|| words.iter().find_map(|word| word.strip_prefix("--model=")))?;
    model.split_once('/').map(|(provider, _)| provider.to_owned())
}

/// Sets fields of the object at this path. Its other fields are kept.
pub(super) fn set_fields(config: &mut Value, path: &[&str], fields: Value) {
    let mut place = config;
    for name in path {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[*name];
    }
    match (place, fields) {
        (Value::Object(there), Value::Object(fields)) => there.extend(fields),
        (place, fields) => *place = fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn codex_gets_the_options_of_its_subcommand() {
        let words = command_with_options(
            Agent::Codex,
            &split_words("codex exec --json -c a=1 {prompt}"),
            "http://h:1",
            None,
        );
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words[..7], ["codex", "exec", "--json", "-c", "a=1", "-c", "model_provider=\"endmark\""]);
        assert!(words.contains(&"model_providers.endmark.base_url=\"http://h:1/v1\""));
        assert_eq!(words[words.len() - 1], "{prompt}");
    }

    #[test]
    fn opencode_keeps_its_other_settings() {
        let found = json!({"theme": "dark", "provider": {"mock": {"options": {"timeout": 5}}}});
        let command = split_words("opencode run --model mock/work {prompt}");
        let config = opencode_config(found, &command, &[&ANTHROPIC], "http://h:1", "em_sk_1");
        assert_eq!(config["theme"], "dark");
        let way = |provider: &str| &config["provider"][provider]["options"];
        assert_eq!(*way("mock"), json!({"timeout": 5, "baseURL": "http://h:1/v1", "apiKey": "em_sk_1"}));
        assert_eq!(way("anthropic")["baseURL"], "http://h:1/v1");
        assert!(config["provider"]["openai"].is_null());
    }
}
