//! Locks a configuration file while it is read, copied and written.
//!
//! The lock is a file next to the configuration, so all processes find the same lock even if their home
//! folders differ. The operating system releases the lock when its process ends, so a lock file that remains
//! does not block other processes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// If another process holds the lock, taking it is tried this many times: ten seconds in total.
const MAX_LOCK_ATTEMPTS: u32 = 500;
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// A held lock. Dropping it removes the lock file, and the folders that were created for it if they are
/// empty.
pub(super) struct FileLock {
    path: PathBuf,
    file: Option<File>,
    /// The folders that were created, starting with the innermost.
    created: Vec<PathBuf>,
}

impl FileLock {
    /// Waits until the lock with this path is free, and takes it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another process holds it for too long, otherwise the system's error.
    pub(super) fn take(path: PathBuf) -> io::Result<Self> {
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let made = folders.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let mut lock = Self { path, file: None, created: made };
        for _ in 0..MAX_LOCK_ATTEMPTS {
            let file = lock.open()?;
            match file.try_lock() {
                // The previous owner may have removed the file after it was opened here. Such a lock would
                // have no effect.
                Ok(()) if lock.is_at_its_path(&file) => {
                    lock.file = Some(file);
                    return Ok(lock);
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => thread::sleep(RETRY_INTERVAL),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "another process is writing it"))
    }

    /// Returns the number of folders that were created for the lock.
    pub(super) fn created_folders(&self) -> usize {
        self.created.len()
    }

    /// Removes the lock file. Called after the last change.
    pub(super) fn release(&mut self) {
        if let Some(file) = self.file.take() {
            // The lock is still held, so no other process holds a lock on this file.
            let _ = fs::remove_file(&self.path);
            drop(file);
        }
    }

    fn open(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        endmark_process::open_to_write(&mut options, &self.path)
    }

    fn is_at_its_path(&self, file: &File) -> bool {
        let at_path = fs::metadata(&self.path);
        matches!((file.metadata(), at_path), (Ok(own), Ok(other)) if (own.dev(), own.ino()) == (other.dev(), other.ino()))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        self.release();
        // A folder with content cannot be removed. In that case, its parents are not empty either.
        let _ = self.created.iter().try_for_each(fs::remove_dir);
    }
}
