//! Which process an intent belongs to, and whether that process is still alive.
//!
//! Each open store holds an advisory lock on a small file of its own next to the database. The operating
//! system lets go of it when the process ends, however it ends, so a lock that can be had means a dead owner.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::files::identity;

/// The owner of runs that another scheduler supervises: no process of ours is their sign of life, and they end only when that reports
/// their end.
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// Tells apart the stores that one process opens within one tick of the clock.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// The sign of life of one open store.
#[derive(Debug)]
pub(crate) struct Owner {
    name: String,
    path: PathBuf,
    /// Held for its lock; what is written into it is the slate's.
    file: RwLock<Arc<File>>,
    /// The file is to stay: it holds what the next start has to find.
    left: AtomicBool,
}

impl Owner {
    /// Makes a new owner and its sign of life. To be called under the database's write lock, so that nobody
    /// takes the file for a dead one's between its making and its locking.
    pub(crate) fn register(database: &Path) -> io::Result<Self> {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nth = OPENED.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{:x}-{nth}", process::id(), since_epoch.as_nanos());
        let path = sign_of(database, &name);
        let file = RwLock::new(Arc::new(create(&path)?));
        Ok(Self { name, path, file, left: AtomicBool::new(false) })
    }

    /// The name that intents carry: process id, start and a count.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The file.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the file is where others look for it.
    pub(crate) fn is_in_place(&self) -> bool {
        let open = self.file().metadata().map(|file| (file.dev(), file.ino()));
        open.is_ok_and(|open| identity(&self.path) == Some(open))
    }

    /// Makes the file anew, with what was written into the old one, after that was removed.
    pub(crate) fn renew(&self) -> io::Result<()> {
        // Under a name that is no sign of life until it is locked and whole.
        let mut name = OsString::from("new-");
        name.push(self.path.file_name().unwrap_or_default());
        let beside = self.path.with_file_name(name);
        let _ = fs::remove_file(&beside);
        let fresh = create(&beside)?;
        // Nothing is written meanwhile.
        let mut held = self.file.write().unwrap_or_else(PoisonError::into_inner);
        let mut old: &File = &held;
        old.rewind()?;
        io::copy(&mut old, &mut &fresh)?;
        fs::rename(&beside, &self.path)?;
        *held = Arc::new(fresh);
        Ok(())
    }

    /// Removes the file. One that stays behind is swept away by the next start.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
        self.leave();
    }

    /// From now on the file is not to be removed.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.left.load(Ordering::Acquire) {
            self.remove();
        }
    }
}

/// A new file for its owner alone, locked.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    file.lock()?;
    Ok(file)
}

/// Whether the store that registered under this name is still open. What cannot be told counts as alive:
/// an intent that waits is better than a recovery declared dead while it goes on.
pub(crate) fn is_alive(database: &Path, name: &str) -> bool {
    if name == ELSEWHERE {
        return true;
    }
    match File::open(sign_of(database, name)) {
        Ok(file) => !matches!(file.try_lock(), Ok(())),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether the store that registered under this name is dead, where these are the dead whose signs the caller holds.
pub(crate) fn is_dead(database: &Path, name: &str, left: &[Dead]) -> bool {
    left.iter().any(|dead| dead.is_of(database, name)) || !is_alive(database, name)
}

/// The signs that killed processes left behind, locked by us. To be called under the database's write lock.
pub(crate) fn dead(database: &Path) -> io::Result<Vec<Dead>> {
    let prefix = sign_of(database, "");
    let (Some(folder), Some(prefix)) = (prefix.parent(), prefix.file_name()) else { return Ok(Vec::new()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut dead = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_sign = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes()));
        // No other file is opened here: closing one of the database's own would let go of SQLite's locks on it.
        // Opening a pipe would block.
        if !is_sign || !path.is_file() {
            continue;
        }
        // One that was closed between the two has removed its file before it let go of the lock.
        if let Ok(file) = File::open(&path)
            && matches!(file.try_lock(), Ok(()))
            && path.exists()
        {
            dead.push(Dead { path, _file: file });
        }
    }
    Ok(dead)
}

/// What a dead process left.
#[derive(Debug)]
pub(crate) struct Dead {
    path: PathBuf,
    /// Held for its lock, until what is in the file is safe elsewhere.
    _file: File,
}

impl Dead {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the store that registered under this name left it: nobody else can find that out while it is held.
    pub(crate) fn is_of(&self, database: &Path, name: &str) -> bool {
        self.path == sign_of(database, name)
    }

    /// Removes the file.
    pub(crate) fn bury(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

fn sign_of(database: &Path, name: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-owner-");
    path.push(name);
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alive_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let first = Owner::register(&database).unwrap();
        let second = Owner::register(&database).unwrap();
        assert_ne!(first.name(), second.name());
        assert!(is_alive(&database, first.name()));
        let name = first.name().to_owned();
        drop(first);
        assert!(!is_alive(&database, &name));
        assert!(is_alive(&database, second.name()));
    }

    #[test]
    fn a_sweep_takes_the_dead_and_leaves_the_living() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let living = Owner::register(&database).unwrap();
        let dead = sign_of(&database, "1-2-3");
        let foreign = folder.path().join("a.db-other");
        File::create(&dead).unwrap();
        File::create(&foreign).unwrap();
        for left in super::dead(&database).unwrap() {
            left.bury().unwrap();
        }
        assert!(!dead.exists());
        assert!(foreign.exists());
        assert!(is_alive(&database, living.name()));
        assert!(living.path.exists());
    }
}
