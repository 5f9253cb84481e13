//! Parses the URL of a PostgreSQL store, and decides which part may be shown and whether connections use TLS.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// URL parameters that are passed to the driver. The driver supports more parameters, which this crate sets
/// itself.
const DRIVER_PARAMETERS: [&str; 6] = ["application_name", "dbname", "host", "options", "password", "user"];
const PARAMETER_NAMES: &str = "`sslmode`, `sslrootcert`, `host`, `dbname`, `user`, `password` and `options`";

/// The address of a PostgreSQL database, from a URL such as `postgres://user:password@db.example/endmark`. `Debug`
/// and `Display` never print its password.
///
/// ```
/// use endmark_store::PostgresAddress;
/// let address = PostgresAddress::parse("postgres://em:secret@db.example/endmark").unwrap();
/// assert_eq!(address.to_string(), "postgres://em@db.example:5432/endmark");
/// assert!(address.uses_tls());
/// assert!(!PostgresAddress::parse("postgres://em@127.0.0.1/endmark").unwrap().uses_tls());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    pub(crate) config: Config,
    uses_tls: bool,
    root_file: Option<PathBuf>,
}

/// Error for an unusable PostgreSQL URL. The message never contains the URL, because it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostgresAddressError {
    /// The text is not a PostgreSQL URL.
    #[error("the PostgreSQL URL cannot be used: write `postgres://USER:PASSWORD@HOST:PORT/DATABASE`")]
    NotAPostgresUrl,
    /// The password contains an unencoded `@`, so the host is ambiguous.
    #[error(
        "the PostgreSQL URL has more than one `@`: write `%40` for each `@` of the user and the password, and `%2F` for `/`"
    )]
    UnencodedAt,
    /// A `%` is not followed by two hexadecimal digits.
    #[error(
        "the PostgreSQL URL has a `%` without two hexadecimal digits after it: write `%25` for each `%` of the user and the password"
    )]
    InvalidEscape,
    /// The URL has an unknown parameter.
    #[error("the PostgreSQL URL has the unknown parameter `{0}`: there are {PARAMETER_NAMES}")]
    UnknownParameter(String),
    /// The URL names no host.
    #[error("the PostgreSQL URL names no host: write `postgres://USER:PASSWORD@HOST:PORT/DATABASE`")]
    NoHost,
    /// The URL names no database.
    #[error("the PostgreSQL URL names no database: write `postgres://USER:PASSWORD@HOST:PORT/DATABASE`")]
    NoDatabase,
    /// `sslmode` is neither `verify-full` nor `disable`. Other modes encrypt without verifying the server,
    /// which does not protect.
    #[error("`sslmode={0}` is not supported: write `verify-full`, which verifies the server, or `disable`")]
    UnsupportedSslMode(String),
}

impl PostgresAddress {
    /// Parses a URL. `sslmode` is `verify-full` or `disable`. The default is `verify-full`, or `disable` if
    /// all hosts are this machine and there is no `sslrootcert`. `sslrootcert` names a PEM file with the
    /// authorities that may certify the server, instead of the system's.
    ///
    /// # Errors
    /// [`PostgresAddressError`] if it is not a URL, has more than one `@` or an invalid escape, lacks a host or a
    /// database, or has an unknown parameter or an unsupported `sslmode`.
    pub fn parse(url: &str) -> Result<Self, PostgresAddressError> {
        let (mut kept, mut mode, mut root_file) = (Vec::new(), None, None);
        let (address, query) = url.trim().split_once('?').unwrap_or((url.trim(), ""));
        // The `?` probably belongs to the password, so no message may contain the text after it.
        if query.contains('@') {
            return Err(PostgresAddressError::NotAPostgresUrl);
        }
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => root_file = Some(PathBuf::from(value)),
                Some((name, _)) if DRIVER_PARAMETERS.contains(&name) => kept.push(parameter),
                other => {
                    let name = other.map_or(parameter, |(name, _)| name);
                    return Err(PostgresAddressError::UnknownParameter(name.to_owned()));
                }
            }
        }
        // The parser would read the end of such a password as the host, which is shown in messages.
        if address.matches('@').count() > 1 {
            return Err(PostgresAddressError::UnencodedAt);
        }
        if !url.split('%').skip(1).all(begins_with_hex) {
            return Err(PostgresAddressError::InvalidEscape);
        }
        if !address.contains("://") {
            return Err(PostgresAddressError::NotAPostgresUrl);
        }
        let config = Config::from_str(&format!("{address}?{}", kept.join("&")));
        let config = config.map_err(|_| PostgresAddressError::NotAPostgresUrl)?;
        if config.get_hosts().is_empty() {
            return Err(PostgresAddressError::NoHost);
        }
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(PostgresAddressError::NoDatabase);
        }
        let uses_tls = match mode {
            None => root_file.is_some() || !config.get_hosts().iter().all(is_this_machine),
            Some("verify-full") => true,
            Some("disable") => false,
            Some(other) => return Err(PostgresAddressError::UnsupportedSslMode(other.to_owned())),
        };
        Ok(Self { config, uses_tls, root_file })
    }

    /// Sets the user's password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Whether the URL contains a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Whether connections use TLS and verify the server's name.
    pub fn uses_tls(&self) -> bool {
        self.uses_tls
    }

    /// Returns the file of authorities that may certify the server, instead of the system's.
    pub fn authority_file(&self) -> Option<&Path> {
        self.root_file.as_deref()
    }

    /// Returns the hosts with their ports, in the order in which they are tried.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (&Host, u16)> {
        let ports = self.config.get_ports();
        let port = move |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        self.config.get_hosts().iter().enumerate().map(move |(index, host)| (host, port(index)))
    }
}

