//! Detects whether a last message is cut off, if the stream contains no finish reason.

use crate::artifact::Artifact;
use crate::checks::mid_sentence::is_weak_in_messages;
use crate::{Criteria, Finding, Guard};

/// Known output limits of providers in tokens. A reply of exactly this length was cut. (Gemini: 8,192, 65,535
/// and 65,536. OpenAI: 16,384, 32,768, 100,000 and 128,000. Anthropic: 32,000 and 64,000.)
const KNOWN_OUTPUT_LIMITS: [u64; 9] =
    [8_192, 16_384, 32_000, 32_768, 64_000, 65_535, 65_536, 100_000, 128_000];

/// Returns the evidence that a message was cut off, or `None` without such evidence.
pub(super) fn cut_evidence(text: &str, output_tokens: Option<u64>) -> Option<String> {
    if let Some(tokens) = output_tokens.filter(|tokens| KNOWN_OUTPUT_LIMITS.contains(tokens)) {
        return Some(format!("the output is exactly {tokens} tokens, which is a known limit"));
    }
    let report = Guard::new(Criteria::default()).judge(&Artifact::read(text));
    let is_cut = |finding: &&Finding| finding.check.is_cut() && !is_weak_in_messages(&finding.why);
    let finding = report.findings().iter().find(is_cut)?;
    Some(format!("the last message breaks off ({}): {}", finding.check.name(), finding.why))
}
