//! Seams between the parts of a reply, as shown in answers.

use endmark_envelope::Warning;
use endmark_recovery::Seam;
use serde::Serialize;

/// Warning code for omitted bytes.
pub(crate) const LEFT_OUT_CODE: &str = "LEFT_OUT";

/// Returns a warning for each seam at which bytes were dropped.
pub(crate) fn dropped_warnings(seams: &[Seam]) -> impl Iterator<Item = Warning> {
    seams.iter().filter(|seam| seam.dropped_bytes > 0).map(|seam| {
        let shown = seam.dropped.escape_debug().to_string().replace("\\\"", "\"");
        let more = if seam.dropped.len() < seam.dropped_bytes { "…" } else { "" };
        let (count, place, style) = (seam.dropped_bytes, seam.at, seam.style.name());
        Warning::notice(
            LEFT_OUT_CODE,
            format!("{count} bytes are omitted at the seam at byte {place} ({style}): {shown}{more}"),
        )
    })
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SeamReport {
    at: usize,
    style: &'static str,
    dropped_bytes: usize,
    /// The beginning of the omitted bytes, at most 80 characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    dropped: String,
    confidence: f64,
    alternatives: usize,
}

impl SeamReport {
    pub(crate) fn new(seam: &Seam) -> Self {
        Self {
            at: seam.at,
            style: seam.style.name(),
            dropped_bytes: seam.dropped_bytes,
            dropped: seam.dropped.clone(),
            confidence: seam.confidence,
            alternatives: seam.alternatives,
        }
    }
}
