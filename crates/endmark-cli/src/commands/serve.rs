//! `endmark serve`: the gateway (PC-9).

mod fault_injection;
mod file_limit;
mod port_owner;
mod reload;
mod signals;
pub(super) mod startup_message;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use endmark_config::{EffectiveConfig, Override, Settings};
use endmark_context::count::drop_unused_vocabularies;
use endmark_failure::{CommandError, ExitStatus};
use endmark_gateway::{BuildError, Gateway, ServeError, Server, with_causes};
use endmark_store::{Store, UncommittedRecords, runtime};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::watch;
#[cfg(not(feature = "otel"))]
use tracing_subscriber::layer::Identity;

use self::reload::reload;
use self::signals::{SignalAction, Signals};
use self::startup_message::print_startup_message;
use crate::arguments::{LogFormat, Serve};
use crate::console;
use crate::context::{Context, configuration_warnings};
use crate::logging;
use crate::serving;
use crate::standard_error;
#[cfg(not(feature = "otel"))]
use crate::telemetry;
use crate::telemetry::Traces;
use crate::view::answer::{Answer, to_data};
use crate::view::terminal::Terminal;

/// How often outdated records are deleted.
const DELETION_INTERVAL: Duration = Duration::from_hours(1);

/// How often the calls in the store are summed. Reports read newer calls individually.
const SUM_INTERVAL: Duration = Duration::from_secs(5);

/// How often unused vocabularies are freed. Each one is freed within twice this interval after its last use.
const VOCABULARY_DROP_INTERVAL: Duration = Duration::from_mins(5);

/// Answer data of `serve`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ServeReport {
    /// The listening address and port.
    listen: String,
}

/// Serves until a signal asks it to stop.
pub(crate) fn run(context: &Context, arguments: &Serve) -> Result<Answer, CommandError> {
    let _traces = log(context, arguments)?;
    let faults = fault_injection::parse_faults(arguments)?;
    let effective = load_configuration(context, arguments)?;
    for warning in &effective.warnings {
        context.terminal.warn(warning);
    }
    let settings = &effective.settings;
    let mut gateway_settings = console::with_console(settings, &context.environment)?;
    gateway_settings.faults = faults.clone();
    logging::hide_secrets(gateway_settings.scrubber());
    let store = Store::open(&settings.files.store).map_err(|error| CommandError::from_store(&error))?;
    if let Some(warning) =
        file_limit::raise_limit(settings.gateway.limits.connections, settings.gateway.limits.requests)
    {
        context.terminal.warn(&warning);
    }
    let runtime = runtime::new()?;
    let served = runtime.block_on(async {
        let listener = listen(settings.gateway.listener.listen)?;
        let address =
            listener.local_addr().map_err(|error| listen_error(settings.gateway.listener.listen, &error))?;
        let gateway = Gateway::new(gateway_settings, store.clone()).map_err(|error| build_error(&error))?;
        // Watch signals before the gateway reports its start: a signal right after that must still drain it.
        let server = Server::new(gateway);
        let end = Arc::new(OnceLock::new());
        let signals = Signals::watch(signals::ShutdownActions {
            drain: Box::new({
                let server = Arc::clone(&server);
                move || server.gateway().drain_time()
            }),
            give_up: timeout_handler(context.terminal, &server, address),
            end: Arc::clone(&end),
        })?;
        server.gateway().count_lost_lines(standard_error::lost_writes);
        standard_error::make_nonblocking()
            .map_err(|error| CommandError::Bug(format!("no thread for the log: {error}")))?;
        print_startup_message(context, settings, address);
        fault_injection::warn(context, &faults);
        let keep_days = Arc::new(AtomicU32::new(settings.gateway.store_policy.keep_days));
        let forgetting = tokio::spawn(delete_periodically(store.clone(), Arc::clone(&keep_days)));
        let summing = tokio::spawn(sum_periodically(store.clone()));
        let dropping = tokio::spawn(drop_vocabularies_periodically());
        let serving = RunningGateway {
            context,
            arguments,
            server,
            initial_settings: settings.clone(),
            keep_days,
            has_own_upstreams: AtomicBool::new(settings.has_own_upstreams),
        };
        let stopped = serving.run_until_stopped(listener, signals).await;
        forgetting.abort();
        summing.abort();
        dropping.abort();
        // Commits recorded data before the process ends.
        let leftover = store.close().await;
        // In text mode the warnings were shown at the start. With `--json` the envelope is written only at
        // the end.
        let warnings = if context.terminal.json { configuration_warnings(&effective) } else { Vec::new() };
        let data = to_data(&ServeReport { listen: address.to_string() })?;
        if leftover.rows_lost > 0 || leftover.cuts_lost > 0 {
            if let StopOutcome::Aborted(message) = &stopped {
                context.terminal.warn(message);
            }
            let _ = end.set(ExitStatus::Store);
            return Err(lost_records_error(&store, leftover));
        }
        match stopped {
            StopOutcome::Interrupted => {
                let _ = end.set(ExitStatus::Interrupted);
                Err(CommandError::Interrupted)
            }
            StopOutcome::Drained => {
                let _ = end.set(ExitStatus::Success);
                Ok(Answer::yes(data, "").with_warnings(warnings))
            }
            StopOutcome::Aborted(message) => {
                let _ = end.set(ExitStatus::Negative);
                Ok(cut_off_answer(data, message).with_warnings(warnings))
            }
        }
    });
    // Do not wait for blocking work whose caller has ended.
    runtime.shutdown_background();
    served
}

