//! `run --through`: starts a gateway for each run, on a free port of the loopback address, with its own key
//! and budget (CX-7).

mod agents;
mod files;

use std::cell::Cell;
use std::ffi::OsString;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use endmark_config::{ADMIN_KEY_VARIABLE, Environment, SecretSource, Settings, UPSTREAM_VARIABLES};
use endmark_console::reports::usage::ClientUsage;
use endmark_context::Models;
use endmark_context::budget::{Period, Unit};
use endmark_failure::CommandError;
use endmark_gateway::{Gateway, Secret, Server, SoleKey, with_causes};
use endmark_guard::{AgentUsage, TokenUsage};
use endmark_runs::{RunGateway, Task};
use endmark_store::{KeyBudget, KeySecret, Store, UsageRow, utc};
use endmark_wire::provider::Provider;
use tempfile::NamedTempFile;
use tokio::task::JoinHandle;

/// After an agent has ended, check at most this many times whether its last call is recorded.
const MAX_END_POLLS: u32 = 300;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Only keys of at least this length are searched in the values of variables. Shorter ones may occur by
/// chance.
const MIN_SEARCHED_KEY_BYTES: usize = 16;

/// Starts a gateway for each task that requests one.
pub fn open_all(
    environment: &Environment,
    models: &Arc<Models>,
    settings: &Settings,
    store: &Store,
    tasks: &mut [Task],
) -> Result<(), CommandError> {
    if !tasks.iter().any(|task| task.runs_through_gateway) {
        return Ok(());
    }
    hide_memory()?;
    let settings = gateway_settings(environment, settings)?;
    for task in tasks.iter_mut().filter(|task| task.runs_through_gateway) {
        let way = AgentGateway::open(environment, models, &settings, store, task)?;
        task.gateway = Some(Box::new(way));
    }
    Ok(())
}

/// Protects the memory and environment of this process from other processes of the same user.
///
/// The agent runs as the same user, but must not read the providers' keys from this process. Root can still
/// read them.
fn hide_memory() -> Result<(), CommandError> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| system_error(&error.into()))?;
    Ok(())
}

/// Returns the settings of `serve` for a run. Keys that the configuration does not contain come from the
/// environment.
fn gateway_settings(environment: &Environment, settings: &Settings) -> Result<Settings, CommandError> {
    let mut settings = settings.clone();
    for upstream in &mut settings.upstreams {
        // If no upstreams are configured, use the addresses in the agents' environment variables.
        if !settings.has_own_upstreams
            && let Some(url) = environment.get(upstream.format.base_url_variable)
        {
            let variable = upstream.format.base_url_variable;
            let url = url.parse().map_err(|error| {
                CommandError::input(
                    "invalid_base_url",
                    format!("{variable}: {error}"),
                    "Correct or unset this variable.",
                )
            })?;
            upstream.base_url = Some(url);
        }
        let known =
            agents::key_variables(upstream.format).iter().find(|name| environment.get(name).is_some());
        let from_environment = || known.map(|name| SecretSource::Environment((*name).to_owned()));
        upstream.api_key = upstream.api_key.take().or_else(from_environment);
    }
    settings.gateway.listener.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    (settings.tls.certificate, settings.tls.key) = (None, None);
    Ok(settings)
}

/// Returns the names of all variables that must not be passed to the agent, because they contain a key of the
/// gateway or the location of the admin key.
fn withheld_variables(
    gateway: &endmark_gateway::Settings,
    settings: &Settings,
    environment: &Environment,
) -> Vec<String> {
    let sources = settings.upstreams.iter().filter_map(|upstream| upstream.api_key.as_ref());
    let named = sources.chain(&settings.files.admin_key).filter_map(|source| match source {
        SecretSource::Environment(name) => Some(name.clone()),
        SecretSource::Value(_) | SecretSource::File(_) => None,
    });
    let keys: Vec<&str> =
        gateway.upstreams.iter().filter_map(|upstream| Some(upstream.api_key.as_ref()?.reveal())).collect();
    let has_key =
        |value: &str| keys.iter().any(|key| key.len() >= MIN_SEARCHED_KEY_BYTES && value.contains(key));
    let with_key =
        environment.with_prefix("").filter(|(_, value)| has_key(value)).map(|(name, _)| name.to_owned());
    // These variables may contain any part of the configuration, including keys.
    let with_upstream_prefix = environment.with_prefix(UPSTREAM_VARIABLES).map(|(name, _)| name.to_owned());
    named.chain(with_key).chain(with_upstream_prefix).chain([ADMIN_KEY_VARIABLE.to_owned()]).collect()
}

/// The gateway of one run.
struct AgentGateway {
    task: String,
    origin: String,
    variables: Vec<(String, OsString)>,
    withheld_variables: Vec<String>,
    /// The agent's command, including options with the gateway's address.
    command: Vec<OsString>,
    /// The settings file that these options or variables refer to. It is deleted when this value is dropped.
    _file: Option<NamedTempFile>,
    server: Arc<Server>,
    serving: JoinHandle<()>,
    store: Store,
    models: Arc<Models>,
    /// When the gateway was started, as UTC text.
    since: String,
    /// Number of calls that were already reported, in earlier attempts.
    reported_calls: Cell<u32>,
}

