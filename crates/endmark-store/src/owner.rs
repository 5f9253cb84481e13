//! Owners of intents. An owner is the process that created the intent.
//!
//! Each open store holds an advisory lock on its own small file next to the database. The operating system
//! releases the lock when the process ends, even after a kill. If another process can acquire the lock, the
//! owner is dead.

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

/// The owner of runs that another scheduler supervises. This machine cannot tell whether they are alive, so
/// they end only when the scheduler reports their end.
pub(crate) const EXTERNAL_OWNER: &str = "elsewhere";

/// Makes owner names unique if one process opens several stores within the same tick of the clock.
static OPENED_STORES: AtomicU64 = AtomicU64::new(0);

/// The lock file of one open store, which proves that the store is open.
#[derive(Debug)]
pub(crate) struct Owner {
    name: String,
    path: PathBuf,
    /// Kept open for its lock. The slate writes its content into this file.
    file: RwLock<Arc<File>>,
    /// Whether the file must remain, because the next start needs its content.
    must_remain: AtomicBool,
}

impl Owner {
    /// Creates a new owner and its lock file. The caller holds the database's write lock. Without it, another
    /// process could find the new file before it is locked, and mistake its owner for a dead one.
    pub(crate) fn register(database: &Path) -> io::Result<Self> {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nth = OPENED_STORES.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{:x}-{nth}", process::id(), since_epoch.as_nanos());
        let path = owner_file_path(database, &name);
        let file = RwLock::new(Arc::new(create(&path)?));
        Ok(Self { name, path, file, must_remain: AtomicBool::new(false) })
    }

    /// Returns the owner's name: process id, start time and a counter.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the lock file.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the file is still at its path.
    pub(crate) fn is_in_place(&self) -> bool {
        let open = self.file().metadata().map(|file| (file.dev(), file.ino()));
        open.is_ok_and(|open| identity(&self.path) == Some(open))
    }

    /// Recreates a removed file with the content of the old one.
    pub(crate) fn renew(&self) -> io::Result<()> {
        // The temporary name is not that of a lock file until the new file is locked and complete.
        let mut name = OsString::from("new-");
        name.push(self.path.file_name().unwrap_or_default());
        let beside = self.path.with_file_name(name);
        let _ = fs::remove_file(&beside);
        let fresh = create(&beside)?;
        // Writers use the same lock, so they cannot write during the copy.
        let mut held = self.file.write().unwrap_or_else(PoisonError::into_inner);
        let mut old: &File = &held;
        old.rewind()?;
        io::copy(&mut old, &mut &fresh)?;
        fs::rename(&beside, &self.path)?;
        *held = Arc::new(fresh);
        Ok(())
    }

    /// Removes the file. If that fails, the next start removes it.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
        self.disable_removal_on_drop();
    }

    /// Marks the file as one that must remain.
    pub(crate) fn disable_removal_on_drop(&self) {
        self.must_remain.store(true, Ordering::Release);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.must_remain.load(Ordering::Acquire) {
            self.remove();
        }
    }
}

/// Creates a new locked file with mode 0600.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    file.lock()?;
    Ok(file)
}

/// Whether the store that registered under this name is still open. If that is unknown, the store counts as
/// open: settling an intent late is better than declaring a running recovery dead.
pub(crate) fn is_alive(database: &Path, name: &str) -> bool {
    if name == EXTERNAL_OWNER {
        return true;
    }
    match File::open(owner_file_path(database, name)) {
        Ok(file) => !matches!(file.try_lock(), Ok(())),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether the store that registered under this name is dead. `left` are the dead owners that the caller has
/// already locked.
pub(crate) fn is_dead(database: &Path, name: &str, left: &[DeadOwner]) -> bool {
    left.iter().any(|dead| dead.belongs_to(database, name)) || !is_alive(database, name)
}

/// Locks and returns the lock files of killed processes. The caller holds the database's write lock.
pub(crate) fn find_dead_owners(database: &Path) -> io::Result<Vec<DeadOwner>> {
    let mut dead = Vec::new();
    for path in list_owner_files(database)? {
        // If the owner closed its store since the folder was listed, it removed the file before it released
        // the lock.
        if let Ok(file) = File::open(&path)
            && matches!(file.try_lock(), Ok(()))
            && path.exists()
        {
            dead.push(DeadOwner { path, _file: file });
        }
    }
    Ok(dead)
}

/// Whether any other store is open on this database. The caller holds the database's write lock.
pub(crate) fn has_others(database: &Path, own_name: &str) -> io::Result<bool> {
    let own = owner_file_path(database, own_name);
    let is_locked = |path: &PathBuf| File::open(path).is_ok_and(|file| !matches!(file.try_lock(), Ok(())));
    Ok(list_owner_files(database)?.iter().any(|path| *path != own && is_locked(path)))
}

/// Returns the lock files of all owners.
fn list_owner_files(database: &Path) -> io::Result<Vec<PathBuf>> {
    let prefix = owner_file_path(database, "");
    let (Some(folder), Some(prefix)) = (prefix.parent(), prefix.file_name()) else { return Ok(Vec::new()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut signs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_sign = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes()));
        // Do not open any other file: closing one of the database's own files would release SQLite's locks on
        // it, and opening a pipe would block.
        if is_sign && path.is_file() {
            signs.push(path);
        }
    }
    Ok(signs)
}

/// The lock file of a dead process.
#[derive(Debug)]
pub(crate) struct DeadOwner {
    path: PathBuf,
    /// Kept open for its lock until the content of the file is stored elsewhere.
    _file: File,
}

impl DeadOwner {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is the lock file of the store that registered under this name. Other processes cannot
    /// check that while this one holds the lock.
    pub(crate) fn belongs_to(&self, database: &Path, name: &str) -> bool {
        self.path == owner_file_path(database, name)
    }

    /// Removes the file.
    pub(crate) fn remove_file(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

fn owner_file_path(database: &Path, name: &str) -> PathBuf {
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
    fn a_sweep_removes_only_dead_owners() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let living = Owner::register(&database).unwrap();
        let dead = owner_file_path(&database, "1-2-3");
        let foreign = folder.path().join("a.db-other");
        File::create(&dead).unwrap();
        File::create(&foreign).unwrap();
        for left in super::find_dead_owners(&database).unwrap() {
            left.remove_file().unwrap();
        }
        assert!(!dead.exists());
        assert!(foreign.exists());
        assert!(is_alive(&database, living.name()));
        assert!(living.path.exists());
    }
}
