//! Reads and judges the artifact on disk.

use std::io;
use std::path::Path;

use endmark_guard::{Artifact, Assessment, Guard};
use endmark_process::read_regular;
use endmark_store::sha256_hex;

/// Maximum number of bytes that are read from an artifact. Typical artifacts have about a thousandth of this size.
const LIMIT_BYTES: u64 = 256 << 20;

/// An artifact that was read and judged.
#[derive(Debug)]
pub(crate) struct JudgedArtifact {
    /// The text of the file; `None` if there is no such file.
    pub(crate) text: Option<String>,
    /// The findings in the artifact.
    pub(crate) report: Assessment,
    /// Fingerprint of the content and the findings.
    pub(crate) fingerprint: String,
}

/// Reads and judges the artifact. A missing file is a finding; an unreadable file is an error.
pub(crate) fn inspect(path: &Path, guard: &Guard) -> io::Result<JudgedArtifact> {
    let bytes = match read_regular(path, LIMIT_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let report = Assessment::missing();
            return Ok(JudgedArtifact { text: None, report, fingerprint: "missing".to_owned() });
        }
        Err(error) => return Err(error),
    };
    // Invalid UTF-8 is judged in the form in which it would be shown.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let report = guard.judge(&Artifact::read_file(&text, &path.to_string_lossy()));
    let mut fingerprint = sha256_hex(&bytes);
    for finding in report.findings() {
        fingerprint.push(' ');
        fingerprint.push_str(finding.check.name());
    }
    Ok(JudgedArtifact { text: Some(text), report, fingerprint })
}
