//! Prepares the start of a tool: reads the manifest, checks the limits, and reads standard input. (EN-4)

use std::io::{self, IsTerminal, Seek};
use std::path::Path;
use std::{ffi::OsString, fs::File};

use endmark_envelope::{ErrorBody, FieldPath, Phase};
use endmark_failure::{CommandError, ExitStatus};
use endmark_process::read_regular_text;
use endmark_process::{CommandInput, EndSignals, SpoolError, SpooledInput, signals, spool};

use crate::limits::{self, ManifestMismatch};
use crate::manifest::{self, MAX_MANIFEST_BYTES, Manifest, PayloadLimit};
use crate::payload::{self, InvalidJson, OversizedValue, PayloadFault};
use crate::verdict::signal_code;

/// Reads and parses the manifest in this file.
pub(super) fn load_manifest(path: &Path) -> Result<Manifest, CommandError> {
    let text = read_regular_text(path, MAX_MANIFEST_BYTES).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => {
            let message = format!("`{}` is not a manifest: {source}", path.display());
            CommandError::Input { code: "manifest_too_large", message, hint: None }
        }
        _ => CommandError::Read { path: path.into(), source },
    })?;
    manifest::parse(&text).map_err(|error| CommandError::Input {
        code: error.code(),
        message: format!("{}:{}: {}", path.display(), error.line, error.problem),
        hint: error.hint(),
    })
}

/// Checks arguments and standard input against their limits. The inner error is the reason why the tool must
/// not be started.
pub(super) async fn prepare_input(
    progress: &dyn Fn(&str),
    manifest: &Manifest,
    command: &[OsString],
    signals: &mut EndSignals,
) -> Result<Result<CommandInput, ErrorBody>, CommandError> {
    match limits::check_command(manifest, command, |name| std::env::var_os(name)) {
        Ok(()) => read_stdin(progress, manifest, signals).await,
        Err(ManifestMismatch::TooLarge(found)) => Ok(Err(too_large_error(&found))),
        Err(ManifestMismatch::InvalidJson(found)) => Ok(Err(invalid_json_error(found))),
        Err(ManifestMismatch::WrongCommand { expected }) => {
            let error = ErrorBody::new(
                "wrong_command",
                ExitStatus::Usage.code(),
                format!("this manifest is for `{expected}`, and another command was given"),
            );
            Ok(Err(error.with_hint("Name the manifest of the command, or the command of the manifest.")))
        }
    }
}

fn too_large_error(found: &OversizedValue) -> ErrorBody {
    let field = found.field.parse().unwrap_or_else(|_| FieldPath::root().key(found.field.as_str()));
    ErrorBody::field_too_large(field, found.limit, found.actual, found.unit)
        .with_hint("The command was not started. Give it less, or in several parts.")
}

fn invalid_json_error(found: InvalidJson) -> ErrorBody {
    let message = format!("`{}` has limits inside, and is not JSON: {}", found.field, found.reason);
    ErrorBody::new("malformed", ExitStatus::Usage.code(), message)
        .in_phase(Phase::Validation)
        .about(found.field)
        .with_hint("The command was not started, because its input cannot be checked.")
}

/// Checks the limits inside standard input, and rewinds it.
fn check_content(
    mut file: File,
    limits: &[PayloadLimit],
) -> Result<Result<CommandInput, ErrorBody>, CommandError> {
    if !limits.is_empty() {
        let field = FieldPath::root().key("stdin");
        match payload::check_payload(limits, &field, &file) {
            Ok(()) => {}
            Err(PayloadFault::TooLarge(found)) => return Ok(Err(too_large_error(&found))),
            Err(PayloadFault::InvalidJson(found)) => return Ok(Err(invalid_json_error(found))),
        }
        file.rewind().map_err(|error| CommandError::Upstream { message: error.to_string(), hint: None })?;
    }
    Ok(Ok(CommandInput::File(file)))
}

/// Reads standard input if it has a limit. Otherwise, the tool inherits it.
async fn read_stdin(
    progress: &dyn Fn(&str),
    manifest: &Manifest,
    signals: &mut EndSignals,
) -> Result<Result<CommandInput, ErrorBody>, CommandError> {
    let is_terminal = io::stdin().is_terminal();
    let Some(limit) = manifest.max_stdin_bytes else {
        // In its own process group, the tool would be stopped as soon as it reads from the terminal.
        return Ok(Ok(if is_terminal { CommandInput::Empty } else { CommandInput::Inherited }));
    };
    if is_terminal {
        progress("Reading standard input; end it with Ctrl-D.");
    }
    let reading = tokio::task::spawn_blocking(move || spool(io::stdin(), limit));
    let timeout = async {
        match manifest.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let stopped = |code: &str, exit: ExitStatus, message: String| {
        ErrorBody::new(code, exit.code(), message)
            .in_phase(Phase::Validation)
            .with_hint("The command was not started, because its standard input must be complete first.")
    };
    tokio::select! {
        read = reading => match read {
            Ok(Ok(SpooledInput::Within(file))) => check_content(file, &manifest.stdin_fields),
            Ok(Ok(SpooledInput::TooLarge { actual })) => {
                let mut error = too_large_error(&OversizedValue { field: "stdin".to_owned(), limit, actual, unit: "bytes" });
                // Standard input was not read to its end, so its full size is unknown.
                error.message = format!("`stdin` has more than {limit} bytes, at most {limit}");
                Ok(Err(error))
            }
            Ok(Err(SpoolError::Read(source))) => Err(CommandError::Read { path: "standard input".into(), source }),
            Ok(Err(error @ SpoolError::Keep(_))) => Err(CommandError::Upstream {
                message: error.to_string(),
                hint: Some("The command was not started. Free some disk space, or set `TMPDIR` to a folder with free space.".to_owned()),
            }),
            Err(error) => Err(CommandError::Bug(error.to_string())),
        },
        signal = signals.next() => {
            let message = format!("{} came before standard input ended", signals::signal_name(signal.as_raw()));
            let (code, exit) = signal_code(signal);
            Ok(Err(stopped(code, exit, message)))
        }
        () = timeout => {
            let seconds = manifest.timeout.unwrap_or_default().as_secs_f64();
            Ok(Err(stopped("timeout", ExitStatus::Usage, format!("standard input did not end within {seconds} s"))))
        }
    }
}
