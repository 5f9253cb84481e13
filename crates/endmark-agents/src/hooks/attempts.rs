//! Counts an agent's attempts by session and artifact, in one small file each next to the store.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use endmark_config::Settings;
use endmark_failure::CommandError;
use endmark_guard::{Decision, Reason, State};
use endmark_process::{MAX_WRITTEN_BYTES, open_to_write, read_regular, read_regular_text};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::agent::HookAgent;

/// The attempts of an agent to finish one artifact in one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) artifact: String,
    /// How many times the agent tried to stop.
    pub(super) attempts: u32,
    /// The number of last attempts that changed nothing.
    pub(super) unchanged: u32,
    /// The fingerprint of the artifact at the last attempt.
    pub(super) fingerprint: String,
    pub(super) state: State,
    pub(super) reason: Option<Reason>,
}

impl Record {
    /// Records the decision about an attempt.
    pub(super) fn note(&mut self, decision: Decision, fingerprint: &str) {
        if self.state != State::Released {
            self.attempts += 1;
        }
        self.unchanged = if self.fingerprint == fingerprint { self.unchanged + 1 } else { 0 };
        fingerprint.clone_into(&mut self.fingerprint);
        (self.state, self.reason) = match decision {
            Decision::Succeed => (State::Succeeded, None),
            Decision::Retry(reason) => (State::RetryQueued, Some(reason)),
            Decision::Release(reason) | Decision::Fail(reason) => (State::Released, Some(reason)),
        };
    }
}

/// A decision, with the updated record.
pub(super) struct RecordedDecision {
    pub(super) decision: Decision,
    pub(super) record: Record,
    /// Whether the agent was released before.
    pub(super) was_released: bool,
}

/// The location of one record.
pub(super) struct Attempts {
    folder: PathBuf,
    path: PathBuf,
    new: Record,
    keep: Option<Duration>,
}

impl Attempts {
    pub(super) fn open(
        settings: &Settings,
        agent: HookAgent,
        session: &str,
        artifact: &Path,
    ) -> Result<Self, CommandError> {
        let folder = folder(settings)?;
        let artifact = artifact.display().to_string();
        let name = record_name(&[agent.name(), session, &artifact]);
        let new = Record {
            agent: agent.name().to_owned(),
            session: session.to_owned(),
            artifact,
            attempts: 0,
            unchanged: 0,
            fingerprint: String::new(),
            state: State::Running,
            reason: None,
        };
        Ok(Self { path: folder.join(name).with_extension("json"), folder, new, keep: retention(settings) })
    }

    /// Changes the record under a lock, because hooks of one session may run concurrently.
    pub(super) fn change(
        &self,
        decide: impl FnOnce(&mut Record) -> Decision,
    ) -> Result<RecordedDecision, CommandError> {
        let failed = |error: io::Error| unusable(&self.path, &error);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let lock = open_to_write(&mut options, &self.folder.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut record = match read_regular(&self.path, MAX_WRITTEN_BYTES) {
            // An unreadable record starts again from zero: at worst the agent gets a few more attempts.
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|_| self.new.clone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.new.clone(),
            Err(error) => return Err(failed(error)),
        };
        // If a finished artifact is unfinished again, this counts as new work.
        if record.state == State::Succeeded {
            record = self.new.clone();
        }
        let was_released = record.state == State::Released;
        let decision = decide(&mut record);
        let text = serde_json::to_vec(&record).map_err(|error| CommandError::Bug(error.to_string()))?;
        put(&self.path, &text).map_err(failed)?;
        forget_old(&self.folder, self.keep);
        Ok(RecordedDecision { decision, record, was_released })
    }
}

/// Returns the folder of the hooks' records, which only its owner can read.
pub(super) fn folder(settings: &Settings) -> Result<PathBuf, CommandError> {
    let store = settings.files.store.absolute();
    let folder = store.path().parent().unwrap_or(Path::new(".")).join("hooks");
    make(&folder)?;
    Ok(folder)
}

/// Creates a folder that only its owner can access, if it does not exist.
pub(super) fn make(folder: &Path) -> Result<(), CommandError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| unusable(folder, &error))
}

/// Returns the text of a record, or `None` if it does not exist.
pub(super) fn read_record(path: &Path) -> Result<Option<String>, CommandError> {
    match read_regular_text(path, MAX_WRITTEN_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path, &error)),
    }
}

/// Returns a name derived from these words.
pub(super) fn record_name(words: &[&str]) -> String {
    hexadecimal(&Sha256::digest(words.join("\0")))
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    format!("{:x}", Bytes::copy_from_slice(bytes))
}

/// Writes a file atomically. Only its owner can access it.
pub(super) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

pub(super) fn unusable(path: &Path, error: &io::Error) -> CommandError {
    let message = format!("`{}` cannot be used: {error}", path.display());
    CommandError::Store { message, hint: Some("Check its permissions, or name another `store`.".to_owned()) }
}

/// Returns how long records are kept; `None` for forever.
pub(super) fn retention(settings: &Settings) -> Option<Duration> {
    let days = settings.gateway.store_policy.keep_days;
    (days > 0).then(|| Duration::from_secs(u64::from(days) * 86_400))
}

/// Removes records that are unused for this long. A file that cannot be removed stays until the next call.
pub(super) fn forget_old(folder: &Path, keep: Option<Duration>) {
    let Some(before) = keep.and_then(|keep| SystemTime::now().checked_sub(keep)) else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified < before) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
