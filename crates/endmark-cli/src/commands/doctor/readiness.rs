//! Checks whether the configured gateway is running. Container health checks call this repeatedly.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use endmark_config::{Settings, reachable_address};
use endmark_failure::Check;

const READINESS_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of the status line, far above any real one.
const MAX_STATUS_LINE_BYTES: u64 = 1024;
const READINESS_REQUEST: &[u8] =
    b"GET /endmark/readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
const NOT_SERVING_HINT: &str =
    "Start the gateway with `endmark serve`, or name the configuration of the running one with `--config`.";

/// Whether a gateway already answers on the listening address, so that the port is in use.
pub(super) fn is_gateway_listening(settings: &Settings) -> bool {
    settings.tls.certificate.is_none()
        && matches!(request_readiness(reachable_address(settings.gateway.listener.listen)), Ok(200 | 503))
}

/// Queries the readiness of the listener.
///
/// A TLS listener is only connected to, because its certificate is for its public name.
pub(super) fn check(settings: &Settings) -> Check {
    let address = reachable_address(settings.gateway.listener.listen);
    let is_ready = if settings.tls.certificate.is_some() {
        connect(address).map(|_| None)
    } else {
        request_readiness(address).map(Some)
    };
    match is_ready {
        Ok(None) => {
            Check::passed("serving", format!("a server listens on {address}; its TLS was not checked"))
        }
        Ok(Some(200)) => Check::passed("serving", format!("the gateway on {address} is ready")),
        Ok(Some(503)) => {
            Check::failed("serving", format!("the gateway on {address} is stopping"), NOT_SERVING_HINT)
        }
        Ok(Some(_)) => {
            Check::failed("serving", format!("the server on {address} is not a gateway"), NOT_SERVING_HINT)
        }
        Err(error) => {
            Check::failed("serving", format!("cannot connect to {address}: {error}"), NOT_SERVING_HINT)
        }
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, READINESS_TIMEOUT)?;
    stream.set_read_timeout(Some(READINESS_TIMEOUT))?;
    stream.set_write_timeout(Some(READINESS_TIMEOUT))?;
    Ok(stream)
}

/// Returns the response status, or 0 if the response is not HTTP.
fn request_readiness(address: SocketAddr) -> io::Result<u16> {
    let mut stream = connect(address)?;
    stream.write_all(READINESS_REQUEST)?;
    let mut line = Vec::new();
    BufReader::new(stream).take(MAX_STATUS_LINE_BYTES).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    Ok(status.unwrap_or_default())
}
