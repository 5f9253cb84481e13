//! Builds the console that a gateway serves.

use std::sync::Arc;

use endmark_config::{Environment, SecretSource, Settings, models};
use endmark_console::{Console, ConsoleSettings};
use endmark_failure::CommandError;
use endmark_gateway::{self as gateway, Secret};
use endmark_store::Handle;

/// Minimum length of the admin key in characters; a shorter key could be guessed.
const MIN_ADMIN_KEY_CHARS: usize = 16;

/// Returns the gateway's settings, with the console.
pub(crate) fn with_console(
    settings: &Settings,
    environment: &Environment,
) -> Result<gateway::Settings, CommandError> {
    let console = Some(build_console(settings, environment)?);
    Ok(gateway::Settings { console, ..endmark_config::to_gateway(settings, environment)? })
}

/// Returns the admin key, if one is set.
pub(crate) fn admin_key(
    settings: &Settings,
    environment: &Environment,
) -> Result<Option<Secret>, CommandError> {
    let read = |source: &SecretSource| source.read(environment, "the admin key");
    let admin_key = settings.files.admin_key.as_ref().map(read).transpose()?;
    if admin_key.as_ref().is_some_and(|key| key.reveal().chars().count() < MIN_ADMIN_KEY_CHARS) {
        return Err(CommandError::input(
            "weak_admin_key",
            format!("`admin_key` has fewer than {MIN_ADMIN_KEY_CHARS} characters, so it could be guessed"),
            "Create one with `openssl rand -hex 24`.",
        ));
    }
    Ok(admin_key)
}

/// Builds the console for the pages below `/endmark/`.
fn build_console(settings: &Settings, environment: &Environment) -> Result<Arc<Console>, CommandError> {
    let admin_key = admin_key(settings, environment)?;
    Ok(Arc::new(Console::new(ConsoleSettings {
        admin_key: admin_key.map(|key| key.reveal().to_owned()),
        is_local: settings.is_local(),
        nonce: random_nonce()?,
        models: Arc::new(models(settings)),
        rules: settings.budget.to_gateway().rules,
        zone: settings.budget.zone.clone(),
        keep_days: settings.gateway.store_policy.keep_days.into(),
        keep_text: settings.gateway.store_policy.keep_text,
        continuation_tokens: settings.gateway.resume.continuation_tokens,
    })))
}

/// Returns a random value, with which the console signs forms if no admin key is set.
fn random_nonce() -> Result<String, CommandError> {
    let made = Handle::random().map_err(CommandError::Bug)?;
    Ok(made.as_str().to_owned())
}
