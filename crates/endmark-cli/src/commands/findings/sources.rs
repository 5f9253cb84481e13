//! The named files and their transcripts.

use std::io;
use std::path::{Path, PathBuf};

use endmark_failure::CommandError;
use endmark_findings::{AgentResult, Cut, DeliveredResult, Remark, RemarkKind, Transcript, read};

use crate::context::Context;
use crate::input::Input;

/// A transcript and its origin.
pub(super) struct Source {
    pub(super) origin: String,
    pub(super) transcript: Transcript,
}

/// Maximum size of a transcript in bytes, about 1,000 times that of a typical one.
const MAX_TRANSCRIPT_BYTES: u64 = 256 << 20;

/// Reads all files, or standard input if no file is named.
pub(super) fn read_all(context: &Context, files: &[PathBuf]) -> Result<Vec<Source>, CommandError> {
    let standard_input = [PathBuf::from("-")];
    let files = if files.is_empty() { &standard_input } else { files };
    if files.iter().filter(|file| file.as_path() == Path::new("-")).count() > 1 {
        return Err(CommandError::input(
            "usage",
            "standard input is named twice",
            "Name `-` once; other results can be files.",
        ));
    }
    files.iter().map(|file| read_one(context, file)).collect()
}

/// Reads one file.
pub(super) fn read_one(context: &Context, file: &Path) -> Result<Source, CommandError> {
    let origin =
        if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
    let input = Input::open(Some(file), context.terminal).map_err(with_file_hint)?;
    let bytes = input.read_bytes_up_to(MAX_TRANSCRIPT_BYTES).map_err(with_file_hint)?;
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(CommandError::input(
            "not_utf8",
            format!("`{origin}` is UTF-16"),
            "Convert it first, as with `iconv -f UTF-16 -t UTF-8`.",
        ));
    }
    let transcript = read(&bytes);
    if is_findings_output(&transcript) {
        return Err(CommandError::input(
            "own_answer",
            format!(
                "`{origin}` is output of `endmark findings`, not a result: its information about cuts would be lost"
            ),
            "Name the original results, or the output of `endmark findings merge FILE… > merged.txt` without --json, which \
             can be read again.",
        ));
    }
    Ok(Source { origin, transcript })
}

/// Adds a hint to the error of an unreadable file.
fn with_file_hint(error: CommandError) -> CommandError {
    let CommandError::Read { path, source } = &error else { return error };
    let hint = match source.kind() {
        io::ErrorKind::NotFound => "Check the path; `-` reads a result from standard input.".to_owned(),
        io::ErrorKind::IsADirectory => {
            format!("Name the files in the folder, as in `{}`.", path.join("*.txt").display())
        }
        io::ErrorKind::PermissionDenied => {
            "Run the command as a user who may read the file, or copy the file.".to_owned()
        }
        _ => return error,
    };
    CommandError::input("unreadable", error.to_string(), hint)
}

/// Whether the transcript is merely output of `endmark findings`.
fn is_findings_output(transcript: &Transcript) -> bool {
    let is_nothing = |result: &AgentResult| result.cut == Cut::Severe && result.discarded == 0;
    transcript.remarks.iter().any(|remark| remark.kind == RemarkKind::OwnResponse)
        && transcript.results.iter().all(is_nothing)
}

/// Returns ignored or misunderstood input of all sources, and the number of omitted remarks.
pub(super) fn remarks(sources: &[Source]) -> (Vec<(&str, &Remark)>, usize) {
    let remarks = sources
        .iter()
        .flat_map(|source| source.transcript.remarks.iter().map(|remark| (source.origin.as_str(), remark)));
    (remarks.collect(), sources.iter().map(|source| source.transcript.remarks_omitted).sum())
}

/// Returns the results of all sources, in order.
pub(super) fn into_results(sources: Vec<Source>) -> Vec<DeliveredResult> {
    let of_source = |source: Source| {
        let origin = source.origin;
        source
            .transcript
            .results
            .into_iter()
            .map(move |result| DeliveredResult { origin: origin.clone(), result })
    };
    sources.into_iter().flat_map(of_source).collect()
}
