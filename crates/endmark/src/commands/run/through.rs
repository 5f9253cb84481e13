//! `run --through`: a gateway for each run, on a free port of the loopback address, with a key and a budget of its own. (CX-7)

mod agents;

use std::cell::Cell;
use std::ffi::OsString;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use endmark_console::reports::usage::Spent;
use endmark_context::Models;
use endmark_context::budget::{Period, Unit};
use endmark_gateway::{Gateway, Server, with_causes};
use endmark_guard::{TokenUsage, Usage};
use endmark_runs::{Between, Task};
use endmark_store::{KeyBudget, KeyError, NewKey, Store, UsageRow, utc};
use endmark_wire::provider::Provider;
use tokio::task::JoinHandle;

use super::wish::Shared;
use crate::config::{self, SecretSource, Settings};
use crate::context::Context;
use crate::error::CommandError;

/// How long is waited for the last call of an agent that is gone to be written down.
const LOOKS_FOR_END: u32 = 300;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Begins a gateway for each task that wants one; answers the names of their keys.
pub(super) async fn open_all(
    shared: &Shared<'_>,
    settings: &Settings,
    store: &Store,
    tasks: &mut [Task],
) -> Result<Vec<String>, CommandError> {
    if !tasks.iter().any(|task| task.is_through) {
        return Ok(Vec::new());
    }
    let settings = for_runs(shared.context, settings)?;
    let mut opened = Vec::new();
    for task in tasks.iter_mut().filter(|task| task.is_through) {
        let way = Way::open(shared, &settings, store, task).await?;
        opened.push(task.id.clone());
        task.between = Some(Box::new(way));
    }
    Ok(opened)
}

/// Takes the keys back: with their runs they are over.
pub(super) async fn take_back(store: &Store, keys: &[String]) {
    for key in keys {
        // One that cannot be taken back was known to nobody but the agent that is gone.
        let _ = store.revoke_key(key).await;
    }
}

/// The settings of `serve`, for agents whose keys are in the environment and not in the configuration.
fn for_runs(context: &Context, settings: &Settings) -> Result<Settings, CommandError> {
    let environment = &context.environment;
    let mut settings = settings.clone();
    for upstream in &mut settings.upstreams {
        // Where nobody says where to go, the agents go where the environment says.
        if !settings.has_own_upstreams
            && let Some(url) = environment.get(upstream.format.base_url_variable)
        {
            let variable = upstream.format.base_url_variable;
            let url = url.parse().map_err(|error| {
                CommandError::input(
                    "invalid_base_url",
                    format!("{variable}: {error}"),
                    "Correct or unset it.",
                )
            })?;
            upstream.base_url = Some(url);
        }
        let known =
            agents::key_variables(upstream.format).iter().find(|name| environment.get(name).is_some());
        let of_environment = || known.map(|name| SecretSource::Environment((*name).to_owned()));
        upstream.api_key = upstream.api_key.take().or_else(of_environment);
    }
    settings.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    (settings.tls.certificate, settings.tls.key) = (None, None);
    settings.require_key = true;
    Ok(settings)
}

/// A gateway of one run.
struct Way {
    task: String,
    agent: endmark_guard::Agent,
    origin: String,
    variables: Vec<(String, OsString)>,
    server: Arc<Server>,
    serving: JoinHandle<()>,
    store: Store,
    models: Arc<Models>,
    /// When it was begun, in UTC.
    since: String,
    /// How many calls belong to attempts that are over.
    counted: Cell<u32>,
}

