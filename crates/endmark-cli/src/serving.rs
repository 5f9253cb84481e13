//! Configuration shared by `serve` and `doctor`.

use endmark_config::{EffectiveConfig, Override, Settings, Upstream};
use endmark_failure::CommandError;

use crate::context::Context;

/// The name of the upstream that `--upstream` defines.
const FLAG_UPSTREAM_NAME: &str = "default";

/// Loads the configuration with these overrides. The upstream of `--upstream` replaces all others.
pub(crate) fn load_configuration(
    context: &Context,
    upstream: Option<&str>,
    mut flags: Vec<Override>,
) -> Result<EffectiveConfig, CommandError> {
    flags.extend(upstream.map(|url| Override {
        flag: "--upstream".to_owned(),
        key: format!("upstreams.{FLAG_UPSTREAM_NAME}.base_url"),
        value: url.to_owned(),
    }));
    let mut effective = context.load_configuration(flags)?;
    if upstream.is_some() {
        effective.settings.upstreams.retain(|upstream| upstream.name == FLAG_UPSTREAM_NAME);
    }
    Ok(effective)
}

/// Returns a warning for each upstream that has no key although clients send the gateway's keys, which are never
/// forwarded.
pub(crate) fn keyless_warnings(settings: &Settings) -> Vec<String> {
    let refused = |upstream: &Upstream| {
        let name = &upstream.name;
        format!(
            "`require_key` is set, but the upstream `{name}` has no key, so every request to it gets 403: {}",
            key_hint(name)
        )
    };
    settings.upstreams_without_key().filter(|_| settings.gateway.listener.require_key).map(refused).collect()
}

/// Returns the hint for an upstream without a key.
pub(crate) fn key_hint(upstream: &str) -> String {
    format!(
        "set `[upstreams.{upstream}] api_key = {{ env = \"NAME\" }}` (any text if the server needs no key)"
    )
}
