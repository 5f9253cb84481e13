//! Finds the gateway's address for clients, from the configuration or from a given URL.

use endmark_config::{Settings, reachable_address};
use endmark_failure::{CommandError, nearest};

use super::client::GatewayAddress;

/// Returns the gateway's address for a client. Adds the path of a named upstream, if one is given.
pub fn find_address(
    url: Option<&str>,
    upstream: Option<&str>,
    settings: &Settings,
) -> Result<GatewayAddress, CommandError> {
    let root = match url {
        Some(url) => parse_url(url)?,
        None => configured_url(settings)?,
    };
    let Some(name) = upstream else { return Ok(GatewayAddress { root }) };
    let names = || settings.upstreams.iter().map(|upstream| upstream.name.clone());
    if url.is_none() && !names().any(|known| known == name) {
        let hint = nearest(name, names()).map_or_else(
            || {
                "`endmark config` lists the upstreams; use `--url` for a gateway on another machine."
                    .to_owned()
            },
            |near| format!("Did you mean `{near}`?"),
        );
        return Err(CommandError::input("unknown_upstream", format!("there is no upstream `{name}`"), hint));
    }
    Ok(GatewayAddress { root: format!("{root}/u/{name}") })
}

fn parse_url(url: &str) -> Result<String, CommandError> {
    let invalid = |message: String| {
        CommandError::input(
            "invalid_url",
            message,
            "Write the URL without an API version, as in http://gateway.example:4141.",
        )
    };
    let uri: http::Uri = url.parse().map_err(|error| invalid(format!("`{url}` is not a URL: {error}")))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return Err(invalid(format!("`{url}` is not an http or https URL")));
    }
    let root = url.trim_end_matches('/');
    if uri.query().is_some() || url.contains('#') || root.ends_with("/v1") || root.ends_with("/v1beta") {
        return Err(invalid(format!("`{url}` contains more than the address of the gateway")));
    }
    // Configuration files of several syntaxes contain the URL in one line, so it must not have these
    // characters.
    if url.chars().any(|character| character.is_control() || " \"'\\`$#".contains(character)) {
        return Err(invalid(format!("`{url}` has characters that are not allowed in a URL")));
    }
    Ok(root.to_owned())
}

fn configured_url(settings: &Settings) -> Result<String, CommandError> {
    let needs_url = |message: &str| {
        CommandError::input(
            "unknown_address",
            message,
            "Name the address: `--url https://gateway.example:4141`.",
        )
    };
    if settings.tls.certificate.is_some() {
        return Err(needs_url("the gateway uses TLS, so the address must have the name in its certificate"));
    }
    let listen = settings.gateway.listener.listen;
    if listen.port() == 0 {
        return Err(needs_url("the gateway uses any free port (`listen` has port 0)"));
    }
    Ok(format!("http://{}", reachable_address(listen)))
}

/// Removes the password from an address.
pub fn without_password(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}{path}"),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_listener_gets_a_loopback_address() {
        let at = |listen: &str| {
            let mut settings = Settings::default();
            settings.gateway.listener.listen = listen.parse().unwrap();
            configured_url(&settings).ok()
        };
        assert_eq!(at("0.0.0.0:4141").as_deref(), Some("http://127.0.0.1:4141"));
        assert_eq!(at("[::]:80").as_deref(), Some("http://[::1]:80"));
        assert_eq!(at("10.0.0.7:9").as_deref(), Some("http://10.0.0.7:9"));
        assert_eq!(at("127.0.0.1:0"), None);
    }

    #[test]
    fn the_version_is_removed_from_an_address() {
        assert_eq!(
            parse_url("https://gateway.example:4141/").ok().as_deref(),
            Some("https://gateway.example:4141")
        );
        for wrong in ["gateway", "ftp://a", "http://a/v1", "http://a/v1beta/", "http://a?b", "http://a/\"x"] {
            assert!(parse_url(wrong).is_err(), "{wrong}");
        }
    }
}
