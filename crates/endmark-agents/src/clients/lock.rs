//! A lock on a configuration file while it is read, copied and written.
//!
//! The lock is a file next to the configuration, so every process finds the same one, whatever its home folder. The
//! system releases the lock when its process ends, so a stale file blocks no process.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How many times to try a lock of another process, at this interval: ten seconds in total.
const MAX_TRIES: u32 = 500;
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// A lock. Dropping it removes its file, and the folders created for it if they are empty.
pub(super) struct Lock {
    path: PathBuf,
    file: Option<File>,
    /// The created folders, the innermost first.
    created: Vec<PathBuf>,
}

impl Lock {
    /// Waits for the lock of this path.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another process holds it for too long, otherwise the system's error.
    pub(super) fn take(path: PathBuf) -> io::Result<Self> {
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let made = folders.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let mut lock = Self { path, file: None, created: made };
        for _ in 0..MAX_TRIES {
            let file = lock.open()?;
            match file.try_lock() {
                // The previous owner may have removed the file after it was opened here. Then the lock has no effect.
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

    /// Returns the number of created folders.
    pub(super) fn created_folders(&self) -> usize {
        self.created.len()
    }

    /// Removes the file of the lock, after the last change.
    pub(super) fn release(&mut self) {
        if let Some(file) = self.file.take() {
            // The lock is still held, so no other process has locked this file.
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

impl Drop for Lock {
    fn drop(&mut self) {
        self.release();
        // A folder with content cannot be removed. Then its parents are not empty either.
        let _ = self.created.iter().try_for_each(fs::remove_dir);
    }
}
