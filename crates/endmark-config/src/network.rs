//! Determines how to reach each upstream: its proxy and its certificate authorities.

use std::path::Path;

use endmark_failure::CommandError;
use endmark_gateway as gateway;
use endmark_gateway::{Authorities, BaseUrl, Proxy};
use endmark_process::{MAX_WRITTEN_BYTES, read_regular};

use super::environment::Environment;
use super::settings::{ProxyChoice, Settings, Upstream};

/// Returns the upstream's address with its proxy and its certificate authorities, but without its key.
pub fn client_upstream(
    settings: &Settings,
    upstream: &Upstream,
    environment: &Environment,
) -> Result<gateway::Upstream, CommandError> {
    let base_url = upstream.base_url.clone();
    let base_url =
        base_url.ok_or_else(|| CommandError::Bug(format!("the upstream `{}` has no URL", upstream.name)))?;
    let proxy = match &upstream.proxy {
        ProxyChoice::Environment => environment_proxy(&base_url, environment)?,
        ProxyChoice::None => None,
        ProxyChoice::Named(proxy) => Some(proxy.clone()),
        ProxyChoice::Referenced(source) => {
            let what = format!("the proxy of the upstream `{}`", upstream.name);
            let url = source.read(environment, &what)?;
            let proxy = url.reveal().parse();
            Some(proxy.map_err(|error| CommandError::Input {
                code: "invalid_proxy",
                message: format!("{what} cannot be used: {error}"),
                hint: None,
            })?)
        }
    };
    let mut authorities = common_authorities(settings)?;
    if let Some(path) = &upstream.ca_file {
        authorities = authorities.merged_with(&read_authorities(path)?);
    }
    Ok(gateway::Upstream { proxy, authorities, ..gateway::Upstream::new(&upstream.name, base_url) })
}

/// Returns a server that is not a configured upstream, with the common proxy and certificate authorities.
pub fn client_upstream_at(
    settings: &Settings,
    base_url: BaseUrl,
    environment: &Environment,
) -> Result<gateway::Upstream, CommandError> {
    let proxy = environment_proxy(&base_url, environment)?;
    let authorities = common_authorities(settings)?;
    Ok(gateway::Upstream { proxy, authorities, ..gateway::Upstream::new("server", base_url) })
}

fn environment_proxy(base_url: &BaseUrl, environment: &Environment) -> Result<Option<Proxy>, CommandError> {
    Proxy::from_environment(base_url, |name| environment.get(name)).map_err(|error| {
        let message = format!("the environment variable {error}");
        let hint =
            "Correct or unset it, or go without it: `proxy = \"none\"` in `[upstreams.NAME]`, or NO_PROXY.";
        CommandError::input("invalid_proxy", message, hint)
    })
}

fn common_authorities(settings: &Settings) -> Result<Authorities, CommandError> {
    settings.files.ca_file.as_deref().map_or_else(|| Ok(Authorities::default()), read_authorities)
}

fn read_authorities(path: &Path) -> Result<Authorities, CommandError> {
    let pem = read_regular(path, MAX_WRITTEN_BYTES)
        .map_err(|source| CommandError::Read { path: path.to_owned(), source })?;
    Authorities::from_pem(&pem).map_err(|error| CommandError::Input {
        code: "invalid_ca_file",
        message: format!("`{}` cannot be used as ca_file: {error}", path.display()),
        hint: None,
    })
}
