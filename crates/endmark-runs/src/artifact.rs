//! The artifact as it is on the disk, judged.

use std::io;
use std::path::Path;

use endmark_guard::{Artifact, Guard, Report};
use endmark_process::read_regular;
use endmark_store::sha256_hex;

/// How much of an artifact is read, in bytes; what people are to read is a thousandth of that.
const LIMIT_BYTES: u64 = 256 << 20;

/// An artifact that was read and judged.
#[derive(Debug)]
pub(crate) struct Seen {
    /// What stands there; none if there is no such file.
    pub(crate) text: Option<String>,
    /// What it lacks.
    pub(crate) report: Report,
    /// Stands for the content and what it lacks.
    pub(crate) fingerprint: String,
}

/// Reads and judges it. One that is not there is a finding; one that cannot be read is an error.
pub(crate) fn see(path: &Path, guard: &Guard) -> io::Result<Seen> {
    let bytes = match read_regular(path, LIMIT_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let report = Report::of_missing();
            return Ok(Seen { text: None, report, fingerprint: "missing".to_owned() });
        }
        Err(error) => return Err(error),
    };
    // What is not UTF-8 is judged as it would be shown.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let report = guard.judge(&Artifact::read_file(&text, &path.to_string_lossy()));
    let mut fingerprint = sha256_hex(&bytes);
    for finding in report.findings() {
        fingerprint.push(' ');
        fingerprint.push_str(finding.check.name());
    }
    Ok(Seen { text: Some(text), report, fingerprint })
}
