//! `endmark serve`: the gateway. (PC-9)

mod rehearsal;

use std::net::SocketAddr;
use std::time::Duration;

use endmark_gateway::{BuildError, Gateway, ServeError, with_causes};
use endmark_store::Store;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::answer::{Answer, to_data};
use crate::arguments::Serve;
use crate::config::{self, Effective, Override, Settings};
use crate::context::{Context, configuration_warnings};
use crate::error::CommandError;
use crate::logging;
use crate::runtime;

/// The name of the upstream that `--upstream` names.
const NAMED_UPSTREAM: &str = "default";

/// How often records that are too old are looked for.
const FORGET_EVERY: Duration = Duration::from_hours(1);

/// What was served, once it stops.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Report {
    /// The address and port that it listened on.
    listen: String,
}

/// Serves until it is told to stop.
pub(crate) fn run(context: &Context, arguments: Serve) -> Result<Answer, CommandError> {
    let faults = rehearsal::faults(&arguments)?;
    let effective = configuration(context, arguments)?;
    for warning in &effective.warnings {
        context.terminal.warn(warning);
    }
    let settings = &effective.settings;
    let mut gateway_settings = config::for_gateway(settings, &context.environment)?;
    gateway_settings.faults = faults.clone();
    logging::hide(gateway_settings.scrubber());
    logging::start(context);
    let store = Store::open(&settings.store).map_err(|error| CommandError::of_store(&error))?;
    runtime::block_on(async {
        let listener = listen(settings.listen).await?;
        let address = listener.local_addr().map_err(|error| cannot_listen(settings.listen, &error))?;
        let gateway = Gateway::new(gateway_settings, store.clone()).map_err(|error| cannot_build(&error))?;
        // Watched before anybody can know that it serves: a signal right after must not kill it undrained.
        let signals = signals()?;
        introduce(context, settings, address);
        rehearsal::warn(context, &faults);
        let forgetting = tokio::spawn(forget(store.clone(), settings.store_policy.keep_days));
        let served = serve_until_stopped(context, listener, gateway, signals).await;
        forgetting.abort();
        // What was recorded is committed before the process ends.
        store.close().await;
        // People were warned at the beginning, and the envelope is only written now.
        let warnings = if context.terminal.json { configuration_warnings(&effective) } else { Vec::new() };
        served?;
        let data = to_data(&Report { listen: address.to_string() })?;
        Ok(Answer::yes(data, "").with_warnings(warnings))
    })?
}

fn configuration(context: &Context, arguments: Serve) -> Result<Effective, CommandError> {
    let set = |flag: &str, key: &str, value| Override { flag: flag.to_owned(), key: key.to_owned(), value };
    let is_upstream_named = arguments.upstream.is_some();
    let flags = [
        arguments.listen.map(|value| set("--listen", "listen", value)),
        arguments.store.map(|value| set("--store", "store", value)),
        arguments.upstream.map(|url| set("--upstream", &format!("upstreams.{NAMED_UPSTREAM}.base_url"), url)),
    ];
    let mut effective = context.configuration(flags.into_iter().flatten().collect())?;
    if is_upstream_named {
        effective.settings.upstreams.retain(|upstream| upstream.name == NAMED_UPSTREAM);
    }
    Ok(effective)
}

async fn listen(address: SocketAddr) -> Result<TcpListener, CommandError> {
    TcpListener::bind(address).await.map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> CommandError {
    CommandError::input(
        "cannot_listen",
        format!("cannot listen on {address}: {error}"),
        "Another `--listen 127.0.0.1:PORT` helps; port 0 takes a free one.",
    )
}

fn cannot_build(error: &BuildError) -> CommandError {
    CommandError::input(
        "unusable_settings",
        with_causes(error),
        "`endmark config check` looks at everything at once.",
    )
}

/// Says where it listens, where it forwards to, and how a client gets there.
fn introduce(context: &Context, settings: &Settings, address: SocketAddr) {
    let upstreams: Vec<String> = settings
        .upstreams
        .iter()
        .map(|upstream| match &upstream.base_url {
            Some(url) => format!("{} ({url})", upstream.name),
            None => upstream.name.clone(),
        })
        .collect();
    context.terminal.progress(&format!(
        "Endmark listens on http://{address} and forwards to {}.\n\n  export OPENAI_BASE_URL=http://{address}/v1\n\n\
         Cut replies are recorded in `{}`; `endmark log` shows them. Ctrl-C stops.",
        upstreams.join(", "),
        settings.store.path().display()
    ));
    if !address.ip().is_loopback() {
        context.terminal.warn("everybody who reaches this address can use it");
    }
}

/// Forgets records that are older than so many days, for as long as it is served; 0 keeps them for ever.
async fn forget(store: Store, keep_days: u64) {
    let Some(days) = u32::try_from(keep_days).ok().filter(|days| *days > 0) else {
        return;
    };
    let mut interval = tokio::time::interval(FORGET_EVERY);
    loop {
        interval.tick().await;
        match store.forget_after(days).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, days, "forgot old records"),
            Err(error) => tracing::warn!(%error, "cannot forget old records"),
        }
    }
}

/// Why it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    /// By the interrupt key.
    Interrupted,
    /// By whoever runs it.
    Terminated,
}

/// Serves until the first signal and then drains; a second signal ends the draining.
async fn serve_until_stopped(
    context: &Context,
    listener: TcpListener,
    gateway: std::sync::Arc<Gateway>,
    mut signals: Signals,
) -> Result<(), CommandError> {
    let (stop, mut stopped) = watch::channel(None);
    let first = {
        let mut stopped = stopped.clone();
        async move {
            // The sender lives as long as this function: it can only answer with a signal.
            let _ = stopped.wait_for(Option::is_some).await;
        }
    };
    let serving = endmark_gateway::serve(listener, gateway, first);
    let watching = async {
        let by = signals.next().await;
        context.terminal.progress("Letting replies under way end; once more to stop at once.");
        let _ = stop.send(Some(by));
        signals.next().await;
    };
    let served = tokio::select! {
        served = serving => served,
        () = watching => Ok(()),
    };
    match served {
        Ok(()) => {}
        Err(error @ ServeError::NotDrained { .. }) => context.terminal.warn(&error.to_string()),
    }
    match *stopped.borrow_and_update() {
        Some(Stopped::Interrupted) => Err(CommandError::Interrupted),
        Some(Stopped::Terminated) | None => Ok(()),
    }
}

/// The signals that stop it.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

fn signals() -> Result<Signals, CommandError> {
    let watch =
        |kind| signal(kind).map_err(|error| CommandError::Bug(format!("cannot watch signals: {error}")));
    Ok(Signals { interrupt: watch(SignalKind::interrupt())?, terminate: watch(SignalKind::terminate())? })
}

impl Signals {
    async fn next(&mut self) -> Stopped {
        tokio::select! {
            _ = self.interrupt.recv() => Stopped::Interrupted,
            _ = self.terminate.recv() => Stopped::Terminated,
        }
    }
}
