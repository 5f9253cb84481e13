//! Whether the files of an open store still are at their paths: somebody may remove them, or put others in their place,
//! and what is written into those that are open is found by nobody then.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The database, its journal, and the memory that its readers and writers share.
const ENDINGS: [&str; 3] = ["", "-wal", "-shm"];

/// Device and number of a file: another one at the same path has others.
type Identity = (u64, u64);

/// The files of one open connection.
#[derive(Debug)]
pub(crate) struct Files {
    database: PathBuf,
    /// Those that were there, in the order of their endings.
    known: [Option<Identity>; 3],
}

impl Files {
    /// Those that are there now. Nothing is opened: closing it again would let go of SQLite's locks.
    pub(crate) fn note(database: &Path) -> Self {
        let known = ENDINGS.map(|ending| identity(&with(database, ending)));
        Self { database: database.to_owned(), known }
    }

    /// Whether all of them still are where they were. One that was made since belongs to them from now on.
    pub(crate) fn are_in_place(&mut self) -> bool {
        ENDINGS.iter().zip(&mut self.known).all(|(ending, known)| {
            let found = identity(&with(&self.database, ending));
            let is_in_place = known.is_none() || *known == found;
            *known = known.or(found);
            is_in_place
        })
    }

    /// Removes the journal and the shared memory of a database that is not at its path any more, and is closed: whatever
    /// is at its path now would be taken to go on in them.
    pub(crate) fn remove_left_behind(&self) {
        let mut files = ENDINGS.iter().map(|ending| with(&self.database, ending)).zip(&self.known);
        let is_in_place =
            |(path, known): &(PathBuf, &Option<Identity>)| known.is_some() && identity(path) == **known;
        if files.next().is_some_and(|database| is_in_place(&database)) {
            return;
        }
        for (path, _) in files.filter(is_in_place) {
            // One that cannot be removed is said by what is opened next.
            let _ = fs::remove_file(path);
        }
    }
}

/// The file at this path.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn with(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}
