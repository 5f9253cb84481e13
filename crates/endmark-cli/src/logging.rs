//! The log of a running service. It goes to standard error, never to standard output.

mod people;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use endmark_config::{Environment, LOG_VARIABLE};
use endmark_gateway::Scrubber;
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, registry};

use crate::arguments::{Global, LogFormat};
use crate::standard_error;
use people::HumanReadableLines;

/// Whether each line of the log is a JSON document.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Starts logging at the level of `-q` and `-v`, unless `ENDMARK_LOG` sets a filter.
///
/// `also` receives the same events and spans.
pub(crate) fn start_logging(
    global: &Global,
    environment: &Environment,
    colors: bool,
    format: LogFormat,
    also: Option<impl Layer<Registry> + Send + Sync>,
) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        // A failed request already has one line with the reason, so its attempts are not logged. Every crate name has
        // the prefix `endmark`.
        (false, 0) if format == LogFormat::Text => {
            "warn,endmark=info,endmark_gateway=warn,endmark_gateway::refusals=info,endmark_gateway::edge=info"
        }
        (false, 0) => "warn,endmark=info,endmark_gateway=info,endmark_store=info",
        (false, 1) => "info,endmark=debug,endmark_gateway=debug,endmark_store=debug",
        (false, _) => "trace",
    };
    let configured = environment.get(LOG_VARIABLE).and_then(|filter| EnvFilter::try_new(filter).ok());
    let filter = configured.unwrap_or_else(|| EnvFilter::new(level));
    if format == LogFormat::Json {
        IS_JSON.store(true, Ordering::Relaxed);
    }
    // A process has only one subscriber. A second start fails without an effect.
    let _ = build_subscriber(also, format, colors, filter).try_init();
}

/// Builds the subscriber that receives events and spans.
fn build_subscriber(
    also: Option<impl Layer<Registry> + Send + Sync>,
    format: LogFormat,
    colors: bool,
    filter: EnvFilter,
) -> Dispatch {
    match also {
        Some(also) => registry().with(also).with(line_layer(format, colors).with_filter(filter)).into(),
        // A layer of `None` would still enable all spans, although nothing reads them.
        None => registry().with(line_layer(format, colors).with_filter(filter)).into(),
    }
}

/// Builds the layer that writes the lines of the log.
fn line_layer<S>(format: LogFormat, colors: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(ScrubbedStandardError);
    match format {
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
        LogFormat::Text => lines.event_format(HumanReadableLines::new(colors)).boxed(),
    }
}

/// Whether the log is JSON. If it is, other messages must be log lines, too.
pub(crate) fn is_json_log() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// Secrets of the current configuration, which are removed from all log lines.
static SECRETS: RwLock<Option<Scrubber>> = RwLock::new(None);

/// Removes these secrets from all further log lines, including those of libraries.
pub(crate) fn hide_secrets(secrets: Scrubber) {
    *SECRETS.write().unwrap_or_else(PoisonError::into_inner) = Some(secrets);
}

/// Writes log lines to standard error, without the known secrets. Each line is one write, so lines never
/// interleave.
#[derive(Clone, Copy)]
struct ScrubbedStandardError;

impl MakeWriter<'_> for ScrubbedStandardError {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}

impl Write for ScrubbedStandardError {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
        standard_error::write(match secrets.as_ref() {
            Some(secrets) => secrets.scrub_bytes(line).into_owned(),
            None => line.to_vec(),
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tracing::{dispatcher, info_span};
    use tracing_subscriber::layer::Identity;

    use super::*;

    #[test]
    fn trace_spans_are_created_only_if_collected() {
        for (also, is_made) in [(None, false), (Some(Identity::new()), true)] {
            let filter = EnvFilter::new("warn,endmark_gateway=info");
            let collector = build_subscriber(also, LogFormat::Text, false, filter);
            dispatcher::with_default(&collector, || {
                assert!(!info_span!(target: "endmark_gateway", "request").is_disabled());
                assert_eq!(info_span!(target: "telemetry", "request").is_disabled(), !is_made);
            });
        }
    }
}
