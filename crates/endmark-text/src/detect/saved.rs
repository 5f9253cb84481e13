//! Saves a detector, and checks a restored one (PC-2).

use serde::{Deserialize, Serialize};

use super::{Detector, Machine};

/// Version of the saved form. Increase it whenever the form changes.
const SAVED_STATE_VERSION: u32 = 2;

/// The saved form of a detector.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedDetector {
    version: u32,
    machine: Machine,
}

/// Error for a saved state that cannot be restored.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreError {
    /// Another version of the program saved the state.
    #[error(
        "the saved state has the version {0}, and this is version {SAVED_STATE_VERSION}: detect the text again"
    )]
    Version(u32),
    /// No text produces this state.
    #[error("no text leads to the saved state: detect the text again")]
    Inconsistent,
}

impl From<Detector> for SavedDetector {
    fn from(detector: Detector) -> Self {
        Self { version: SAVED_STATE_VERSION, machine: detector.machine }
    }
}

impl TryFrom<SavedDetector> for Detector {
    type Error = RestoreError;

    fn try_from(saved: SavedDetector) -> Result<Self, RestoreError> {
        if saved.version != SAVED_STATE_VERSION {
            return Err(RestoreError::Version(saved.version));
        }
        let is_consistent = match &saved.machine {
            Machine::Json(machine) => machine.is_consistent(),
            Machine::Markdown(machine) => machine.is_consistent(),
            Machine::Tags(machine) => machine.is_consistent(),
            Machine::Text(machine) => machine.is_consistent(),
            Machine::Marker(machine) => machine.is_consistent(),
            Machine::Auto(machine) => machine.is_consistent(),
        };
        if is_consistent { Ok(Self { machine: saved.machine }) } else { Err(RestoreError::Inconsistent) }
    }
}
