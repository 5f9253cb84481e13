//! Removes secrets from stored texts. Every text from outside passes through this module before it is stored.
//!
//! Each record type lists all of its fields here, so that a new field does not compile until it is decided
//! whether it may contain text from others. Hashes, fixed words and names from the configuration are the gateway's own.

use std::borrow::Cow;

use crate::calls::{CallSettled, CallStarted};
use crate::records::{CutSettled, CutStarted, Piece};

/// Removes secrets from texts.
pub trait Scrub: Send + Sync {
    /// Returns the text without secrets.
    fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

/// Removes nothing, for a program that writes all of its texts itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

impl Scrub for NoSecrets {
    fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }
}

/// Returns the record without secrets.
pub(crate) fn clean<R: Record>(mut record: R, secrets: &dyn Scrub) -> R {
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
pub(crate) trait Record {
    /// Returns the texts that others may have written.
    fn untrusted_texts(&mut self) -> Vec<&mut String>;
}

impl Record for String {
    fn untrusted_texts(&mut self) -> Vec<&mut String> {
        vec![self]
    }
}

impl Record for CallStarted {
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

impl Record for CallSettled {
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

impl Record for CutStarted {
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

impl Record for CutSettled {
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
        pieces.iter_mut().flat_map(Record::untrusted_texts).chain([reason]).collect()
    }
}

impl Record for Piece {
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

    struct One;

    impl Scrub for One {
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
        let piece = Piece {
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
            format!("{:?}", clean(started, &One)),
            format!("{:?}", clean(ended, &One)),
            format!("{:?}", clean(cut, &One)),
            format!("{:?}", clean(settled, &One)),
            clean(text(), &One),
        ];
        for shown in shown {
            assert!(!shown.contains("SECRET") && shown.contains("a *** b"), "{shown}");
        }
    }
}
