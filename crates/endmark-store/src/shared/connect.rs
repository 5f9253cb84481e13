//! Connects to PostgreSQL over TCP or a Unix socket. Uses the first host that accepts writes, and verifies
//! the server if TLS is used.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, NoTls};
use tokio_rustls::TlsConnector;

use super::address::{PostgresAddress, display_host};
use crate::error::StoreError;

/// Maximum time to connect to one host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The request for TLS in the PostgreSQL protocol: its length, and a special number in the position of the
/// protocol version.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Transport for T {}

/// The reason why a connection failed.
#[derive(Debug)]
pub(crate) struct ConnectionFailure {
    pub(crate) detail: String,
    /// Whether the database rejected the connection, so that a retry would fail too.
    pub(crate) is_final: bool,
}

impl PostgresAddress {
    /// Converts the reason to an error of the store.
    pub(crate) fn store_error(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Database { address: self.to_string(), detail: detail.into() }
    }

    /// Returns the error for a database that did not answer within this time.
    pub(super) fn timeout_error(&self, after: Duration) -> StoreError {
        self.store_error(format!("no answer within {after:?}"))
    }

    /// Converts the error of a statement to an error of the store.
    pub(crate) fn statement_error(&self, error: &tokio_postgres::Error) -> StoreError {
        self.store_error(from_driver_error(error).detail)
    }

    /// Connects once, for an operator's command.
    pub(crate) async fn connect(&self) -> Result<Client, StoreError> {
        connect(self).await.map_err(|unconnected| self.store_error(unconnected.detail))
    }
}

/// Connects to the first host that accepts writes. The connection ends when the client is dropped.
pub(crate) async fn connect(address: &PostgresAddress) -> Result<Client, ConnectionFailure> {
    let mut failures = Vec::new();
    let mut is_final = true;
    for (host, port) in address.hosts() {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connect_to_host(address, host, port)).await;
        match connected
            .unwrap_or_else(|_| Err(host_unreachable(format!("no answer within {CONNECT_TIMEOUT:?}"))))
        {
            Ok(client) => return Ok(client),
            Err(failure) => {
                is_final &= failure.is_final;
                failures.push((host, port, failure.detail));
            }
        }
    }
    let detail = match &mut failures[..] {
        [(_, _, only)] => std::mem::take(only),
        several => {
            let shown =
                several.iter().map(|(host, port, detail)| format!("{}:{port}: {detail}", display_host(host)));
            shown.collect::<Vec<_>>().join("; ")
        }
    };
    Err(ConnectionFailure { detail, is_final })
}

async fn connect_to_host(
    address: &PostgresAddress,
    host: &Host,
    port: u16,
) -> Result<Client, ConnectionFailure> {
    let transport = open_transport(address, host, port).await?;
    let mut config = address.config.clone();
    // TLS is already set up on this stream.
    config.ssl_mode(SslMode::Disable).application_name("endmark");
    let (client, connection) =
        config.connect_raw(transport, NoTls).await.map_err(|error| from_driver_error(&error))?;
    tokio::spawn(connection);
    let recovers = client.query_typed_one("SELECT pg_is_in_recovery()", &[]).await;
    if recovers.map_err(|error| from_driver_error(&error))?.get(0) {
        return Err(temporary_failure("it is a standby, which takes no writes".to_owned()));
    }
    Ok(client)
}

fn temporary_failure(detail: String) -> ConnectionFailure {
    ConnectionFailure { detail, is_final: false }
}

fn permanent_failure(detail: String) -> ConnectionFailure {
    ConnectionFailure { detail, is_final: true }
}

fn host_unreachable(detail: impl std::fmt::Display) -> ConnectionFailure {
    temporary_failure(format!("{detail}: check that PostgreSQL runs there, and that this machine reaches it"))
}

