//! Errors of the store. Each names the affected file and a next step.

use std::io;
use std::path::{Path, PathBuf};

use crate::records::CutId;

/// An error of the store. It can be cloned, because one failed commit answers all requests in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder of the file does not exist.
    #[error(
        "the folder of the store `{path}` does not exist: create it, or name another file with `--store` or the key `store`"
    )]
    NoFolder {
        /// The path of the database.
        path: PathBuf,
    },
    /// A database cannot be created at this path, regardless of permissions.
    #[error("no store can be at `{path}`: {detail}; name another file with `--store` or the key `store`")]
    UnusablePath {
        /// The path of the database.
        path: PathBuf,
        /// The reason.
        detail: String,
    },
    /// A reader was opened for a store that does not exist.
    #[error(
        "there is no store at `{path}`: start `endmark serve` with it once, or name another file with `--store` or the key `store`"
    )]
    NoFile {
        /// The path of the database.
        path: PathBuf,
    },
    /// The file or its folder may not be opened or written.
    #[error(
        "cannot open the store `{path}` for reading and writing ({detail}): check the permissions of the file and its folder, or name another file with `--store` or the key `store`"
    )]
    Denied {
        /// The affected file.
        path: PathBuf,
        /// The operating system's or SQLite's message.
        detail: String,
    },
    /// The file is not a SQLite database.
    #[error(
        "`{path}` is not a SQLite database: name another file with `--store` or the key `store`, or move this one away"
    )]
    NotADatabase {
        /// The path of the database.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error(
        "the store `{path}` is damaged ({detail}): keep a copy, try `sqlite3 OLD .recover | sqlite3 NEW`, or name another file with `--store` or the key `store`"
    )]
    Corrupt {
        /// The path of the database.
        path: PathBuf,
        /// SQLite's message.
        detail: String,
    },
    /// The disk or the quota is full.
    #[error("the disk of the store `{path}` is full: free some space; writing then continues by itself")]
    DiskFull {
        /// The path of the database.
        path: PathBuf,
    },
    /// Another process kept the database locked for longer than Endmark waits.
    #[error(
        "the store `{path}` stayed locked by another process: end whatever keeps a transaction open on it, then try again"
    )]
    Busy {
        /// The path of the database.
        path: PathBuf,
    },
    /// The store has migrations that this version does not know.
    #[error(
        "the store `{path}` was written by a newer Endmark (schema {found}, this one knows {known}): update Endmark, or name another file with `--store` or the key `store`"
    )]
    NewerSchema {
        /// The path of the database.
        path: PathBuf,
        /// The newest migration in the store.
        found: u32,
        /// The newest migration that this version knows.
        known: u32,
    },
    /// The store lacks migrations, and a reader does not apply them.
    #[error(
        "the store `{path}` was written by an older Endmark (schema {found}, this one reads {known}): start `endmark serve` with it once, which brings it up to date"
    )]
    OlderSchema {
        /// The path of the database.
        path: PathBuf,
        /// The newest migration in the store.
        found: u32,
        /// The newest migration that this version knows.
        known: u32,
    },
    /// A migration in the store has a different text in this version.
    #[error(
        "the store `{path}` was made by a development build whose tables differ (migration {version}), and this Endmark cannot read it: move the file away, and `endmark serve` creates a new one; or name another file with `--store` or the key `store`"
    )]
    OtherMigration {
        /// The path of the database.
        path: PathBuf,
        /// The migration's number.
        version: u32,
    },
    /// The database file or one of its companion files was removed or replaced while it was open.
    #[error(
        "the files of the store `{path}` were removed or replaced while they were open, and the files that are there now cannot be used: {detail}"
    )]
    FilesGone {
        /// The path of the database.
        path: PathBuf,
        /// Why the store is not recreated.
        detail: String,
    },
    /// The intent does not exist, or was already settled.
    #[error("recovery {} is not open: it was settled already", .0.number())]
    NoSuchCut(CutId),
    /// The output does not exist for this owner.
    #[error(
        "there is no output `{handle}` here: it was never kept in this store, was deleted, or belongs to another owner"
    )]
    NoOutput {
        /// The handle.
        handle: String,
    },
    /// The output was not used within its retention time.
    #[error("the output `{handle}` has expired: it was not used for longer than `store_policy.keep_days`")]
    ExpiredOutput {
        /// The handle.
        handle: String,
    },
    /// The output was removed to make room for others.
    #[error(
        "the output `{handle}` was removed: kept outputs stay within `store_policy.outputs_max_bytes`, and others needed the space"
    )]
    RemovedOutput {
        /// The handle.
        handle: String,
    },
    /// This instance does not have the output, and the database that may have it does not respond.
    #[error(
        "the output `{handle}` is not known here, and the database that may have it cannot be reached: {detail}; try again later"
    )]
    OutputNotHere {
        /// The handle.
        handle: String,
        /// The error of the database.
        detail: String,
    },
    /// This machine has no such run, and the database that may have it does not respond.
    #[error(
        "no run `{id}` is recorded on this machine, and the database that may have it cannot be reached: {detail}; try again later"
    )]
    RunNotHere {
        /// The id, or its beginning.
        id: String,
        /// The error of the database.
        detail: String,
    },
    /// This machine has no such recovery or request, and the shared database does not respond.
    #[error(
        "no recovery or request `{id}` is recorded by this gateway, and the database that may have it cannot be reached: {detail}; try again later"
    )]
    RecordNotHere {
        /// The id.
        id: String,
        /// The error of the database.
        detail: String,
    },
    /// There is not enough room for a new output.
    #[error(
        "there is no space for it: kept outputs may take {max_bytes} bytes (`store_policy.outputs_max_bytes`), and those of the last hour are not removed"
    )]
    NoRoomForOutput {
        /// Maximum total size of the kept outputs.
        max_bytes: u64,
    },
    /// The PostgreSQL database fails or does not respond.
    #[error("the database `{address}` fails: {detail}")]
    Database {
        /// The database's URL without the password.
        address: String,
        /// The database's or the operating system's message.
        detail: String,
    },
    /// The database was written by a newer version.
    #[error(
        "the database `{address}` was written by a newer Endmark (schema {found}, this one knows {known}): update Endmark"
    )]
    NewerDatabase {
        /// The database's URL without the password.
        address: String,
        /// The schema of the database.
        found: i64,
        /// The newest schema that this version knows.
        known: i64,
    },
    /// The file cannot become a journal, because that would mix the records of two stores.
    #[error(
        "`{path}` is a store with records of its own, and cannot become the journal of a PostgreSQL store: name a new file with the key `journal`"
    )]
    UnusableJournal {
        /// The path of the journal.
        path: PathBuf,
    },
    /// A journal was opened as if it were a store.
    #[error(
        "`{path}` is the journal of a PostgreSQL store, and its budgets belong to that: set `store` to the database's URL, or name another file"
    )]
    IsJournal {
        /// The path of the journal.
        path: PathBuf,
    },
    /// Another process uses the journal. Both would spend from the same shares.
    #[error(
        "the journal `{path}` is in use by another process: give each gateway a journal of its own with the key `journal`"
    )]
    JournalInUse {
        /// The path of the journal.
        path: PathBuf,
    },
    /// The journal is an outdated copy: the database knows a newer journal of this instance.
    #[error(
        "the journal `{path}` is an older copy of one that another gateway uses, or used less than a minute ago: name a new file with the key `journal`; or, if this one is to continue, stop the other gateway and start again in a minute"
    )]
    InstanceInUse {
        /// The path of the journal.
        path: PathBuf,
    },
    /// No journal can exist at this path.
    #[error("the journal `{path}` cannot be used: {detail}; name another file with the key `journal`")]
    Journal {
        /// The path of the journal.
        path: PathBuf,
        /// The reason.
        detail: String,
    },
    /// A PostgreSQL store was configured without a journal.
    #[error("a PostgreSQL store needs `journal`, the path of a SQLite file of this instance alone")]
    NoJournal,
    /// The operation is not available for a shared store, only for a SQLite store.
    #[error("{what} does not work with a PostgreSQL store yet")]
    UnsupportedWhenShared {
        /// The operation.
        what: &'static str,
    },
    /// The writer has been closed.
    #[error("the store is closed")]
    Closed,
    /// Any other error that SQLite or the operating system reports.
    #[error("the store `{path}` failed: {detail}")]
    Failed {
        /// The affected file.
        path: PathBuf,
        /// SQLite's or the operating system's message.
        detail: String,
    },
}

