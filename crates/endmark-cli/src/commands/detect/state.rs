//! A detector that is saved between two runs, for a text that grows (PC-2).

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use endmark_failure::CommandError;
use endmark_process::{open_to_write, read_regular};
use endmark_text::Format;
use endmark_text::detect::Detector;

use crate::arguments::Detect;

/// Largest size of a saved detector.
const MAX_STATE_BYTES: u64 = 256 << 20;

/// Checks a text, or continues a saved detector with the next part of its text.
pub(super) fn detect(raw: &[u8], format: &Format, arguments: &Detect) -> Result<Detector, CommandError> {
    let mut detector = match &arguments.state {
        Some(file) => restore(file, format, arguments)?,
        None => Detector::new(format),
    };
    detector.push(raw);
    if let Some(file) = arguments.state.as_ref().or(arguments.save_state.as_ref()) {
        save(&detector, file)?;
    }
    Ok(detector)
}

fn restore(file: &Path, format: &Format, arguments: &Detect) -> Result<Detector, CommandError> {
    let saved = read_regular(file, MAX_STATE_BYTES)
        .map_err(|source| CommandError::Read { path: file.into(), source })?;
    let detector: Detector = serde_json::from_slice(&saved).map_err(|error| {
        CommandError::input(
            "invalid_state",
            format!("`{}` is not a saved detector: {error}", file.display()),
            "Start again with `--save-state FILE` and the text from its beginning.",
        )
    })?;
    let is_named = arguments.format.format.is_some() || arguments.format.marker.is_some();
    if is_named && detector.format() != *format {
        let message =
            format!("`{}` was saved for the format {}, not {format}", file.display(), detector.format());
        return Err(CommandError::input(
            "invalid_state",
            message,
            "Omit the format: the saved state contains it.",
        ));
    }
    Ok(detector)
}

/// Saves the detector under a temporary name first, so that an interrupted run leaves the old one intact.
fn save(detector: &Detector, file: &Path) -> Result<(), CommandError> {
    let saved = serde_json::to_vec(detector).map_err(|error| CommandError::Bug(error.to_string()))?;
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".unfinished");
    // A device or a pipe must not be replaced by a file.
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        let message = format!("`{}` is not a regular file, so the detector was not saved", file.display());
        return Err(CommandError::input("unwritable", message, "Name another file."));
    }
    let mut options = OpenOptions::new();
    let opened = open_to_write(options.write(true).create(true).truncate(true), Path::new(&unfinished));
    let written = opened.and_then(|mut unfinished| unfinished.write_all(&saved));
    written.and_then(|()| fs::rename(&unfinished, file)).map_err(|error| CommandError::Store {
        message: format!("cannot write `{}`: {error}", file.display()),
        hint: None,
    })
}
