//! Reloads the configuration of a running gateway (SIGHUP).

use std::sync::atomic::Ordering;

use endmark_config::Settings;
use endmark_failure::CommandError;

use super::{RunningGateway, build_error, load_configuration};
use crate::console;
use crate::logging;

/// Reloads the configuration and applies it to new requests.
///
/// An invalid configuration changes nothing. Reports the result in both cases.
pub(super) fn reload(serving: &RunningGateway<'_>) {
    let terminal = serving.context.terminal;
    match try_reload(serving) {
        Ok(warnings) => {
            for warning in &warnings {
                terminal.warn(warning);
            }
            terminal.progress("The configuration was reloaded; active requests keep the old one.");
        }
        Err(error) => {
            let body = error.body();
            let hint = body.hint.map(|hint| format!(" {hint}")).unwrap_or_default();
            let why = body.message;
            terminal.warn(&format!(
                "the new configuration is invalid, and the old one stays in effect: {why}{hint}"
            ));
        }
    }
}

/// Applies the configuration. Returns warnings, including the changed settings that need a restart.
fn try_reload(serving: &RunningGateway<'_>) -> Result<Vec<String>, CommandError> {
    let effective = load_configuration(serving.context, serving.arguments)?;
    // A half-written file is mostly empty. Without its upstreams, keys and prompts would go to other servers.
    if serving.has_own_upstreams.load(Ordering::Relaxed) && !effective.settings.has_own_upstreams {
        return Err(CommandError::input(
            "no_upstreams",
            "it no longer has an upstream, so requests would go to the providers' public endpoints",
            "Add the upstreams; to remove all of them, restart the gateway.",
        ));
    }
    let mut settings = console::with_console(&effective.settings, &serving.context.environment)?;
    // The listening address limits who may connect, so it changes only at a restart.
    settings.listener.listen = serving.initial_settings.gateway.listener.listen;
    let secrets = settings.scrubber();
    let gateway = serving.server.gateway().with_settings(settings).map_err(|error| build_error(&error))?;
    logging::hide_secrets(secrets);
    serving.server.reload(gateway);
    serving.has_own_upstreams.store(effective.settings.has_own_upstreams, Ordering::Relaxed);
    serving.keep_days.store(effective.settings.gateway.store_policy.keep_days, Ordering::Relaxed);
    let mut all_warnings = effective.warnings;
    all_warnings.extend(restart_warnings(&serving.initial_settings, &effective.settings));
    Ok(all_warnings)
}

fn restart_warnings(before: &Settings, now: &Settings) -> Vec<String> {
    let stays = |key: &str, before: String, now: String| {
        (before != now)
            .then(|| format!("`{key}` changed to `{now}`, but stays `{before}` until the next start"))
    };
    [
        stays("listen", before.gateway.listener.listen.to_string(), now.gateway.listener.listen.to_string()),
        stays("store", before.files.store.to_string(), now.files.store.to_string()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
