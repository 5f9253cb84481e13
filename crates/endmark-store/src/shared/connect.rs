//! Connects to PostgreSQL over TCP or a Unix socket, with TLS that verifies the server, to the first host that
//! accepts writes.

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

use super::address::PostgresAddress;
use crate::error::StoreError;

/// Maximum time to establish a usable connection to a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The TLS request of PostgreSQL's protocol: its length, and a number that is no protocol version.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Transport for T {}

/// Reason of a failed connection.
#[derive(Debug)]
pub(crate) struct Unconnected {
    pub(crate) detail: String,
    /// Whether the database answered with a rejection: waiting does not help.
    pub(crate) is_final: bool,
}

impl PostgresAddress {
    /// Returns the error for callers of the store.
    pub(crate) fn failed(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Database { address: self.to_string(), detail: detail.into() }
    }

    /// Returns the error of a statement for callers of the store.
    pub(crate) fn statement_failed(&self, error: &tokio_postgres::Error) -> StoreError {
        self.failed(words(error))
    }

    /// Connects once, for an operator's command.
    pub(crate) async fn connect(&self) -> Result<Client, StoreError> {
        connect(self).await.map_err(|unconnected| self.failed(unconnected.detail))
    }
}

/// Connects to the first host that accepts writes. The connection ends when the client is dropped.
pub(crate) async fn connect(address: &PostgresAddress) -> Result<Client, Unconnected> {
    let mut failures = Vec::new();
    let mut is_final = true;
    for (host, port) in address.hosts() {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, to_host(address, host, port)).await;
        match connected.unwrap_or_else(|_| Err(temporary(format!("no answer within {CONNECT_TIMEOUT:?}")))) {
            Ok(client) => return Ok(client),
            Err(failure) => {
                is_final &= failure.is_final;
                failures.push(failure.detail);
            }
        }
    }
    Err(Unconnected { detail: failures.join("; "), is_final })
}

async fn to_host(address: &PostgresAddress, host: &Host, port: u16) -> Result<Client, Unconnected> {
    let transport = transport(address, host, port).await.map_err(|error| temporary(error.to_string()))?;
    let mut config = address.config.clone();
    // TLS is set up already.
    config.ssl_mode(SslMode::Disable).application_name("endmark");
    let (client, connection) =
        config.connect_raw(transport, NoTls).await.map_err(|error| of_database(&error))?;
    tokio::spawn(connection);
    let recovers = client.query_typed_one("SELECT pg_is_in_recovery()", &[]).await;
    if recovers.map_err(|error| of_database(&error))?.get(0) {
        return Err(temporary("it is a standby, which takes no writes".to_owned()));
    }
    Ok(client)
}

fn temporary(detail: String) -> Unconnected {
    Unconnected { detail, is_final: false }
}

/// Returns the database's own message, without the driver's text around it.
pub(crate) fn words(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(error), _) => format!("{} (SQLSTATE {})", error.message(), error.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

fn of_database(error: &tokio_postgres::Error) -> Unconnected {
    // Rejected credentials, or a database that does not exist.
    let is_final =
        error.code().is_some_and(|code| code.code().starts_with("28") || code.code().starts_with("3D"));
    Unconnected { detail: words(error), is_final }
}

async fn transport(address: &PostgresAddress, host: &Host, port: u16) -> io::Result<Box<dyn Transport>> {
    let (name, stream) = match host {
        Host::Unix(folder) => {
            let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await?;
            return Ok(Box::new(socket));
        }
        Host::Tcp(name) => (name.trim_matches(['[', ']']), TcpStream::connect((name.as_str(), port)).await?),
    };
    stream.set_nodelay(true)?;
    if !address.uses_tls() {
        return Ok(Box::new(stream));
    }
    let mut stream = stream;
    stream.write_all(&TLS_REQUEST).await?;
    if stream.read_u8().await? != b'S' {
        return Err(io::Error::other(
            "it offers no TLS: set it up there, or add `sslmode=disable` to the URL",
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(authorities(address)?)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(Arc::new(tls)).connect(name, stream).await?))
}

/// Returns the certificate authorities that may certify the server.
fn authorities(address: &PostgresAddress) -> io::Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    let certificates = match address.root_file() {
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
