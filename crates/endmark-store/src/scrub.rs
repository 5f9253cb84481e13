//! Removes secrets from stored texts. Every text from outside passes through this module before it is stored.
//!
//! Each record type lists all its fields here. A new field therefore does not compile until someone decides
//! whether it may contain text from others. Hashes, fixed labels and names from the configuration come from
//! the gateway itself.

use std::borrow::Cow;

use crate::calls::{CallSettled, CallStarted};
use crate::records::{CutSettled, CutStarted, ReplyPiece};

/// Removes secrets from texts.
pub trait Scrub: Send + Sync {
    /// Returns the text without secrets.
    fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

/// Removes nothing. For a program that writes all its texts itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

impl Scrub for NoSecrets {
    fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }
}

/// Returns the record without secrets.
pub(crate) fn remove_secrets<R: UntrustedRecord>(mut record: R, secrets: &dyn Scrub) -> R {
    for text in record.untrusted_texts() {
        let cleaned = match secrets.scrub(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(cleaned) => Some(cleaned),
        };
        if let Some(cleaned) = cleaned {
            *text = cleaned;
        }
    }
    record
}

/// A record to be stored.
pub(crate) trait UntrustedRecord {
    /// Returns the texts that others may have written.
    fn untrusted_texts(&mut self) -> Vec<&mut String>;
}

impl UntrustedRecord for String {
    fn untrusted_texts(&mut self) -> Vec<&mut String> {
        vec![self]
    }
}

impl UntrustedRecord for CallStarted {
    fn untrusted_texts(&mut self) -> Vec<&mut String> {
        let Self {
            request_id: _,
            call: _,
            purpose: _,
            session: _,
            credential: _,
            upstream: _,
            format: _,
            model,
            streamed: _,
            mode: _,
            started_ms: _,
            sent_bytes: _,
            prompt_estimate: _,
            charges: _,
        } = self;
        vec![model]
    }
}

impl UntrustedRecord for CallSettled {
    fn untrusted_texts(&mut self) -> Vec<&mut String> {
        let Self {
            answered_model,
            http_status: _,
            ending: _,
            stop: _,
            verdict: _,
            cut_kind: _,
            tokens: _,
            billing,
            nano_usd: _,
            received_bytes: _,
            estimate: _,
            first_byte_us: _,
            total_us: _,
        } = self;
        answered_model.iter_mut().chain(&mut billing.tier).collect()
    }
}

impl UntrustedRecord for CutStarted {
    fn untrusted_texts(&mut self) -> Vec<&mut String> {
        let Self {
            request_id: _,
            slot,
            task_id,
            turn_number: _,
            truncation_index: _,
            initial_chunk_length: _,
            model,
            provider: _,
            cut_kind: _,
        } = self;
        vec![slot, task_id, model]
    }
}

impl UntrustedRecord for CutSettled {
    fn untrusted_texts(&mut self) -> Vec<&mut String> {
        let Self {
            final_status: _,
            resume_attempts: _,
            outcome: _,
            seam_style: _,
            extra_prompt_tokens: _,
            extra_output_tokens: _,
            reason,
            pieces,
        } = self;
        pieces.iter_mut().flat_map(UntrustedRecord::untrusted_texts).chain([reason]).collect()
    }
}

impl UntrustedRecord for ReplyPiece {
    fn untrusted_texts(&mut self) -> Vec<&mut String> {
        let Self {
            ordinal: _,
            strategy: _,
            received_bytes: _,
            ending: _,
            stop: _,
            judged: _,
            why,
            seam_at: _,
            seam_style: _,
            dropped_bytes: _,
            confidence: _,
            sha256: _,
            text,
        } = self;
        text.iter_mut().chain([why]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FinalStatus, Purpose};

    struct RemovesOneSecret;

    impl Scrub for RemovesOneSecret {
        fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
            if text.contains("SECRET") { Cow::Owned(text.replace("SECRET", "***")) } else { text.into() }
        }
    }

    #[test]
    fn text_from_outside_is_scrubbed_before_storage() {
        let text = || "a SECRET b".to_owned();
        let own = || "own".to_owned();
        let started = CallStarted {
            request_id: own(),
            call: 1,
            purpose: Purpose::Reply,
            session: own(),
            credential: Some(own()),
            upstream: own(),
            format: "f".into(),
            model: text(),
            streamed: false,
            mode: "auto".into(),
            started_ms: 0,
            sent_bytes: 0,
            prompt_estimate: 0,
            charges: Vec::new(),
        };
        let piece = ReplyPiece {
            ordinal: 0,
            strategy: own(),
            received_bytes: 1,
            ending: own(),
            stop: None,
            judged: own(),
            why: text(),
            seam_at: None,
            seam_style: None,
            dropped_bytes: 0,
            confidence: None,
            sha256: own(),
            text: Some(text()),
        };
        let cut = CutStarted {
            request_id: own(),
            slot: text(),
            task_id: text(),
            turn_number: 1,
            truncation_index: None,
            initial_chunk_length: 0,
            model: text(),
            provider: own(),
            cut_kind: own(),
        };
        let settled = CutSettled {
            final_status: FinalStatus::Resolved,
            resume_attempts: 0,
            outcome: own(),
            seam_style: None,
            extra_prompt_tokens: 0,
            extra_output_tokens: 0,
            reason: text(),
            pieces: vec![piece],
        };
        let ended = CallSettled { answered_model: Some(text()), ..CallSettled::default() };
        let shown = [
            format!("{:?}", remove_secrets(started, &RemovesOneSecret)),
            format!("{:?}", remove_secrets(ended, &RemovesOneSecret)),
            format!("{:?}", remove_secrets(cut, &RemovesOneSecret)),
            format!("{:?}", remove_secrets(settled, &RemovesOneSecret)),
            remove_secrets(text(), &RemovesOneSecret),
        ];
        for shown in shown {
            assert!(!shown.contains("SECRET") && shown.contains("a *** b"), "{shown}");
        }
    }
}
