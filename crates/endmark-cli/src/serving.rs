//! What `serve` begins with, and `doctor` looks at.

use endmark_config::{Effective, Override, Settings, Upstream};
use endmark_failure::CommandError;

use crate::context::Context;

/// The name of the upstream that `--upstream` names.
const NAMED_UPSTREAM: &str = "default";

/// The configuration with these flags. An upstream that is named by `--upstream` takes the place of all others.
pub(crate) fn configuration_with(
    context: &Context,
    upstream: Option<&str>,
    mut flags: Vec<Override>,
) -> Result<Effective, CommandError> {
    flags.extend(upstream.map(|url| Override {
        flag: "--upstream".to_owned(),
        key: format!("upstreams.{NAMED_UPSTREAM}.base_url"),
        value: url.to_owned(),
    }));
    let mut effective = context.configuration(flags)?;
    if upstream.is_some() {
        effective.settings.upstreams.retain(|upstream| upstream.name == NAMED_UPSTREAM);
    }
    Ok(effective)
}

/// What is wrong where clients bring keys of the gateway's own: these do not open an upstream, and it has no key to put in
/// their place. A server on this machine mostly needs none.
pub(crate) fn keyless(settings: &Settings) -> Vec<String> {
    let is_far = |upstream: &&Upstream| {
        upstream.api_key.is_none()
            && !upstream.base_url.as_ref().is_some_and(endmark_gateway::BaseUrl::is_this_machine)
    };
    let upstreams =
        settings.upstreams.iter().filter(|_| settings.gateway.listener.require_key).filter(is_far);
    upstreams
        .map(|upstream| {
            let name = &upstream.name;
            format!(
                "`require_key` is set and the upstream `{name}` has no key, so it will refuse every request: set \
                 `[upstreams.{name}] api_key = {{ env = \"NAME\" }}`"
            )
        })
        .collect()
}
