//! The input of a command: a file, a pipe or standard input.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use endmark_failure::CommandError;
use endmark_process::{MAX_WRITTEN_BYTES, open_regular};

use crate::progress::CountedInput;
use crate::view::terminal::Terminal;

/// Size of the read buffer.
const BUFFER_BYTES: usize = 64 << 10;
/// Paths that mean standard input.
const STANDARD_INPUT: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// A file, or standard input if no file is named or its name is `-`.
pub(crate) struct Input {
    path: PathBuf,
    reader: BufReader<CountedInput>,
}

impl Input {
    /// Opens the data to work on: a file, a pipe such as that of `<(command)`, or standard input.
    pub(crate) fn open(path: Option<&Path>, terminal: Terminal) -> Result<Self, CommandError> {
        let Some(path) = path.filter(|path| !is_standard_input(path)) else {
            return Ok(Self::standard(terminal));
        };
        let file = open_data(path).map_err(|source| CommandError::Read { path: path.into(), source })?;
        Ok(Self::new(path.into(), Box::new(file)))
    }

    /// Opens an auxiliary file such as an artifact, a template or a prompt.
    ///
    /// It must be a regular file, so that reading never blocks. `-` names standard input.
    pub(crate) fn open_file(path: &Path, terminal: Terminal) -> Result<Self, CommandError> {
        if is_standard_input(path) {
            return Ok(Self::standard(terminal));
        }
        let file = open_regular(path).map_err(|source| CommandError::Read { path: path.into(), source })?;
        Ok(Self::new(path.into(), Box::new(file)))
    }

    fn standard(terminal: Terminal) -> Self {
        let input = io::stdin();
        if input.is_terminal() {
            terminal.progress("Reading standard input; end it with Ctrl-D.");
        }
        Self::new("standard input".into(), Box::new(input))
    }

    /// Wraps a reader. Errors name it as `path`.
    pub(crate) fn new(path: PathBuf, source: Box<dyn Read>) -> Self {
        Self { path, reader: BufReader::with_capacity(BUFFER_BYTES, CountedInput(source)) }
    }

    /// Reads the whole input.
    pub(crate) fn read_bytes(mut self) -> Result<Vec<u8>, CommandError> {
        let mut bytes = Vec::new();
        match self.reader.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(source) => Err(CommandError::Read { path: self.path, source }),
        }
    }

    /// Passes the whole input to `take`, in chunks as they arrive.
    pub(crate) fn each_chunk(
        mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(CommandError::Read { path: self.path, source }),
            };
            let count = chunk.len();
            if count == 0 {
                return Ok(());
            }
            take(chunk)?;
            self.reader.consume(count);
        }
    }

    /// Reads the whole input if it has at most `limit` bytes.
    pub(crate) fn read_bytes_up_to(mut self, limit: u64) -> Result<Vec<u8>, CommandError> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes);
        let count = read.map_err(|source| CommandError::Read { path: self.path.clone(), source })?;
        if u64::try_from(count).is_ok_and(|count| count <= limit) {
            return Ok(bytes);
        }
        let message = format!("`{}` has more than {limit} bytes", self.path.display());
        Err(CommandError::input("too_large", message, "Name only the part with the result."))
    }

    /// Reads the whole input as text.
    pub(crate) fn read_text(self) -> Result<String, CommandError> {
        let path = self.path.clone();
        decode_text(&path, self.read_bytes()?)
    }

    /// Reads the whole input as text, up to the size limit for hand-written files.
    pub(crate) fn read_hand_written(self) -> Result<String, CommandError> {
        let path = self.path.clone();
        decode_text(&path, self.read_bytes_up_to(MAX_WRITTEN_BYTES)?)
    }

    /// Reads the next line without its newline, at most `limit` bytes. Returns `None` at the end.
    pub(crate) fn read_line(&mut self, limit: u64, line: &mut Vec<u8>) -> Result<Option<Line>, CommandError> {
        line.clear();
        let read = self.reader.by_ref().take(limit).read_until(b'\n', line);
        let count = read.map_err(|source| CommandError::Read { path: self.path.clone(), source })?;
        let has_newline = line.pop_if(|byte| *byte == b'\n').is_some();
        if count == 0 {
            return Ok(None);
        }
        if has_newline || u64::try_from(count).is_ok_and(|count| count < limit) {
            return Ok(Some(Line::Complete));
        }
        self.skip_line()?;
        Ok(Some(Line::TooLong))
    }

    /// Whether the next read may block.
    pub(crate) fn may_block(&self) -> bool {
        self.reader.buffer().is_empty()
    }

    fn skip_line(&mut self) -> Result<(), CommandError> {
        let skipped = self.reader.skip_until(b'\n');
        skipped.map(|_| ()).map_err(|source| CommandError::Read { path: self.path.clone(), source })
    }
}

fn is_standard_input(path: &Path) -> bool {
    STANDARD_INPUT.iter().any(|name| path == Path::new(name))
}

/// Opens a file or a pipe.
///
/// Refuses devices except terminals and `/dev/null`, because reading from a device may never end.
fn open_data(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    let kind = found.file_type();
    let is_null = || fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == found.rdev());
    let file = if kind.is_block_device() { None } else { Some(File::open(path)?) };
    match file {
        Some(file) if !kind.is_char_device() || file.is_terminal() || is_null() => Ok(file),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device: name a file or a pipe")),
    }
}

fn decode_text(path: &Path, bytes: Vec<u8>) -> Result<String, CommandError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("`{}` is not UTF-8: byte {at} is invalid", path.display());
        CommandError::Input { code: "not_utf8", message, hint: None }
    })
}

/// How a line was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// The line is complete.
    Complete,
    /// Only the beginning was read; the rest was skipped.
    TooLong,
}
