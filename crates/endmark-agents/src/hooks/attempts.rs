//! Counts the attempts of agents by session and artifact. Each count is in a small file next to the store.

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

/// The attempts of one agent to finish one artifact in one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AttemptRecord {
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) artifact: String,
    /// Number of times that the agent tried to stop.
    pub(super) attempts: u32,
    /// Number of latest attempts in a row that changed nothing.
    pub(super) unchanged: u32,
    /// Fingerprint of the artifact at the latest attempt.
    pub(super) fingerprint: String,
    pub(super) state: State,
    pub(super) reason: Option<Reason>,
}

impl AttemptRecord {
    /// Records the decision about an attempt.
    pub(super) fn record_decision(&mut self, decision: Decision, fingerprint: &str) {
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

/// A decision with the updated record.
pub(super) struct RecordedDecision {
    pub(super) decision: Decision,
    pub(super) record: AttemptRecord,
    /// Whether the agent had already been released.
    pub(super) was_released: bool,
}

/// The record of one artifact in a file.
pub(super) struct AttemptFile {
    folder: PathBuf,
    path: PathBuf,
    new_record: AttemptRecord,
    retention: Option<Duration>,
}

impl AttemptFile {
    pub(super) fn open(
        settings: &Settings,
        agent: HookAgent,
        session: &str,
        artifact: &Path,
    ) -> Result<Self, CommandError> {
        let folder = folder(settings)?;
        let artifact = artifact.display().to_string();
        let name = record_name(&[agent.name(), session, &artifact]);
        let new = AttemptRecord {
            agent: agent.name().to_owned(),
            session: session.to_owned(),
            artifact,
            attempts: 0,
            unchanged: 0,
            fingerprint: String::new(),
            state: State::Running,
            reason: None,
        };
        Ok(Self {
            path: folder.join(name).with_extension("json"),
            folder,
            new_record: new,
            retention: retention(settings),
        })
    }

    /// Updates the record under a lock, because hooks of one session may run at the same time.
    pub(super) fn update(
        &self,
        decide: impl FnOnce(&mut AttemptRecord) -> Decision,
    ) -> Result<RecordedDecision, CommandError> {
        let failed = |error: io::Error| unusable_file_error(&self.path, &error);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let lock = open_to_write(&mut options, &self.folder.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut record = match read_regular(&self.path, MAX_WRITTEN_BYTES) {
            // An unreadable record is replaced by a new one. In the worst case, the agent gets a few more
            // attempts.
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|_| self.new_record.clone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.new_record.clone(),
            Err(error) => return Err(failed(error)),
        };
        // If an artifact was finished and is unfinished again, the attempts are counted from the beginning.
        if record.state == State::Succeeded {
            record = self.new_record.clone();
        }
        let was_released = record.state == State::Released;
        let decision = decide(&mut record);
        let text = serde_json::to_vec(&record).map_err(|error| CommandError::Bug(error.to_string()))?;
        write_private_file(&self.path, &text).map_err(failed)?;
        delete_old_records(&self.folder, self.retention);
        Ok(RecordedDecision { decision, record, was_released })
    }
}

/// Returns the folder with the records of hooks. Only its owner can read it.
pub(super) fn folder(settings: &Settings) -> Result<PathBuf, CommandError> {
    let store = settings.files.store.absolute();
    let folder = store.path().parent().unwrap_or(Path::new(".")).join("hooks");
    create_private_folder(&folder)?;
    Ok(folder)
}

/// Creates a folder if it does not exist. Only its owner can access it.
pub(super) fn create_private_folder(folder: &Path) -> Result<(), CommandError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| unusable_file_error(folder, &error))
}

/// Returns the text of a record. Returns `None` if the record does not exist.
pub(super) fn read_record(path: &Path) -> Result<Option<String>, CommandError> {
    match read_regular_text(path, MAX_WRITTEN_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable_file_error(path, &error)),
    }
}

/// Returns a file name that is derived from these words by a hash.
pub(super) fn record_name(words: &[&str]) -> String {
    hexadecimal(&Sha256::digest(words.join("\0")))
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    format!("{:x}", Bytes::copy_from_slice(bytes))
}

/// Writes a file atomically. Only its owner can access the file.
pub(super) fn write_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

pub(super) fn unusable_file_error(path: &Path, error: &io::Error) -> CommandError {
    let message = format!("`{}` cannot be used: {error}", path.display());
    CommandError::Store { message, hint: Some("Check its permissions, or name another `store`.".to_owned()) }
}

/// Returns how long records are kept. Returns `None` if they are never deleted.
pub(super) fn retention(settings: &Settings) -> Option<Duration> {
    let days = settings.gateway.store_policy.keep_days;
    (days > 0).then(|| Duration::from_secs(u64::from(days) * 86_400))
}

/// Deletes records that were not used for this long. A file that cannot be deleted stays until the next call.
pub(super) fn delete_old_records(folder: &Path, keep: Option<Duration>) {
    let Some(before) = keep.and_then(|keep| SystemTime::now().checked_sub(keep)) else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified < before) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
