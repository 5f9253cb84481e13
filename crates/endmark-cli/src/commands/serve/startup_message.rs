//! The start-up message of a gateway: its address, and the settings for a client of each format.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use endmark_config::{Settings, Upstream};
use endmark_wire::format::WireFormat;
use endmark_wire::provider::Provider;

use crate::context::Context;
use crate::serving::keyless_warnings;

/// Reports the address, the settings for a client of each served format, and the upstreams.
///
/// Then warns of settings that will fail.
pub(super) fn print_startup_message(context: &Context, settings: &Settings, address: SocketAddr) {
    let origin = settings.listener_url(address);
    let mut introduction =
        format!("Endmark {} listens on {origin}. Connect a client to it:\n", env!("CARGO_PKG_VERSION"));
    if address.ip().is_unspecified() {
        let elsewhere = own_address().map_or_else(
            || "any address of this machine".to_owned(),
            |ip| settings.listener_url(SocketAddr::new(ip, address.port())),
        );
        // Writing to a string cannot fail.
        let _ = writeln!(introduction, "Other machines reach it at {elsewhere}.");
    }
    for provider in Provider::all() {
        let urls: Vec<String> =
            upstreams_for(settings, provider).into_iter().map(describe_upstream).collect();
        if urls.is_empty() {
            continue;
        }
        let titles: Vec<&str> = provider.formats().map(WireFormat::title).collect();
        let (variable, url) = (provider.base_url_variable, provider.base_url_for_origin(&origin));
        let (titles, urls) = (titles.join(", "), urls.join(", "));
        let _ = write!(introduction, "\n  export {variable}={url}\n    {titles}: forwards to {urls}\n");
    }
    let mode = settings.gateway.resume.mode.name();
    let location = settings.files.store.absolute();
    let store = match location.postgres() {
        Some(postgres) => format!("`{postgres}`, with the journal `{}`", location.path().display()),
        None => format!("`{}`", location.path().display()),
    };
    let are_pages_closed = settings.files.admin_key.is_none() && !settings.is_local();
    let pages = if are_pages_closed { String::new() } else { format!(", or at {origin}/endmark/") };
    let _ = write!(
        introduction,
        "\nCut replies are resumed in mode `{mode}` and recorded in {store}.\nList them with `endmark log`{pages}. Ctrl-C stops."
    );
    context.terminal.progress(&introduction);
    if !address.ip().is_loopback() {
        context.terminal.warn("anyone who can reach this address can use it");
    }
    if are_pages_closed {
        context.terminal.warn("the pages are disabled: set `admin_key` to enable them");
    }
    for message in keyless_warnings(settings) {
        context.terminal.warn(&message);
    }
}

/// Returns the upstreams for requests in a provider's formats.
///
/// These are the upstreams of that provider, or else a server on this machine, which may accept several formats.
fn upstreams_for<'a>(settings: &'a Settings, provider: &'static Provider) -> Vec<&'a Upstream> {
    let own: Vec<&Upstream> =
        settings.upstreams.iter().filter(|upstream| upstream.format == provider).collect();
    if !own.is_empty() {
        return own;
    }
    let near = |upstream: &&Upstream| {
        upstream.base_url.as_ref().is_some_and(endmark_gateway::BaseUrl::is_this_machine)
    };
    settings.upstreams.first().filter(near).into_iter().collect()
}

fn describe_upstream(upstream: &Upstream) -> String {
    match &upstream.base_url {
        Some(url) => format!("{} ({url})", upstream.name),
        None => upstream.name.clone(),
    }
}

/// Returns the address from which this machine reaches other machines. Sends nothing.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // A documentation address (RFC 5737): the system only looks up the route to it.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_unspecified())
}
