//! Opens and reads files without blocking.
//!
//! A named pipe without a writer blocks the process that opens it, and a device may block or be endless. A
//! command that handles timers and signals must not block, and neither must a path that another program
//! supplies. Therefore only regular files are read, and only up to a limit.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Maximum size in bytes of files that people write, such as configurations, templates and certificates.
pub const MAX_WRITTEN_BYTES: u64 = 16 << 20;

/// Opens a regular file for reading, without blocking.
///
/// # Errors
///
/// The system's error. For anything but a regular file, the error states the kind of the file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Do not open devices at all, because opening one may already have an effect.
    check_regular(fs::metadata(path)?.file_type())?;
    let file = OpenOptions::new().read(true).custom_flags(non_blocking()).open(path)?;
    // Meanwhile, the path may refer to another file than the one that was checked.
    check_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes, without blocking.
///
/// # Errors
///
/// The same as [`open_regular`], and [`io::ErrorKind::FileTooLarge`] if the file is larger.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= limit) {
        return Ok(bytes);
    }
    Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {limit} bytes")))
}

/// Reads a regular file of at most `limit` bytes as text, without blocking.
///
/// # Errors
///
/// The same as [`read_regular`], and [`io::ErrorKind::InvalidData`] if the file is not UTF-8.
pub fn read_regular_text(path: &Path, limit: u64) -> io::Result<String> {
    let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
    String::from_utf8(read_regular(path, limit)?).map_err(not_utf8)
}

/// Opens a file for writing with these options, without blocking. Later writes do not block either.
///
/// # Errors
///
/// The system's error. A named pipe without a reader is an error.
pub fn open_to_write(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(non_blocking()).open(path)
}

fn non_blocking() -> i32 {
    // The flags are small numbers on all systems.
    i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default()
}

fn check_regular(kind: FileType) -> io::Result<()> {
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a regular file"));
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    let message = format!("it is {what}, and only a regular file is read here: write its content to a file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read_regular_text(&file, 5).unwrap(), "12345");
        assert_eq!(read_regular(&file, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let refused = |path: &Path| read_regular(path, 5).unwrap_err().to_string();
        assert!(refused(&pipe).starts_with("it is a pipe"));
        assert!(refused(Path::new("/dev/zero")).starts_with("it is a device"));
        assert!(refused(folder.path()).starts_with("it is a folder"));
        let mut append = OpenOptions::new();
        assert!(open_to_write(append.append(true), &pipe).is_err());
    }
}
