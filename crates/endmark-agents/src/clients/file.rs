//! A configuration file on disk. It is replaced atomically, and its original is recorded next to it.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use endmark_failure::CommandError;
use endmark_process::{MAX_WRITTEN_BYTES, read_regular};
use tempfile::NamedTempFile;

use super::lock::FileLock;
use super::revision::WriteRecord;

/// Only the owner may read a new file, because it may contain a key.
const OWNER_ONLY_MODE: u32 = 0o600;

/// A client's configuration file.
pub struct ConfigurationFile {
    /// The real path, after following symbolic links. The links themselves are kept.
    pub path: PathBuf,
    /// The text of the file when it was read. `None` if it did not exist.
    pub text: Option<String>,
    /// The lock, which is held from before the read until after the write. `None` if the file was opened only
    /// for reading.
    lock: Option<RefCell<FileLock>>,
}

impl ConfigurationFile {
    /// Reads the file if it exists.
    pub fn open(named: &Path) -> Result<Self, CommandError> {
        let path = Self::resolve_path(named)?;
        let text = read(&path)?;
        Ok(Self { path, text, lock: None })
    }

    /// Reads the file if it exists, and locks it against other Endmark processes until this value is dropped.
    pub fn open_to_write(named: &Path) -> Result<Self, CommandError> {
        let path = Self::resolve_path(named)?;
        // Report an unreadable file before a lock is created next to it.
        read(&path)?;
        let lock =
            FileLock::take(sibling_path(&path, ".endmark-lock")).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => CommandError::input(
                    "locked_file",
                    format!("another Endmark process is writing `{}`", path.display()),
                    "Nothing was written. Run the command again after the other process has ended.",
                ),
                _ => unwritable_error(&path, &error),
            })?;
        let text = read(&path)?;
        Ok(Self { path, text, lock: Some(RefCell::new(lock)) })
    }

    /// Returns the path after following symbolic links.
    fn resolve_path(named: &Path) -> Result<PathBuf, CommandError> {
        Ok(match fs::canonicalize(named) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named.is_symlink() => named.to_owned(),
            Err(source) => return Err(CommandError::Read { path: named.to_owned(), source }),
        })
    }

    /// Returns the record of the last write. Returns `None` if Endmark has not written the file.
    pub fn record(&self) -> Result<Option<WriteRecord>, CommandError> {
        let Some(written) = read(&self.written_copy_path())? else { return Ok(None) };
        Ok(Some(WriteRecord { original: read(&self.backup_path())?, written }))
    }

    /// Returns the path of the backup of the original file.
    pub fn backup_path(&self) -> PathBuf {
        sibling_path(&self.path, ".endmark-backup")
    }

    /// Returns the path of a copy of the written file. It shows whether another program changed the file
    /// later.
    pub fn written_copy_path(&self) -> PathBuf {
        sibling_path(&self.path, ".endmark-written")
    }

    /// Returns the path of the record of created folders. They are removed together with the file.
    fn folders_record_path(&self) -> PathBuf {
        sibling_path(&self.path, ".endmark-folders")
    }

    /// Writes the record, then the file. At every moment, the file has its old or its new text, and the
    /// original can be restored.
    pub fn write(&self, record: &WriteRecord) -> Result<(), CommandError> {
        self.check_writable()?;
        let missing = self.lock.as_ref().map_or(0, |lock| lock.borrow().created_folders());
        if missing > 0 {
            self.replace(&self.folders_record_path(), &missing.to_string())?;
        }
        match &record.original {
            Some(original) => {
                self.rename_outdated_backup(original)?;
                self.replace(&self.backup_path(), original)?;
            }
            None => remove(&self.backup_path())?,
        }
        self.replace(&self.written_copy_path(), &record.written)?;
        self.check_unchanged()?;
        self.replace(&self.path, &record.written)
    }

    /// Renames an existing backup if its text differs from `next`. This happens if another program changed
    /// the file after Endmark wrote it.
    fn rename_outdated_backup(&self, next: &str) -> Result<(), CommandError> {
        match read(&self.backup_path())? {
            Some(earlier) if earlier != next => {
                let free = self.earlier_backups().find(|path| !path.exists());
                free.map_or(Ok(()), |free| self.replace(&free, &earlier))
            }
            _ => Ok(()),
        }
    }

    /// Returns the possible paths of earlier backups.
    fn earlier_backups(&self) -> impl Iterator<Item = PathBuf> {
        (1_u32..).map(|number| sibling_path(&self.path, &format!(".endmark-backup-{number}")))
    }

    /// Writes this text, or removes the file for `None`. Then deletes the record.
    pub fn restore(&self, text: Option<&str>) -> Result<(), CommandError> {
        self.write_or_remove(text)?;
        self.delete_record()
    }

    /// Writes this text, or removes the file for `None`.
    pub fn write_or_remove(&self, text: Option<&str>) -> Result<(), CommandError> {
        self.check_writable()?;
        self.check_unchanged()?;
        match text {
            Some(text) => self.replace(&self.path, text),
            None => remove(&self.path),
        }
    }

    /// Deletes the record, and the folders that Endmark created if they are empty.
    pub fn delete_record(&self) -> Result<(), CommandError> {
        remove(&self.written_copy_path())?;
        remove(&self.backup_path())?;
        for earlier in self.earlier_backups().take_while(|path| path.exists()) {
            remove(&earlier)?;
        }
        let made = read(&self.folders_record_path())?.and_then(|count| count.parse().ok()).unwrap_or(0);
        remove(&self.folders_record_path())?;
        if let Some(lock) = &self.lock {
            lock.borrow_mut().release();
        }
        // A folder with content cannot be removed. In that case, its parents are not empty either.
        let _ = self.parents().take(made).try_for_each(fs::remove_dir);
        Ok(())
    }

    /// Returns the parent folders, starting with the innermost.
    fn parents(&self) -> impl Iterator<Item = &Path> {
        self.path.ancestors().skip(1).take_while(|folder| !folder.as_os_str().is_empty())
    }

    /// Fails if the file is read-only. Replacing the file would ignore its permissions.
    fn check_writable(&self) -> Result<(), CommandError> {
        match fs::metadata(&self.path) {
            Ok(metadata) if metadata.permissions().readonly() => Err(CommandError::input(
                "unwritable_file",
                format!("`{}` is read-only", self.path.display()),
                "Nothing was written. If it may be changed, run `chmod u+w` and repeat the command.",
            )),
            _ => Ok(()),
        }
    }

    /// Fails if the file was changed after it was read. Clients also write their configuration.
    fn check_unchanged(&self) -> Result<(), CommandError> {
        if read(&self.path)? == self.text {
            return Ok(());
        }
        Err(CommandError::input(
            "changed_meanwhile",
            format!("another program has just changed `{}`", self.path.display()),
            "Nothing was written. Repeat the command; if a client is running, end it first.",
        ))
    }

    fn replace(&self, path: &Path, text: &str) -> Result<(), CommandError> {
        let like = fs::metadata(&self.path).ok();
        replace(path, text, like.as_ref()).map_err(|error| unwritable_error(path, &error))
    }
}

