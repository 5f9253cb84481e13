//! The clients with the settings that each one needs, the path of its configuration, and its wire formats.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use endmark_config::Environment;
use endmark_wire::anthropic_messages::Messages;
use endmark_wire::format::WireFormat;
use endmark_wire::gemini::Gemini;
use endmark_wire::openai_chat::Chat;
use endmark_wire::openai_responses::Responses;

use super::document::{ConfigDocument, NewValue, Syntax};

/// The clients that can be connected to Endmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClientChoice {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// The OpenAI libraries, and other programs that read `OPENAI_BASE_URL`
    Openai,
    /// The Anthropic libraries, and other programs that read `ANTHROPIC_BASE_URL`
    Anthropic,
}

impl ClientChoice {
    /// Returns the client's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// The gateway's address, in the forms that clients need.
#[derive(Debug, Clone)]
pub struct GatewayAddress {
    /// The address without an API version, such as `http://127.0.0.1:4141`. It ends with `/u/NAME` for a
    /// named upstream.
    pub root: String,
}

impl GatewayAddress {
    fn versioned_url(&self, version: &str) -> String {
        format!("{}/{version}", self.root)
    }
}

/// Properties of a client.
pub struct ClientProperties {
    /// The client's name for display.
    pub title: &'static str,
    /// The wire formats that the client uses.
    pub formats: &'static [&'static dyn WireFormat],
    /// The syntax of the client's configuration file.
    pub syntax: Syntax,
    /// Notes for the user, one sentence each.
    pub notes: &'static [&'static str],
}

/// A key of a configuration with its required value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredSetting {
    /// The names of the tables and of the key, from the outermost.
    pub path: Vec<String>,
    /// The required value.
    pub value: NewValue,
}

impl RequiredSetting {
    fn text(path: &[&str], value: impl Into<String>) -> Self {
        Self { path: path.iter().map(|&name| name.to_owned()).collect(), value: NewValue::Text(value.into()) }
    }

    /// Returns the path of the key.
    pub fn path(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }
}

/// Returns the formats that a client uses after `endmark setup`.
pub fn required_formats(choice: ClientChoice, model: Option<&str>) -> &'static [&'static dyn WireFormat] {
    match choice {
        // With `--model`, opencode uses only this format for Endmark. The user chooses its other providers.
        ClientChoice::Opencode if model.is_some() => &[&Chat],
        ClientChoice::Opencode => &[],
        _ => ClientProperties::new(choice).formats,
    }
}

/// The providers of opencode with an own address, and the API version in that address.
const OPENCODE_PROVIDERS: [(&str, &str); 3] = [("openai", "v1"), ("anthropic", "v1"), ("google", "v1beta")];

impl ClientProperties {
    /// Returns the properties of this client.
    pub fn new(choice: ClientChoice) -> Self {
        match choice {
            ClientChoice::Claude => Self {
                title: "Claude Code",
                formats: &[&Messages],
                syntax: Syntax::Jsonc,
                notes: &[
                    "Claude Code prefers a project's settings (.claude/settings.json) to these, and these to the shell's variables.",
                    "Claude Code needs an API key (ANTHROPIC_API_KEY, or apiKeyHelper): a claude.ai login works only at Anthropic's address.",
                ],
            },
            ClientChoice::Codex => Self {
                title: "Codex",
                formats: &[&Responses],
                syntax: Syntax::Toml,
                notes: &[
                    "Codex reads the key from OPENAI_API_KEY: a ChatGPT login works only at OpenAI's address.",
                    "Codex lists sessions by provider: sessions of other providers reappear after `--undo`.",
                ],
            },
            ClientChoice::Gemini => Self {
                title: "Gemini CLI",
                formats: &[&Gemini],
                syntax: Syntax::Dotenv,
                notes: &[
                    "Gemini CLI reads only one .env file, and prefers a project's .env or .gemini/.env to this one.",
                    "Gemini CLI needs GEMINI_API_KEY. If its settings.json names a login method, it must be \"gemini-api-key\".",
                ],
            },
            ClientChoice::Opencode => Self {
                title: "opencode",
                formats: &[&Chat, &Responses, &Messages, &Gemini],
                syntax: Syntax::Jsonc,
                notes: &["opencode prefers a project's opencode.json to this one."],
            },
            ClientChoice::Openai => Self {
                title: "the OpenAI libraries",
                formats: &[&Chat, &Responses],
                syntax: Syntax::Dotenv,
                notes: &[
                    "The libraries read the environment: the application must load the .env file, as most applications do.",
                ],
            },
            ClientChoice::Anthropic => Self {
                title: "the Anthropic libraries",
                formats: &[&Messages],
                syntax: Syntax::Dotenv,
                notes: &[
                    "The libraries read the environment: the application must load the .env file, as most applications do.",
                ],
            },
        }
    }
}

