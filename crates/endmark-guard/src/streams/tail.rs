//! Detects whether a last message is cut off, for streams without a finish reason.

use crate::artifact::Artifact;
use crate::checks::mid_sentence::is_weak;
use crate::{Criteria, Finding, Guard};

/// Known output limits of providers. A reply of exactly this length was cut. (Gemini's 8,192, 65,535 and 65,536;
/// OpenAI's 16,384, 32,768, 100,000 and 128,000; Anthropic's 32,000 and 64,000.)
const KNOWN_CAPS: [u64; 9] = [8_192, 16_384, 32_000, 32_768, 64_000, 65_535, 65_536, 100_000, 128_000];

/// Returns the evidence that a message was cut off, if there is any.
pub(super) fn cut(text: &str, output_tokens: Option<u64>) -> Option<String> {
    if let Some(tokens) = output_tokens.filter(|tokens| KNOWN_CAPS.contains(tokens)) {
        return Some(format!("the output is exactly {tokens} tokens, which is a known limit"));
    }
    let report = Guard::new(Criteria::default()).judge(&Artifact::read(text));
    let is_cut = |finding: &&Finding| finding.check.is_cut() && !is_weak(&finding.why);
    let finding = report.findings().iter().find(is_cut)?;
    Some(format!("the last message breaks off ({}): {}", finding.check.name(), finding.why))
}
