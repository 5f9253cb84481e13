//! A lock on a configuration file, for as long as it is read, copied and written.
//!
//! It is a file beside the configuration, so that every process finds the same one, whatever its home folder is. The system
//! releases the lock with the process; a stale file locks no process out.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often, and how far apart, a lock that another process holds is tried: ten seconds together.
const TRIES: u32 = 500;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A lock that is held. Dropping it removes its file, and the folders that were made for it where nothing else is in them.
pub(super) struct Lock {
    path: PathBuf,
    file: Option<File>,
    /// The folders that there were not before, the innermost first.
    made: Vec<PathBuf>,
}

impl Lock {
    /// Waits for the lock of this path.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where another process holds it for too long, and what the system reports.
    pub(super) fn take(path: PathBuf) -> io::Result<Self> {
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let made = folders.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let mut lock = Self { path, file: None, made };
        for _ in 0..TRIES {
            let file = lock.open()?;
            match file.try_lock() {
                // Its holder may have removed it after it was opened here; then it locks nothing.
                Ok(()) if lock.is_at_its_path(&file) => {
                    lock.file = Some(file);
                    return Ok(lock);
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => thread::sleep(BETWEEN_TRIES),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "another process is writing it"))
    }

    /// How many folders were made for it.
    pub(super) fn folders_made(&self) -> usize {
        self.made.len()
    }

    /// Removes the file of the lock, after the last change.
    pub(super) fn release(&mut self) {
        if let Some(file) = self.file.take() {
            // Removed while the lock is held, so that no other process has locked this file.
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
        // One in which something is cannot be removed, and none above it is empty then.
        let _ = self.made.iter().try_for_each(fs::remove_dir);
    }
}
