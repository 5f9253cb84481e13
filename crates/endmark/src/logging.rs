//! What is logged while something is served: to standard error, never to standard output.

use std::io::{self, Write};
use std::sync::{PoisonError, RwLock};

use endmark_gateway::Scrubber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

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
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Scrubbed);
    // Only one subscriber can be the process's; a second start would change nothing, and does not matter.
    let _ = if context.terminal.json {
        builder.json().try_init()
    } else {
        builder.with_ansi(context.terminal.errors.is_on()).try_init()
    };
}

/// The secrets that are kept out of the log: those of the configuration that is in effect, and of the one before,
/// with which requests may still be under way.
static SECRETS: RwLock<[Option<Scrubber>; 2]> = RwLock::new([None, None]);

/// From now on these secrets are taken out of whatever is logged, also by libraries.
pub(crate) fn hide(secrets: Scrubber) {
    let mut known = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
    known.swap(0, 1);
    known[0] = Some(secrets);
}

/// A line without the secrets that are known.
fn scrubbed(line: &[u8]) -> Vec<u8> {
    let known = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().flatten().fold(line.to_vec(), |line, secrets| secrets.scrub_bytes(&line).into_owned())
}

/// Standard error, without the known secrets. A line is always written at once, so none is torn apart.
#[derive(Clone, Copy)]
struct Scrubbed;

impl MakeWriter<'_> for Scrubbed {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}

impl Write for Scrubbed {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(&scrubbed(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secrets_of_this_configuration_and_of_the_one_before_are_taken_out() {
        let line = b"one: sk-first-key, the other: sk-second-key, c2stc2Vjb25kLWtleQ==".as_slice();
        hide(Scrubber::new(["sk-first-key"]));
        assert!(!String::from_utf8(scrubbed(line)).unwrap().contains("sk-first-key"));
        hide(Scrubber::new(["sk-second-key"]));
        let left = String::from_utf8(scrubbed(line)).unwrap();
        assert!(left.starts_with("one: ***, the other: ***, ***"), "{left}");
    }
}
