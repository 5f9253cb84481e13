//! A configuration file on the disk: read whole, replaced at once, with what is kept beside it.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::revision::Record;
use crate::error::CommandError;

/// No configuration that a person keeps is longer.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// A new file may come to hold a key.
const OWNER_ONLY_MODE: u32 = 0o600;

/// A client's configuration file.
pub(in crate::commands) struct ConfigurationFile {
    /// Where it really is: a link is followed, and stays.
    pub(in crate::commands) path: PathBuf,
    /// What it said when it was read.
    pub(in crate::commands) text: Option<String>,
}

impl ConfigurationFile {
    /// Reads it, if there is one.
    pub(in crate::commands) fn open(named: &Path) -> Result<Self, CommandError> {
        let path = match fs::canonicalize(named) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named.is_symlink() => named.to_owned(),
            Err(source) => return Err(CommandError::Read { path: named.to_owned(), source }),
        };
        let text = read(&path)?;
        Ok(Self { path, text })
    }

    /// What was kept when it was written.
    pub(super) fn record(&self) -> Result<Option<Record>, CommandError> {
        let Some(written) = read(&self.written())? else { return Ok(None) };
        Ok(Some(Record { original: read(&self.backup())?, written }))
    }

    /// A copy of the file as it was found.
    pub(super) fn backup(&self) -> PathBuf {
        beside(&self.path, ".endmark-backup")
    }

    /// A copy of the file as it was left, by which it is known whether somebody else has changed it.
    pub(super) fn written(&self) -> PathBuf {
        beside(&self.path, ".endmark-written")
    }

    /// How many folders there were not, when it was written: those that end with it.
    fn folders(&self) -> PathBuf {
        beside(&self.path, ".endmark-folders")
    }

    /// Writes what is kept, then the file: at every moment there is the old one or the new one, and a way back.
    pub(super) fn write(&self, record: &Record) -> Result<(), CommandError> {
        self.check_writable()?;
        let missing = self.above().take_while(|folder| !folder.exists()).count();
        if missing > 0 {
            self.replace(&self.folders(), &missing.to_string())?;
        }
        match &record.original {
            Some(original) => self.replace(&self.backup(), original)?,
            None => remove(&self.backup())?,
        }
        self.replace(&self.written(), &record.written)?;
        self.check_untouched()?;
        self.replace(&self.path, &record.written)
    }

    /// Gives it this text, or removes it, and forgets what was kept.
    pub(super) fn restore(&self, text: Option<&str>) -> Result<(), CommandError> {
        self.put(text)?;
        self.forget()
    }

    /// Gives it this text, or removes it.
    pub(in crate::commands) fn put(&self, text: Option<&str>) -> Result<(), CommandError> {
        self.check_writable()?;
        self.check_untouched()?;
        match text {
            Some(text) => self.replace(&self.path, text),
            None => remove(&self.path),
        }
    }

    /// Removes what is kept beside it, and the folders that were made for it where nothing else is in them.
    pub(super) fn forget(&self) -> Result<(), CommandError> {
        remove(&self.written())?;
        remove(&self.backup())?;
        let made = read(&self.folders())?.and_then(|count| count.parse().ok()).unwrap_or(0);
        remove(&self.folders())?;
        // One in which something is cannot be removed, and none above it is empty then.
        let _ = self.above().take(made).try_for_each(fs::remove_dir);
        Ok(())
    }

    /// The folders that it is in, the innermost first.
    fn above(&self) -> impl Iterator<Item = &Path> {
        self.path.ancestors().skip(1).take_while(|folder| !folder.as_os_str().is_empty())
    }

    /// Putting another file in its place would get around its rights, so they are asked for before.
    fn check_writable(&self) -> Result<(), CommandError> {
        match fs::metadata(&self.path) {
            Ok(metadata) if metadata.permissions().readonly() => Err(CommandError::input(
                "unwritable_file",
                format!("`{}` is read-only", self.path.display()),
                "Nothing was written. Whoever made it so may mean it; else allow it with `chmod u+w`, and run it again.",
            )),
            _ => Ok(()),
        }
    }

    /// Clients write their configuration, too: what was decided on must still stand there.
    fn check_untouched(&self) -> Result<(), CommandError> {
        if read(&self.path)? == self.text {
            return Ok(());
        }
        Err(CommandError::input(
            "changed_meanwhile",
            format!("`{}` was changed by somebody else just now", self.path.display()),
            "Nothing was written to it. Run it again; if a client is at work, end that first.",
        ))
    }

    fn replace(&self, path: &Path, text: &str) -> Result<(), CommandError> {
        let like = fs::metadata(&self.path).ok();
        replace(path, text, like.as_ref()).map_err(|error| unwritable(path, &error))
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, ToOwned::to_owned);
    name.push(ending);
    path.with_file_name(name)
}

fn read(path: &Path) -> Result<Option<String>, CommandError> {
    let failed = |source| CommandError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(source)),
    };
    let refused = |message: &str| {
        CommandError::input(
            "unfit_file",
            format!("`{}` {message}", path.display()),
            "Look at it: it is no configuration of a client. Nothing was written.",
        )
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(refused("is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(refused("has more than 16 MiB"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| refused("is no UTF-8"))
}

/// Puts a file in the place of another at once, with its owner and rights.
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

/// What is kept says what was written into a file that was there before, and not what it was before.
pub(super) fn lost(file: &ConfigurationFile) -> CommandError {
    let (backup, written) = (file.backup(), file.written());
    CommandError::input(
        "lost_backup",
        format!("`{}` is gone, and with it what `{}` was before", backup.display(), file.path.display()),
        format!(
            "Nothing was written. Put it back, or remove `{}`: then `--undo` takes out only what Endmark would write.",
            written.display()
        ),
    )
}

fn remove(path: &Path) -> Result<(), CommandError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(path, &error)),
        _ => Ok(()),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::input(
        "unwritable_file",
        format!("cannot write `{}`: {error}", path.display()),
        "See to its rights, or leave `--write` out and put the lines in by hand.",
    )
}
