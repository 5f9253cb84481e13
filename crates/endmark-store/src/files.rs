//! Detects whether the files of an open store are still at their paths. If they were removed or replaced, no process
//! can find what is written into the open files.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The database, its write-ahead log, and the memory shared by its readers and writers.
const ENDINGS: [&str; 3] = ["", "-wal", "-shm"];

/// Device and inode number of a file, which differ for another file at the same path.
type Identity = (u64, u64);

/// The files of one open connection.
#[derive(Debug)]
pub(crate) struct Files {
    database: PathBuf,
    /// The files that existed, in the order of their endings.
    known: [Option<Identity>; 3],
}

impl Files {
    /// Records the files that exist now. It opens none: closing one again would release SQLite's locks.
    pub(crate) fn note(database: &Path) -> Self {
        let known = ENDINGS.map(|ending| identity(&with(database, ending)));
        Self { database: database.to_owned(), known }
    }

    /// Whether all of them are still in place. A file created since belongs to them from now on.
    pub(crate) fn are_in_place(&mut self) -> bool {
        ENDINGS.iter().zip(&mut self.known).all(|(ending, known)| {
            let found = identity(&with(&self.database, ending));
            let is_in_place = known.is_none() || *known == found;
            *known = known.or(found);
            is_in_place
        })
    }

    /// Removes the write-ahead log and the shared memory of a closed database that is no longer at its path. SQLite
    /// would apply them to the file that is at its path now.
    pub(crate) fn remove_left_behind(&self) {
        let mut files = ENDINGS.iter().map(|ending| with(&self.database, ending)).zip(&self.known);
        let is_in_place =
            |(path, known): &(PathBuf, &Option<Identity>)| known.is_some() && identity(path) == **known;
        if files.next().is_some_and(|database| is_in_place(&database)) {
            return;
        }
        for (path, _) in files.filter(is_in_place) {
            // If one cannot be removed, opening the store next reports the error.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the identity of the file at this path.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn with(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}
