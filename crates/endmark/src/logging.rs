//! What is logged while something is served: to standard error, never to standard output.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::config::LOG_VARIABLE;
use crate::context::Context;

/// Begins to log: as much as `-q` and `-v` say, unless `ENDMARK_LOG` says it in detail; with `--json` one
/// JSON document a line.
pub(crate) fn start(context: &Context) {
    let level = match (context.global.quiet, context.global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn,endmark=info,endmark_gateway=info,endmark_store=info",
        (false, 1) => "info,endmark=debug,endmark_gateway=debug,endmark_store=debug",
        (false, _) => "trace",
    };
    let said = context.environment.get(LOG_VARIABLE).and_then(|filter| EnvFilter::try_new(filter).ok());
    let filter = said.unwrap_or_else(|| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // Only one subscriber can be the process's; a second start would change nothing, and does not matter.
    let _ = if context.terminal.json {
        builder.json().try_init()
    } else {
        builder.with_ansi(context.terminal.errors.is_on()).try_init()
    };
}