impl AgentGateway {
    fn open(
        environment: &Environment,
        models: &Arc<Models>,
        settings: &Settings,
        store: &Store,
        task: &Task,
    ) -> Result<Self, CommandError> {
        let has_key = |provider: &&'static Provider| {
            let mut serving = settings.upstreams.iter().filter(|upstream| upstream.format == *provider);
            serving.any(|upstream| upstream.api_key.is_some())
        };
        let wanted = agents::agent_providers(task.agent);
        // The gateway serves all providers with a key, because the agent may start other programs that use
        // them.
        let providers_with_key: Vec<&'static Provider> =
            Provider::all().into_iter().filter(has_key).collect();
        if !wanted.iter().any(|provider| providers_with_key.contains(provider)) {
            let names = wanted.iter().flat_map(|provider| agents::key_variables(provider)).copied();
            return Err(CommandError::input(
                "missing_key",
                format!("`{}` cannot use a gateway without a key for its provider", task.agent.name()),
                format!(
                    "Set {}, or `api_key` in `[upstreams.NAME]`; the agent's own login works only at its provider.",
                    names.collect::<Vec<_>>().join(" or ")
                ),
            ));
        }
        let mut gateway_settings = endmark_config::to_gateway(settings, environment)?;
        let withheld = withheld_variables(&gateway_settings, settings, environment);
        let secret = KeySecret::random().map_err(|error| system_error(&std::io::Error::other(error)))?;
        let secret = secret.reveal().to_owned();
        gateway_settings.console = None;
        gateway_settings.sole_key = Some(SoleKey {
            secret: Secret::new(secret.clone()),
            name: task.id.clone(),
            budget: task.limits.nanodollars.map(|limit| KeyBudget {
                unit: Unit::NanoUsd,
                limit: limit.get(),
                period: Period::Ever,
            }),
        });
        let of_system = |error: std::io::Error| self::system_error(&error);
        let listener = endmark_gateway::listen(settings.gateway.listener.listen).map_err(of_system)?;
        let origin = format!("http://{}", listener.local_addr().map_err(of_system)?);
        let gateway = Gateway::new(gateway_settings, store.clone()).map_err(|error| {
            let hint = "`endmark config check` reports all problems at once.";
            CommandError::input("unusable_settings", with_causes(&error), hint)
        })?;
        let variables = agents::gateway_variables(task, &providers_with_key, &origin, &secret, environment);
        let file = files::write_settings_file(task, &variables)?;
        let command = agents::command_with_options(
            task.agent,
            &task.command,
            &origin,
            file.as_ref().map(NamedTempFile::path),
        );
        let server = Server::new(gateway);
        let serving = {
            let server = Arc::clone(&server);
            // The server is never stopped, because that would close the store, which belongs to the run.
            tokio::spawn(async move {
                let _ = server.serve(listener, std::future::pending()).await;
            })
        };
        Ok(Self {
            task: task.id.clone(),
            variables,
            withheld_variables: withheld,
            command,
            _file: file,
            origin,
            server,
            serving,
            store: store.clone(),
            models: Arc::clone(models),
            since: current_time(),
            reported_calls: Cell::new(0),
        })
    }

    async fn calls(&self) -> Result<Vec<UsageRow>, String> {
        for _ in 0..MAX_END_POLLS {
            if self.server.replies_in_progress() == 0 {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        // Everything that was queued before this point is committed now.
        self.store.health().await.map_err(|error| error.to_string())?;
        let (identity, since, but_for) =
            (format!("key:{}", self.task), self.since.clone(), self.reported_calls.get());
        let calls = self.store.read(move |reader| reader.client_calls(&identity, &since, but_for)).await;
        calls.map_err(|error| error.to_string())
    }
}

impl RunGateway for AgentGateway {
    fn command(&self) -> &[OsString] {
        &self.command
    }

    fn variables(&self) -> &[(String, OsString)] {
        &self.variables
    }

    fn withheld_variables(&self) -> &[String] {
        &self.withheld_variables
    }

    fn request_count(&self) -> u64 {
        self.server.admitted_calls()
    }

    fn has_refused_for_budget(&self) -> bool {
        self.server.budget_refusals() > 0
    }

    fn take_usage(&self) -> Pin<Box<dyn Future<Output = Result<Option<AgentUsage>, String>> + '_>> {
        Box::pin(async {
            let calls = self.calls().await?;
            self.reported_calls.set(
                self.reported_calls.get().saturating_add(u32::try_from(calls.len()).unwrap_or(u32::MAX)),
            );
            Ok(ClientUsage::from_calls(&calls, &self.models).map(|spent| AgentUsage {
                run: TokenUsage::new(spent.prompt, spent.completion),
                largest_call_tokens: Some(spent.largest_call),
                cost_nanodollars: spent.nano_usd,
                model: spent.model,
                context_tokens: None,
            }))
        })
    }
}

impl std::fmt::Debug for AgentGateway {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Way").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Drop for AgentGateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn system_error(error: &std::io::Error) -> CommandError {
    CommandError::Upstream {
        message: format!("the system does not allow the gateway to run: {error}"),
        hint: None,
    }
}

fn current_time() -> String {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    utc(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))
}