/// Converts a driver error. The detail contains the database's message, with advice if there is any.
pub(crate) fn from_driver_error(error: &tokio_postgres::Error) -> ConnectionFailure {
    let source = error.source();
    let detail = match (error.as_db_error(), source) {
        (Some(error), _) => format!("{} (SQLSTATE {})", error.message(), error.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    };
    let code = match error.code() {
        Some(code) => code.code(),
        None if error.is_closed() || source.is_some_and(<dyn Error>::is::<io::Error>) => {
            return temporary_failure(detail);
        }
        // The driver needs a password that is missing, or does not support the server's authentication
        // method.
        None => "28000",
    };
    match advice(code) {
        Some(advice) => permanent_failure(format!("{detail}: {advice}")),
        None => temporary_failure(detail),
    }
}

/// Returns advice for an error with this SQLSTATE. Returns `None` for temporary conditions: a lost
/// connection, lack of resources, a stopping or starting server, a conflict, or a standby.
fn advice(code: &str) -> Option<&'static str> {
    let passes = ["08", "25006", "40", "53", "55", "57", "58", "XX"];
    Some(match code {
        _ if passes.iter().any(|class| code.starts_with(class)) => return None,
        _ if code.starts_with("28") => {
            "check the user and the password: in the URL, in `store_password`, or in the variable PGPASSWORD; and the server's `pg_hba.conf`"
        }
        _ if code.starts_with("3D") => "create it with `CREATE DATABASE`, or name another one in the URL",
        "42501" | "3F000" => {
            "the first gateway makes tables and needs `GRANT USAGE, CREATE ON SCHEMA public TO` its role; the others need the same role"
        }
        _ if code.starts_with("42") => {
            "its tables `em_…` are not those of this version: name an empty database"
        }
        _ => "the log of PostgreSQL has the details",
    })
}

async fn open_transport(
    address: &PostgresAddress,
    host: &Host,
    port: u16,
) -> Result<Box<dyn Transport>, ConnectionFailure> {
    let (name, mut stream) = match host {
        Host::Unix(folder) => {
            let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await;
            return Ok(Box::new(socket.map_err(host_unreachable)?));
        }
        Host::Tcp(name) => {
            let stream = TcpStream::connect((name.as_str(), port)).await.map_err(host_unreachable)?;
            (name.trim_matches(['[', ']']), stream)
        }
    };
    stream.set_nodelay(true).map_err(host_unreachable)?;
    if !address.uses_tls() {
        return Ok(Box::new(stream));
    }
    stream.write_all(&TLS_REQUEST).await.map_err(host_unreachable)?;
    match stream.read_u8().await.map_err(host_unreachable)? {
        b'S' => {}
        b'N' => {
            return Err(permanent_failure(
                "it offers no TLS: set it up there, or add `sslmode=disable` to the URL".to_owned(),
            ));
        }
        _ => return Err(temporary_failure("it does not answer the request for TLS".to_owned())),
    }
    let (tls, name) =
        build_tls_config(address, name).map_err(|error| permanent_failure(error.to_string()))?;
    let connected = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    connected.map(|stream| Box::new(stream) as Box<dyn Transport>).map_err(|error| {
        if !error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<rustls::Error>) {
            return host_unreachable(error);
        }
        permanent_failure(format!(
            "TLS: {error}: name the PEM file of its authority with `sslrootcert=PATH` in the URL, and the host as in its certificate"
        ))
    })
}

fn build_tls_config(
    address: &PostgresAddress,
    host: &str,
) -> io::Result<(ClientConfig, ServerName<'static>)> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(load_authorities(address)?)
        .with_no_client_auth();
    Ok((tls, ServerName::try_from(host.to_owned()).map_err(io::Error::other)?))
}

/// Loads the certificate authorities that may certify the server.
fn load_authorities(address: &PostgresAddress) -> io::Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    let certificates = match address.authority_file() {
        None => rustls_native_certs::load_native_certs().certs,
        Some(path) => {
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            read.map_err(|error| io::Error::other(format!("`sslrootcert` {}: {error}", path.display())))?
        }
    };
    let (usable, _) = store.add_parsable_certificates(certificates);
    if usable == 0 {
        return Err(io::Error::other("no certificate authorities found: name a PEM file with `sslrootcert`"));
    }
    Ok(store)
}