/// Formats a host for display.
pub(crate) fn display_host(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

fn begins_with_hex(text: &str) -> bool {
    text.get(..2).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(formatter, "{user}@")?;
        }
        for (index, (host, port)) in self.hosts().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{}:{port}", display_host(host))?;
        }
        write!(formatter, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PostgresAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_the_default_for_other_machines() {
        for (url, uses_tls) in [
            ("postgres://u:p@db.example/d", true),
            ("postgresql://u@10.0.0.7:6000/d", true),
            ("postgres://u@db.example/d?sslmode=disable", false),
            ("postgres://u@localhost/d", false),
            ("postgres://u@127.0.0.1,db.example/d", true),
            ("postgres://u@[::1]/d", false),
            ("postgres://u@[::1]/d?sslrootcert=/ca.pem", true),
            ("postgres://u@127.0.0.1/d?sslmode=verify-full&sslrootcert=/ca.pem", true),
            ("postgres://%2Frun%2Fpostgresql/d", false),
        ] {
            assert_eq!(PostgresAddress::parse(url).unwrap().uses_tls(), uses_tls, "{url}");
        }
    }

    #[test]
    fn the_error_for_an_unusable_url_hides_its_password() {
        for (url, error) in [
            (
                "postgres://u:hunter2@db.example/d?sslmode=require",
                PostgresAddressError::UnsupportedSslMode("require".to_owned()),
            ),
            ("postgres://u:hunter2@db.example", PostgresAddressError::NoDatabase),
            (
                "postgres://u:hunter2@db.example/d?what=1",
                PostgresAddressError::UnknownParameter("what".to_owned()),
            ),
            ("postgres://u:p?hunter2=@db.example/d", PostgresAddressError::NotAPostgresUrl),
            ("postgres://u:hunter2%zz@db.example/d", PostgresAddressError::InvalidEscape),
            ("postgres://u:hunter2%4@db.example/d", PostgresAddressError::InvalidEscape),
            ("postgres:/u:hunter2@db.example/d", PostgresAddressError::NotAPostgresUrl),
            ("postgres:///d", PostgresAddressError::NoHost),
            ("postgres://u:p@ss#w/hunter2@127.0.0.1/d", PostgresAddressError::UnencodedAt),
            ("postgres://u:hunter2@db.example:x/d", PostgresAddressError::NotAPostgresUrl),
        ] {
            assert_eq!(PostgresAddress::parse(url), Err(error.clone()), "{url}");
            assert!(!error.to_string().contains("hunter2"));
        }
        let address = PostgresAddress::parse("postgres://u:hunter2@h:6000,i/d?application_name=x").unwrap();
        assert!(!format!("{address} {address:?}").contains("hunter2"));
        assert_eq!(address.to_string(), "postgres://u@h:6000,i:5432/d");
    }
}