impl StoreError {
    /// Returns the message for clients of a gateway. It does not contain the address of the shared database,
    /// which clients must not learn; the log has the details.
    ///
    /// ```
    /// use endmark_store::StoreError;
    /// let error = StoreError::Database { address: "postgres://em@db/d".to_owned(), detail: "refused".to_owned() };
    /// assert_eq!(error.client_message(), "the shared database does not answer");
    /// ```
    pub fn client_message(&self) -> String {
        match self {
            Self::Database { .. } => "the shared database does not answer".to_owned(),
            Self::InstanceInUse { .. } => "another gateway uses a copy of this one's journal".to_owned(),
            Self::OutputNotHere { handle, .. } => {
                format!(
                    "the output `{handle}` is not known here, and the shared database does not answer; try again later"
                )
            }
            other => other.to_string(),
        }
    }

    /// Returns the same error for a journal, whose path has a different setting.
    pub(crate) fn for_journal(self) -> Self {
        let (path, detail) = match self {
            Self::NoFolder { path } => (path, "its folder does not exist: create it".to_owned()),
            Self::NoFile { path } => (path, "it does not exist: `endmark serve` creates it".to_owned()),
            Self::NotADatabase { path } => (path, "it is not a SQLite database".to_owned()),
            Self::UnusablePath { path, detail } => (path, detail),
            Self::Denied { path, detail } => {
                (path, format!("{detail}; check the permissions of the file and its folder"))
            }
            other => return other,
        };
        Self::Journal { path, detail }
    }

    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Self {
        if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            return Self::missing_path(path, error);
        }
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::IsADirectory => Self::UnusablePath { path, detail: "it is a folder".to_owned() },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Denied { path, detail: error.to_string() },
        }
    }

    /// Returns the error for a path that does not exist: its folder is missing or not a folder, or no file
    /// can be created there, as in `/proc`.
    fn missing_path(path: &Path, error: &io::Error) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let nearest = folder.ancestors().find(|folder| folder.exists());
        let path = path.to_owned();
        if let Some(file) = nearest.filter(|nearest| !nearest.is_dir()) {
            return Self::UnusablePath { path, detail: format!("`{}` is not a folder", file.display()) };
        }
        if !folder.is_dir() {
            return Self::NoFolder { path };
        }
        let detail = if path.is_symlink() {
            "it is a link to a path that does not exist".to_owned()
        } else {
            format!("its folder exists, but a file in it cannot be created or opened: {error}")
        };
        Self::UnusablePath { path, detail }
    }

    /// Returns the error for a path that is a device, a pipe, a socket or a folder.
    pub(crate) fn not_a_file(path: &Path) -> Self {
        Self::UnusablePath { path: path.to_owned(), detail: "it is not a regular file".to_owned() }
    }
}