/// Returns the path of a client's configuration, found by the client's own rules. Returns `None` without a
/// home folder.
pub fn configuration_path(choice: ClientChoice, environment: &Environment) -> Option<PathBuf> {
    let named = |name: &str| environment.get(name).map(PathBuf::from);
    let home = || named("HOME");
    match choice {
        ClientChoice::Claude => named("CLAUDE_CONFIG_DIR")
            .or_else(|| Some(home()?.join(".claude")))
            .map(|folder| folder.join("settings.json")),
        ClientChoice::Codex => named("CODEX_HOME")
            .or_else(|| Some(home()?.join(".codex")))
            .map(|folder| folder.join("config.toml")),
        ClientChoice::Gemini => {
            named("GEMINI_CLI_HOME").or_else(home).map(|folder| folder.join(".gemini").join(".env"))
        }
        ClientChoice::Opencode => named("OPENCODE_CONFIG").or_else(|| {
            let folder = named("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))?.join("opencode");
            // opencode reads all of these files. The last one has precedence.
            let found = ["opencode.jsonc", "opencode.json", "config.json"]
                .map(|file| folder.join(file))
                .into_iter()
                .find(|file| file.is_file());
            Some(found.unwrap_or_else(|| folder.join("opencode.json")))
        }),
        ClientChoice::Openai | ClientChoice::Anthropic => Some(Path::new(".env").to_owned()),
    }
}

/// Returns the settings that the client's configuration must contain.
pub fn required_settings(
    choice: ClientChoice,
    address: &GatewayAddress,
    model: Option<&str>,
) -> Vec<RequiredSetting> {
    match choice {
        ClientChoice::Claude => {
            vec![RequiredSetting::text(&["env", "ANTHROPIC_BASE_URL"], address.root.clone())]
        }
        ClientChoice::Codex => {
            let provider =
                |key, value: &str| RequiredSetting::text(&["model_providers", "endmark", key], value);
            vec![
                RequiredSetting::text(&["model_provider"], "endmark"),
                provider("name", "Endmark"),
                provider("base_url", &address.versioned_url("v1")),
                // Codex uses HTTP for custom providers. For its built-in provider, it first tries a
                // WebSocket.
                provider("wire_api", "responses"),
                provider("env_key", "OPENAI_API_KEY"),
            ]
        }
        ClientChoice::Gemini => {
            vec![RequiredSetting::text(&["GOOGLE_GEMINI_BASE_URL"], address.root.clone())]
        }
        ClientChoice::Openai => {
            vec![RequiredSetting::text(&["OPENAI_BASE_URL"], address.versioned_url("v1"))]
        }
        ClientChoice::Anthropic => vec![RequiredSetting::text(&["ANTHROPIC_BASE_URL"], address.root.clone())],
        ClientChoice::Opencode => match model {
            Some(model) => vec![
                RequiredSetting::text(&["provider", "endmark", "npm"], "@ai-sdk/openai-compatible"),
                RequiredSetting::text(&["provider", "endmark", "name"], "Endmark"),
                RequiredSetting::text(
                    &["provider", "endmark", "options", "baseURL"],
                    address.versioned_url("v1"),
                ),
                // A custom provider has no key unless its options contain one.
                RequiredSetting::text(&["provider", "endmark", "options", "apiKey"], "{env:OPENAI_API_KEY}"),
                RequiredSetting {
                    path: ["provider", "endmark", "models", model].map(str::to_owned).to_vec(),
                    value: NewValue::Table,
                },
            ],
            None => OPENCODE_PROVIDERS
                .into_iter()
                .map(|(provider, version)| {
                    RequiredSetting::text(
                        &["provider", provider, "options", "baseURL"],
                        address.versioned_url(version),
                    )
                })
                .collect(),
        },
    }
}

/// Returns the keys that `--undo` removes, including all keys below them.
pub fn undo_keys(choice: ClientChoice) -> &'static [&'static [&'static str]] {
    match choice {
        ClientChoice::Claude => &[&["env", "ANTHROPIC_BASE_URL"]],
        ClientChoice::Codex => &[&["model_provider"], &["model_providers", "endmark"]],
        ClientChoice::Gemini => &[&["GOOGLE_GEMINI_BASE_URL"]],
        ClientChoice::Openai => &[&["OPENAI_BASE_URL"]],
        ClientChoice::Anthropic => &[&["ANTHROPIC_BASE_URL"]],
        ClientChoice::Opencode => &[
            &["provider", "endmark"],
            &["provider", "openai", "options", "baseURL"],
            &["provider", "anthropic", "options", "baseURL"],
            &["provider", "google", "options", "baseURL"],
        ],
    }
}

/// Returns the keys of all other clients with the same configuration syntax. They may share one file.
pub fn other_client_keys(choice: ClientChoice) -> Vec<&'static [&'static str]> {
    let syntax = ClientProperties::new(choice).syntax;
    let others = ClientChoice::value_variants().iter().copied();
    let others = others.filter(|&other| other != choice && ClientProperties::new(other).syntax == syntax);
    others.flat_map(undo_keys).copied().collect()
}

/// Returns the name and value of a setting in the client's file that overrides the required settings, if
/// there is one.
pub fn overriding_setting(choice: ClientChoice, document: &ConfigDocument) -> Option<(String, String)> {
    if choice != ClientChoice::Codex {
        return None;
    }
    let profile = document.value(&["profile"])?;
    let provider = document.value(&["profiles", &profile, "model_provider"])?;
    (provider != "endmark").then(|| (format!("profiles.{profile}.model_provider"), provider))
}