impl Way {
    async fn open(
        shared: &Shared<'_>,
        settings: &Settings,
        store: &Store,
        task: &Task,
    ) -> Result<Self, CommandError> {
        let environment = &shared.context.environment;
        let has_key = |provider: &&'static Provider| {
            let mut serving = settings.upstreams.iter().filter(|upstream| upstream.format == *provider);
            serving.any(|upstream| upstream.api_key.is_some())
        };
        let wanted = agents::providers_of(task.agent);
        let reached: Vec<&'static Provider> = wanted.iter().copied().filter(has_key).collect();
        if reached.is_empty() {
            let names = wanted.iter().flat_map(|provider| agents::key_variables(provider)).copied();
            return Err(CommandError::input(
                "missing_key",
                format!(
                    "`{}` cannot go through a gateway: no key for its provider is known",
                    task.agent.name()
                ),
                format!(
                    "Set {}, or `api_key` in `[upstreams.NAME]`; a login of the agent's own works at its provider alone.",
                    names.collect::<Vec<_>>().join(" or ")
                ),
            ));
        }
        let gateway_settings = config::for_gateway(settings, environment)?;
        let of_system = |error: std::io::Error| super::of_system(&error);
        let listener = endmark_gateway::listen(settings.listen).map_err(of_system)?;
        let origin = format!("http://{}", listener.local_addr().map_err(of_system)?);
        let gateway = Gateway::new(gateway_settings, store.clone()).map_err(|error| {
            let hint = "`endmark config check` looks at everything at once.";
            CommandError::input("unusable_settings", with_causes(&error), hint)
        })?;
        let secret = secret_of(store, task).await?;
        let server = Server::new(gateway);
        let serving = {
            let server = Arc::clone(&server);
            // It is never asked to stop: that would close the store, which is the run's.
            tokio::spawn(async move {
                let _ = server.serve(listener, std::future::pending()).await;
            })
        };
        Ok(Self {
            task: task.id.clone(),
            agent: task.agent,
            variables: agents::variables(task, &reached, &origin, &secret, environment),
            origin,
            server,
            serving,
            store: store.clone(),
            models: Arc::clone(&shared.models),
            since: now(),
            counted: Cell::new(0),
        })
    }

    async fn calls(&self) -> Result<Vec<UsageRow>, String> {
        for _ in 0..LOOKS_FOR_END {
            if self.server.busy() == 0 {
                break;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        // What was queued before is committed then.
        self.store.health().await.map_err(|error| error.to_string())?;
        let (identity, since, but_for) =
            (format!("key:{}", self.task), self.since.clone(), self.counted.get());
        let calls = self.store.read(move |reader| reader.calls_of_client(&identity, &since, but_for)).await;
        calls.map_err(|error| error.to_string())
    }
}

impl Between for Way {
    fn words(&self, command: &[OsString]) -> Vec<OsString> {
        agents::words(self.agent, command, &self.origin)
    }

    fn variables(&self) -> &[(String, OsString)] {
        &self.variables
    }

    fn has_refused_for_budget(&self) -> bool {
        self.server.refused_for_budget() > 0
    }

    fn used(&self) -> Pin<Box<dyn Future<Output = Result<Option<Usage>, String>> + '_>> {
        Box::pin(async {
            let calls = self.calls().await?;
            self.counted
                .set(self.counted.get().saturating_add(u32::try_from(calls.len()).unwrap_or(u32::MAX)));
            Ok(Spent::of(&calls, &self.models).map(|spent| Usage {
                run: TokenUsage::new(spent.prompt, spent.completion),
                largest_call_tokens: Some(spent.largest_call),
                cost_nanodollars: spent.nano_usd,
                model: spent.model,
                context_tokens: None,
            }))
        })
    }
}

impl std::fmt::Debug for Way {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Way").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// How long behind its time a run can be taken up with its key. Where its supervisor was killed, nobody revokes it.
const KEY_AFTERLIFE: Duration = Duration::from_hours(7 * 24);

/// The secret of the run's key. One that is taken up has its key already, and a secret that went with its agent.
async fn secret_of(store: &Store, task: &Task) -> Result<String, CommandError> {
    let limit = task.limits.nanodollars.map(std::num::NonZeroU64::get);
    let budget = limit.map(|limit| KeyBudget { unit: Unit::NanoUsd, limit, period: Period::Ever });
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ends_at = (since_1970 + KEY_AFTERLIFE).as_secs().saturating_add(task.limits.seconds.get());
    let new = NewKey { name: task.id.clone(), budget, ends_at: Some(ends_at), ..NewKey::default() };
    let added = store.add_key(new).await;
    let secret = match added {
        Err(KeyError::Taken(name)) => store.rotate_key(&name, 0).await,
        other => other,
    };
    let secret = secret.map_err(|error| CommandError::Store { message: error.to_string(), hint: None })?;
    Ok(secret.reveal().to_owned())
}

fn now() -> String {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    utc(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))
}
