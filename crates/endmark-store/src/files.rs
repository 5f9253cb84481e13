//! Detects whether the files of an open store are still at their paths. After they were removed or replaced,
//! no other process can find the data that is written to the open files.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Suffixes of the database, its write-ahead log and its shared memory.
const FILE_SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Device and inode number of a file. A replacement at the same path has different numbers.
type FileIdentity = (u64, u64);

/// The files of one open connection.
#[derive(Debug)]
pub(crate) struct DatabaseFiles {
    database: PathBuf,
    /// The files that existed, in the order of `FILE_SUFFIXES`.
    identities: [Option<FileIdentity>; 3],
}

impl DatabaseFiles {
    /// Records which files exist now. It opens no file, because closing one would release SQLite's locks.
    pub(crate) fn snapshot(database: &Path) -> Self {
        let known = FILE_SUFFIXES.map(|ending| identity(&sibling_path(database, ending)));
        Self { database: database.to_owned(), identities: known }
    }

    /// Whether all files are still in place. Files that were created since are recorded by this call.
    pub(crate) fn are_in_place(&mut self) -> bool {
        FILE_SUFFIXES.iter().zip(&mut self.identities).all(|(ending, known)| {
            let found = identity(&sibling_path(&self.database, ending));
            let is_in_place = known.is_none() || *known == found;
            *known = known.or(found);
            is_in_place
        })
    }

    /// Removes the write-ahead log and the shared memory of a closed database that is no longer at its path.
    /// Otherwise SQLite would apply them to the new file at that path.
    pub(crate) fn remove_leftovers(&self) {
        let mut files =
            FILE_SUFFIXES.iter().map(|ending| sibling_path(&self.database, ending)).zip(&self.identities);
        let is_in_place =
            |(path, known): &(PathBuf, &Option<FileIdentity>)| known.is_some() && identity(path) == **known;
        if files.next().is_some_and(|database| is_in_place(&database)) {
            return;
        }
        for (path, _) in files.filter(is_in_place) {
            // If removal fails, the next attempt to open the store reports the error.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the identity of the file at this path.
pub(crate) fn identity(path: &Path) -> Option<FileIdentity> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn sibling_path(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}