fn cut_off_answer(data: serde_json::Value, message: String) -> Answer {
    let hint = "Increase [limits] drain_seconds to give replies more time to end.".to_owned();
    Answer::no(data, "replies_cut_off", message, Some(hint))
}

/// Returns the function that reports why the gateway did not end in time.
fn timeout_handler(
    terminal: Terminal,
    server: &Arc<Server>,
    address: SocketAddr,
) -> Box<dyn FnOnce(SignalAction, Duration) -> ExitStatus + Send> {
    let (server, began) = (Arc::clone(server), Instant::now());
    Box::new(move |signal, waited| {
        let message = ServeError::NotDrained { left: server.replies_in_progress(), waited }.to_string();
        let shown = match signal {
            SignalAction::Interrupt => {
                terminal.warn(&message);
                Err(CommandError::Interrupted)
            }
            SignalAction::Terminate | SignalAction::Reload => {
                to_data(&ServeReport { listen: address.to_string() })
                    .and_then(|data| terminal.show(&cut_off_answer(data, message), began.elapsed()))
            }
        };
        shown.unwrap_or_else(|error| terminal.show_error(&error, Vec::new(), began.elapsed()))
    })
}

/// Starts logging, and collects traces if environment variables request them.
#[cfg(feature = "otel")]
fn log(context: &Context, arguments: &Serve) -> Result<Option<Traces>, CommandError> {
    let traces = Traces::start(&context.environment)?;
    logging::start_logging(
        &context.global,
        &context.environment,
        context.terminal.errors.is_enabled(),
        log_format(context, arguments),
        traces.as_ref().map(Traces::layer),
    );
    Ok(traces)
}

/// Starts logging.
#[cfg(not(feature = "otel"))]
fn log(context: &Context, arguments: &Serve) -> Result<Option<Traces>, CommandError> {
    logging::start_logging(
        &context.global,
        &context.environment,
        context.terminal.errors.is_enabled(),
        log_format(context, arguments),
        None::<Identity>,
    );
    if let Some(warning) = telemetry::warning(&context.environment)? {
        context.terminal.warn(&warning);
    }
    Ok(None)
}

/// With `--json` the log is JSON by default, too.
fn log_format(context: &Context, arguments: &Serve) -> LogFormat {
    let default = if context.terminal.json { LogFormat::Json } else { LogFormat::Text };
    arguments.log.unwrap_or(default)
}

fn load_configuration(context: &Context, arguments: &Serve) -> Result<EffectiveConfig, CommandError> {
    let listen = arguments.listen.clone().map(|value| Override {
        flag: "--listen".to_owned(),
        key: "listen".to_owned(),
        value,
    });
    let flags = listen.into_iter().chain(arguments.store.overrides()).collect();
    serving::load_configuration(context, arguments.upstream.as_deref(), flags)
}

fn listen(address: SocketAddr) -> Result<TcpListener, CommandError> {
    endmark_gateway::listen(address).map_err(|error| listen_error(address, &error))
}

fn listen_error(address: SocketAddr, error: &std::io::Error) -> CommandError {
    let holder = match error.kind() {
        std::io::ErrorKind::AddrInUse => port_owner::find_listening_process(address)
            .map(|holder| format!("; {holder} already listens there")),
        _ => None,
    };
    let holder = holder.unwrap_or_default();
    CommandError::input(
        "cannot_listen",
        format!("cannot listen on {address}: {error}{holder}"),
        "Choose another port with `--listen 127.0.0.1:PORT`; port 0 selects a free port.",
    )
}

