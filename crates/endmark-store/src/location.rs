//! Location of the store: the value of `store` in the configuration.

use std::fmt;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::StoreError;
use crate::shared::address::{PostgresAddress, PostgresAddressError};

/// The location of a store: `sqlite:PATH`, or a PostgreSQL URL with the path of this instance's journal.
///
/// ```
/// use endmark_store::StoreLocation;
/// let location = StoreLocation::parse("sqlite:endmark.db").unwrap();
/// assert_eq!(location.path(), std::path::Path::new("endmark.db"));
/// let location = StoreLocation::parse("postgres://localhost/endmark").unwrap().with_journal("journal.db");
/// assert_eq!(location.path(), std::path::Path::new("journal.db"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLocation {
    path: PathBuf,
    /// Whether the folder belongs to Endmark and may be created if it is missing.
    makes_folder: bool,
    /// The database that several instances share. If set, the file is the journal of this instance.
    postgres: Option<PostgresAddress>,
}

/// Why a location is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// The engine is missing or unknown.
    #[error("`{0}` does not say where the store is: write `sqlite:PATH`, for example `sqlite:endmark.db`")]
    Unknown(String),
    /// The PostgreSQL URL is invalid.
    #[error(transparent)]
    Postgres(#[from] PostgresAddressError),
    /// The path of the file is missing.
    #[error("`sqlite:` needs the path of a file, for example `sqlite:endmark.db`")]
    NoPath,
    /// SQLite's name for an in-memory database. No other process could read it, and a restart would delete
    /// it.
    #[error("the store must be a file, since what it holds has to survive a restart: write `sqlite:PATH`")]
    InMemory,
}

impl StoreLocation {
    /// Parses `sqlite:PATH` (also `sqlite://PATH`), or a PostgreSQL URL, which needs a journal
    /// ([`Self::with_journal`]). A relative path is relative to the working directory.
    pub fn parse(text: &str) -> Result<Self, LocationError> {
        let text = text.trim();
        let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_lowercase()).unwrap_or_default();
        if ["pg", "psql"].contains(&scheme.as_str()) || scheme.starts_with("postg") {
            if !["postgres", "postgresql"].contains(&scheme.as_str()) {
                return Err(PostgresAddressError::NotAPostgresUrl.into());
            }
            let postgres = Some(PostgresAddress::parse(text)?);
            return Ok(Self { path: PathBuf::new(), makes_folder: false, postgres });
        }
        let Some(path) = text.strip_prefix("sqlite:") else {
            // Do not show any text before the host. The text may be a URL without its scheme, and contain a
            // password.
            let shown =
                text.rsplit_once('@').map_or_else(|| text.to_owned(), |(_, host)| format!("…@{host}"));
            return Err(LocationError::Unknown(shown));
        };
        match path.strip_prefix("//").unwrap_or(path) {
            "" => Err(LocationError::NoPath),
            ":memory:" => Err(LocationError::InMemory),
            path => Ok(Self::sqlite(path)),
        }
    }

    /// Returns the location of the SQLite store in this file.
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), makes_folder: false, postgres: None }
    }

    /// Returns the location of the SQLite store in this file of Endmark's own folder. A writer creates a
    /// missing folder with mode 0700. For any other location a missing folder is an error, because its file
    /// system may not be mounted.
    pub fn in_own_folder(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), makes_folder: true, postgres: None }
    }

    /// Returns the location with an absolute path. Error messages are then unambiguous, and changing the
    /// working directory does not affect the location.
    #[must_use]
    pub fn absolute(&self) -> Self {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        Self { path, ..self.clone() }
    }

    /// Returns the location with this file as the journal of this instance.
    #[must_use]
    pub fn with_journal(self, path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// Returns the location with this password for the database's user.
    #[must_use]
    pub fn with_password(self, password: &str) -> Self {
        let postgres = self.postgres.map(|postgres| postgres.with_password(password));
        Self { postgres, ..self }
    }

    /// Returns the database that several instances share, if there is one.
    pub fn postgres(&self) -> Option<&PostgresAddress> {
        self.postgres.as_ref()
    }

    /// Adapts an error of this location's file: it names the setting that contains the path.
    pub(crate) fn error_at_location(&self, error: StoreError) -> StoreError {
        if self.postgres.is_some() { error.for_journal() } else { error }
    }

    /// Creates the folder if it belongs to Endmark.
    pub(crate) fn make_folder(&self) -> Result<(), StoreError> {
        let Some(folder) = self.path.parent().filter(|_| self.makes_folder) else { return Ok(()) };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| StoreError::from_io(folder, &error))
    }

    /// Whether a writer could use this location: its folder exists, or belongs to Endmark and can be created.
    pub fn is_creatable(&self) -> bool {
        self.makes_folder
            || self.path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir())
    }

    /// Returns the path of the database file, or with PostgreSQL, of this instance's journal.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl FromStr for StoreLocation {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.postgres {
            Some(postgres) => postgres.fmt(formatter),
            None => write!(formatter, "sqlite:{}", self.path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_paths_with_and_without_slashes() {
        for (text, path) in
            [("sqlite:a.db", "a.db"), (" sqlite:/v/a b.db ", "/v/a b.db"), ("sqlite:///v/a.db", "/v/a.db")]
        {
            let location: StoreLocation = text.parse().unwrap();
            assert_eq!(location.path(), Path::new(path), "{text}");
        }
        assert_eq!(StoreLocation::sqlite("a.db").to_string(), "sqlite:a.db");
    }

    #[test]
    fn a_location_that_is_not_a_file_is_rejected_with_advice() {
        for (text, error) in [
            ("endmark.db", LocationError::Unknown("endmark.db".to_owned())),
            ("em:hunter2@h/d", LocationError::Unknown("…@h/d".to_owned())),
            ("", LocationError::Unknown(String::new())),
            ("sqlite:", LocationError::NoPath),
            ("sqlite::memory:", LocationError::InMemory),
        ] {
            assert_eq!(StoreLocation::parse(text), Err(error.clone()), "{text}");
            assert!(error.to_string().contains("sqlite:"), "{error}");
        }
        for misspelt in ["postgre://em:hunter2@h/d", "postgress://em:hunter2@h/d", "postgres:/em:hunter2@h/d"]
        {
            let error = StoreLocation::parse(misspelt).unwrap_err().to_string();
            assert!(error.contains("postgres://USER:PASSWORD@HOST") && !error.contains("hunter2"), "{error}");
        }
    }
}
