//! Mounts the console as pages of the gateway; neither crate depends on the other.

use std::sync::Arc;

use endmark_config::{Environment, SecretSource, Settings, models};
use endmark_console::{Console, ConsoleSettings};
use endmark_failure::CommandError;
use endmark_gateway as gateway;
use endmark_gateway::{AdminAccess, Answering, Pages, Visit};
use endmark_store::Handle;
use http::HeaderMap;

/// Minimum length of the admin key in characters: a shorter one could be guessed.
const ADMIN_KEY_LEAST_CHARS: usize = 16;

/// A console in the form of gateway pages.
#[derive(Debug)]
struct ConsolePages(Console);

/// Returns the gateway's settings, with the console as its pages.
pub(crate) fn with_pages(
    settings: &Settings,
    environment: &Environment,
) -> Result<gateway::Settings, CommandError> {
    let pages = Some(pages(settings, environment)?);
    Ok(gateway::Settings { pages, ..endmark_config::for_gateway(settings, environment)? })
}

/// Builds the pages below `/endmark/`.
fn pages(settings: &Settings, environment: &Environment) -> Result<Arc<dyn gateway::Pages>, CommandError> {
    let read = |source: &SecretSource| source.read(environment, "the admin key");
    let admin_key = settings.files.admin_key.as_ref().map(read).transpose()?;
    if admin_key.as_ref().is_some_and(|key| key.reveal().chars().count() < ADMIN_KEY_LEAST_CHARS) {
        return Err(CommandError::input(
            "weak_admin_key",
            format!("`admin_key` has fewer than {ADMIN_KEY_LEAST_CHARS} characters, and could be guessed"),
            "`openssl rand -hex 24` makes one.",
        ));
    }
    Ok(Arc::new(ConsolePages(Console::new(ConsoleSettings {
        admin_key: admin_key.map(|key| key.reveal().to_owned()),
        is_local: settings.is_local(),
        nonce: nonce()?,
        models: Arc::new(models(settings)),
        rules: settings.budget.for_gateway().rules,
        zone: settings.budget.zone.clone(),
        keep_days: settings.gateway.store_policy.keep_days.into(),
        keep_text: settings.gateway.store_policy.keep_text,
        continuation_tokens: settings.gateway.resume.continuation_tokens,
    }))))
}

/// Returns an unpredictable value.
fn nonce() -> Result<String, CommandError> {
    let made = Handle::random().map_err(CommandError::Bug)?;
    Ok(made.as_str().to_owned())
}

impl Pages for ConsolePages {
    fn admin_access(&self, headers: &HeaderMap) -> AdminAccess {
        match self.0.has_admin_key(headers) {
            Some(true) => AdminAccess::Granted,
            Some(false) => AdminAccess::Denied,
            None => AdminAccess::NoKey,
        }
    }

    fn respond(&self, visit: Visit) -> Answering<'_> {
        let Visit { head, body, store, is_stopping, added_latency } = visit;
        let added_ms = added_latency.map(|added| (added.p50_ms, added.p95_ms));
        Box::pin(self.0.respond(endmark_console::Visit { head, body, store, is_stopping, added_ms }))
    }
}