fn lost_records_error(store: &Store, lost: UncommittedRecords) -> CommandError {
    let cause =
        store.condition().failure.map_or_else(|| "it was closed".to_owned(), |error| error.to_string());
    CommandError::Store {
        message: format!(
            "the rows of {} upstream calls and the records of {} cut replies are lost: neither the store nor its slate could save them before the \
             end; {cause}",
            lost.rows_lost, lost.cuts_lost
        ),
        hint: Some("The store itself is intact: fix the problem with its disk, then start again.".to_owned()),
    }
}

fn build_error(error: &BuildError) -> CommandError {
    CommandError::input(
        "unusable_settings",
        with_causes(error),
        "`endmark config check` reports all problems at once.",
    )
}

/// Periodically deletes records older than `keep_days` days. 0 keeps them forever.
async fn delete_periodically(store: Store, keep_days: Arc<AtomicU32>) {
    let mut interval = tokio::time::interval(DELETION_INTERVAL);
    loop {
        interval.tick().await;
        let days = keep_days.load(Ordering::Relaxed);
        if days == 0 {
            continue;
        }
        match store.delete_older_than(days).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, days, "deleted old records"),
            Err(error) => tracing::warn!(%error, "cannot delete old records"),
        }
    }
}

/// Periodically sums the calls in the store.
async fn sum_periodically(store: Store) {
    let mut interval = tokio::time::interval(SUM_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        // The store reports its own errors. Reports count calls without a sum individually.
        if let Err(error) = store.sum_calls().await {
            tracing::debug!(%error, "cannot sum calls");
        }
    }
}

/// Frees the memory of unused vocabularies.
async fn drop_vocabularies_periodically() {
    let mut interval = tokio::time::interval(VOCABULARY_DROP_INTERVAL);
    loop {
        interval.tick().await;
        drop_unused_vocabularies();
    }
}

/// How the gateway stopped.
enum StopOutcome {
    /// Every reply in progress was completed.
    Drained,
    /// Some replies were cut off; the message reports how many.
    Aborted(String),
    /// The interrupt key was pressed.
    Interrupted,
}

/// A running gateway.
struct RunningGateway<'a> {
    context: &'a Context,
    arguments: &'a Serve,
    server: Arc<Server>,
    /// The configuration at the start. Some of its settings stay in effect until a restart.
    initial_settings: Settings,
    /// How many days records are kept; 0 keeps them forever.
    keep_days: Arc<AtomicU32>,
    /// Whether the current configuration defines its own upstreams.
    has_own_upstreams: AtomicBool,
}

impl RunningGateway<'_> {
    /// Serves until the first signal to stop, then drains. A second signal ends the draining.
    async fn run_until_stopped(&self, listener: TcpListener, mut signals: Signals) -> StopOutcome {
        let (stop, stopped) = watch::channel(None);
        let first = {
            let mut stopped = stopped.clone();
            async move {
                // The sender lives as long as this function, so this ends only on a signal.
                let _ = stopped.wait_for(Option::is_some).await;
            }
        };
        let watching = async {
            let by = self.next_stop(&mut signals).await;
            self.context
                .terminal
                .progress("Waiting for active replies to end. Send the signal again to stop at once.");
            let _ = stop.send(Some(by));
            loop {
                self.next_stop(&mut signals).await;
                self.server.stop_draining();
            }
        };
        let served = tokio::select! {
            served = self.server.serve(listener, first) => served,
            never = watching => never,
        };
        let was_interrupted = *stopped.borrow() == Some(SignalAction::Interrupt);
        match served {
            Ok(()) if was_interrupted => StopOutcome::Interrupted,
            Ok(()) => StopOutcome::Drained,
            Err(error) if was_interrupted => {
                self.context.terminal.warn(&error.to_string());
                StopOutcome::Interrupted
            }
            Err(error) => StopOutcome::Aborted(error.to_string()),
        }
    }

    /// Handles signals until one asks to stop.
    async fn next_stop(&self, signals: &mut Signals) -> SignalAction {
        loop {
            match signals.next().await {
                SignalAction::Reload => reload(self),
                stop => return stop,
            }
        }
    }
}