fn sibling_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, ToOwned::to_owned);
    name.push(ending);
    path.with_file_name(name)
}

fn read(path: &Path) -> Result<Option<String>, CommandError> {
    let refused = |why: String| {
        CommandError::input(
            "unfit_file",
            format!("`{}` cannot be used: {why}", path.display()),
            "Check the file: it is not the configuration of a client. Nothing was written.",
        )
    };
    let bytes = match read_regular(path, MAX_WRITTEN_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => return Ok(None),
            io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory | io::ErrorKind::FileTooLarge => {
                return Err(refused(error.to_string()));
            }
            _ => return Err(CommandError::Read { path: path.to_owned(), source: error }),
        },
    };
    String::from_utf8(bytes).map(Some).map_err(|_| refused("it is not UTF-8".to_owned()))
}

/// Replaces a file atomically, and copies the owner and permissions of `like`.
fn replace(path: &Path, text: &str, like: Option<&Metadata>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    let mode = like.map_or(OWNER_ONLY_MODE, |like| like.permissions().mode() & 0o777);
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    let own = file.as_file().metadata()?;
    if let Some(like) = like.filter(|like| (like.uid(), like.gid()) != (own.uid(), own.gid())) {
        fchown(file.as_file(), Some(like.uid()), Some(like.gid()))?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Returns the error for a record whose original file is missing.
pub fn missing_original(file: &ConfigurationFile) -> CommandError {
    let (backup, written) = (file.backup_path(), file.written_copy_path());
    CommandError::input(
        "lost_backup",
        format!("`{}`, the original of `{}`, is missing", backup.display(), file.path.display()),
        format!(
            "Nothing was written. Restore it, or delete `{}`: then `--undo` removes only settings that Endmark would write.",
            written.display()
        ),
    )
}

fn remove(path: &Path) -> Result<(), CommandError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable_error(path, &error)),
        _ => Ok(()),
    }
}

fn unwritable_error(path: &Path, error: &io::Error) -> CommandError {
    CommandError::input(
        "unwritable_file",
        format!("cannot write `{}`: {error}", path.display()),
        "Correct its permissions, or run without `--write` and add the lines yourself.",
    )
}
