//! Reads the artifact of a run from disk, and checks it.

use std::io;
use std::path::Path;

use endmark_guard::{Artifact, Assessment, Guard};
use endmark_process::read_regular;
use endmark_store::sha256_hex;

/// Maximum size of an artifact in bytes. A typical artifact has about a thousandth of this size.
const MAX_ARTIFACT_BYTES: u64 = 256 << 20;

/// An artifact with the result of its checks.
#[derive(Debug)]
pub(crate) struct JudgedArtifact {
    /// The text of the file. `None` if the file does not exist.
    pub(crate) text: Option<String>,
    /// The findings of the checks.
    pub(crate) report: Assessment,
    /// A fingerprint of the text and the findings.
    pub(crate) fingerprint: String,
}

/// Reads and checks the artifact. A missing file is a finding. Fails if the file cannot be read.
pub(crate) fn inspect(path: &Path, guard: &Guard) -> io::Result<JudgedArtifact> {
    let bytes = match read_regular(path, MAX_ARTIFACT_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let report = Assessment::missing();
            return Ok(JudgedArtifact { text: None, report, fingerprint: "missing".to_owned() });
        }
        Err(error) => return Err(error),
    };
    // Check the text as it would be shown, with invalid UTF-8 replaced.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let report = guard.judge(&Artifact::read_file(&text, &path.to_string_lossy()));
    let mut fingerprint = sha256_hex(&bytes);
    for finding in report.findings() {
        fingerprint.push(' ');
        fingerprint.push_str(finding.check.name());
    }
    Ok(JudgedArtifact { text: Some(text), report, fingerprint })
}
