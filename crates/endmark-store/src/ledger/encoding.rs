//! Encodes one call into a slot: a checksum, then length-prefixed texts and little-endian numbers.

use std::borrow::Cow;

use endmark_context::Moment;
use endmark_context::budget::{Period, Scope, Unit, Zone};

use crate::calls::{Billing, Call, CallSettled, CallStarted, Charge, Estimate, Purpose, Tokens, Word};

/// Size of a slot in bytes. A page contains a whole number of slots, so killing the process never leaves a torn slot.
pub(super) const SLOT_BYTES: usize = 1024;

/// Size of the checksum and the length.
const HEADER_BYTES: usize = 10;

/// Maximum length of a stored text in bytes. Clients choose model names, and all texts of a call must fit into a slot.
const MAX_TEXT_BYTES: usize = 100;

/// Marks the fields of [`Billing`]. A charge has the number of its kind at this place.
const BILLING: u8 = 0xff;

/// Encodes a call into the bytes of a slot.
pub(super) fn encode(started: &CallStarted, settled: Option<&CallSettled>) -> Vec<u8> {
    let mut writer = Writer(Vec::with_capacity(SLOT_BYTES));
    writer.0.resize(HEADER_BYTES, 0);
    writer.text(&started.request_id);
    writer.number(u64::from(started.call));
    writer.text(started.purpose.name());
    writer.text(&started.session);
    writer.maybe_text(started.credential.as_deref());
    writer.text(&started.upstream);
    writer.text(&started.format);
    writer.text(&started.model);
    writer.number(u64::from(started.streamed));
    writer.text(&started.mode);
    writer.number(started.started_ms);
    writer.number(started.sent_bytes);
    writer.number(started.prompt_estimate);
    writer.number(u64::from(settled.is_some()));
    if let Some(settled) = settled {
        writer.maybe_text(settled.answered_model.as_deref());
        writer.maybe(settled.http_status.map(u64::from));
        writer.text(&settled.ending);
        writer.maybe_text(settled.stop.as_deref());
        writer.maybe_text(settled.verdict.as_deref());
        writer.maybe_text(settled.cut_kind.as_deref());
        let Tokens { prompt, output, cached, cache_written, cache_written_1h, reasoning, total } =
            settled.tokens;
        for count in [prompt, output, cached, cache_written, cache_written_1h, reasoning, total] {
            writer.maybe(count);
        }
        writer.maybe(settled.nano_usd);
        writer.number(settled.received_bytes);
        writer.maybe(settled.estimate.map(|estimate| estimate.prompt));
        writer.maybe(settled.estimate.map(|estimate| estimate.output));
        writer.maybe(settled.first_byte_us);
        writer.number(settled.total_us);
    }
    for charge in &started.charges {
        writer.charge(charge);
    }
    if let Some(billing) =
        settled.map(|settled| &settled.billing).filter(|billing| **billing != Billing::default())
    {
        writer.write_billing(billing);
    }
    writer.finish()
}

/// Decodes a slot. Returns `None` if it does not contain a complete call.
pub(super) fn decode(slot: &[u8]) -> Option<Call> {
    let (header, rest) = slot.split_at_checked(HEADER_BYTES)?;
    let (sum, length) = header.split_at_checked(8)?;
    let length = usize::from(u16::from_le_bytes(length.try_into().ok()?));
    let payload = rest.get(..length).filter(|payload| !payload.is_empty())?;
    if checksum(payload).to_le_bytes() != sum {
        return None;
    }
    let mut reader = Reader(payload);
    let mut started = CallStarted {
        request_id: reader.text()?,
        call: u32::try_from(reader.number()?).ok()?,
        purpose: reader.purpose()?,
        session: reader.text()?,
        credential: reader.maybe_text()?,
        upstream: reader.text()?,
        format: reader.word()?,
        model: reader.text()?,
        streamed: reader.number()? != 0,
        mode: reader.word()?,
        started_ms: reader.number()?,
        sent_bytes: reader.number()?,
        prompt_estimate: reader.number()?,
        charges: Vec::new(),
    };
    let mut settled = if reader.number()? == 0 {
        None
    } else {
        Some(CallSettled {
            answered_model: reader.maybe_text()?,
            http_status: reader.maybe()?.and_then(|status| u16::try_from(status).ok()),
            ending: reader.word()?,
            stop: reader.maybe_word()?,
            verdict: reader.maybe_word()?,
            cut_kind: reader.maybe_word()?,
            tokens: Tokens {
                prompt: reader.maybe()?,
                output: reader.maybe()?,
                cached: reader.maybe()?,
                cache_written: reader.maybe()?,
                cache_written_1h: reader.maybe()?,
                reasoning: reader.maybe()?,
                total: reader.maybe()?,
            },
            billing: Billing::default(),
            nano_usd: reader.maybe()?,
            received_bytes: reader.number()?,
            estimate: reader
                .maybe()?
                .zip(reader.maybe()?)
                .map(|(prompt, output)| Estimate { prompt, output }),
            first_byte_us: reader.maybe()?,
            total_us: reader.number()?,
        })
    };
    // A slate of an earlier version contains neither charges nor billing data.
    while let Some(kind) = reader.0.first() {
        match &mut settled {
            Some(settled) if *kind == BILLING => settled.billing = reader.write_billing()?,
            _ => started.charges.push(reader.charge()?),
        }
    }
    Some(Call { started, settled })
}

/// Returns the part of a text that is stored, cut at a character boundary.
pub(crate) fn clip(text: &str) -> &str {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let end = (0..=MAX_TEXT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// The FNV-1a hash. It distinguishes a complete record from a torn or foreign one, but does not prevent forgery.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

struct Writer(Vec<u8>);

impl Writer {
    fn text(&mut self, text: &str) {
        let text = clip(text);
        // The length of a clipped text fits into a byte.
        self.0.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.0.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn maybe(&mut self, number: Option<u64>) {
        self.0.push(u8::from(number.is_some()));
        if let Some(number) = number {
            self.number(number);
        }
    }

    fn maybe_text(&mut self, text: Option<&str>) {
        self.0.push(u8::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    /// Encodes a window as the number formed by its digits: `2026-11` becomes 202611, and an unlimited window
    /// becomes 0. A minute is encoded as the number of minutes since 1970.
    fn charge(&mut self, charge: &Charge) {
        let place = |scope| Scope::ALL.iter().position(|known| *known == scope).unwrap_or_default();
        let is_second = matches!(charge.unit, Unit::NanoUsd | Unit::Requests);
        let kind = place(charge.scope) * 2 + usize::from(is_second);
        let digits: String = match Period::from_window(&charge.window) {
            Period::Minute => {
                Moment::parse(&charge.window).map_or(0, |moment| moment.unix_seconds() / 60).to_string()
            }
            _ => charge.window.chars().filter(char::is_ascii_digit).collect(),
        };
        self.0.push(u8::try_from(kind).unwrap_or(u8::MAX));
        self.0.extend_from_slice(&digits.parse::<u32>().unwrap_or(0).to_le_bytes());
        self.number(charge.held);
    }

    fn write_billing(&mut self, billing: &Billing) {
        let Billing { tier, prompt_audio, cached_audio, completion_audio, web_searches } = billing;
        self.0.push(BILLING);
        self.maybe_text(tier.as_deref());
        for count in [prompt_audio, cached_audio, completion_audio, web_searches] {
            self.number(*count);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let payload = self.0.get(HEADER_BYTES..).unwrap_or_default();
        let sum = checksum(payload).to_le_bytes();
        let length = u16::try_from(payload.len()).unwrap_or(0).to_le_bytes();
        let header = sum.into_iter().chain(length);
        for (place, byte) in self.0.iter_mut().zip(header) {
            *place = byte;
        }
        self.0
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::from(self.byte()?);
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn word(&mut self) -> Option<Word> {
        self.text().map(Cow::Owned)
    }

    fn charge(&mut self) -> Option<Charge> {
        let kind = usize::from(self.byte()?);
        let digits = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        let scope = *Scope::ALL.get(kind / 2)?;
        let window = match digits {
            _ if scope == Scope::Rate => {
                let minute = Moment::from_unix_seconds(u64::from(digits) * 60);
                Period::Minute.window(minute, &Zone::default())
            }
            0 => "ever".to_owned(),
            1..=999_999 => format!("{:04}-{:02}", digits / 100, digits % 100),
            _ => format!("{:04}-{:02}-{:02}", digits / 10_000, digits / 100 % 100, digits % 100),
        };
        let unit = match scope {
            _ if kind.is_multiple_of(2) => Unit::Tokens,
            Scope::Rate => Unit::Requests,
            _ => Unit::NanoUsd,
        };
        Some(Charge { scope, unit, window, held: self.number()? })
    }

    fn write_billing(&mut self) -> Option<Billing> {
        let _kind = self.byte()?;
        Some(Billing {
            tier: self.maybe_text()?,
            prompt_audio: self.number()?,
            cached_audio: self.number()?,
            completion_audio: self.number()?,
            web_searches: self.number()?,
        })
    }

    fn purpose(&mut self) -> Option<Purpose> {
        let name = self.text()?;
        Purpose::ALL.into_iter().find(|purpose| purpose.name() == name)
    }

    /// Reads an optional number. The outer `None` means a broken record, the inner one a missing value.
    #[expect(clippy::option_option, reason = "the two mean different things")]
    fn maybe(&mut self) -> Option<Option<u64>> {
        if self.byte()? == 0 { Some(None) } else { self.number().map(Some) }
    }

    #[expect(clippy::option_option, reason = "the two mean different things")]
    fn maybe_text(&mut self) -> Option<Option<String>> {
        if self.byte()? == 0 { Some(None) } else { self.text().map(Some) }
    }

    #[expect(clippy::option_option, reason = "the two mean different things")]
    fn maybe_word(&mut self) -> Option<Option<Word>> {
        Some(self.maybe_text()?.map(Cow::Owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call_started() -> CallStarted {
        CallStarted {
            request_id: "em_1".to_owned(),
            call: 2,
            purpose: Purpose::Resume,
            session: "s".repeat(16),
            credential: Some("c".repeat(16)),
            upstream: "local".to_owned(),
            format: "openai_chat".into(),
            model: "m".to_owned(),
            streamed: true,
            mode: "auto".into(),
            started_ms: 1_700_000_000_123,
            sent_bytes: 17,
            prompt_estimate: 4,
            charges: charges(5),
        }
    }

    fn charges(count: usize) -> Vec<Charge> {
        let scopes = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Rate).cycle();
        let windows = ["ever", "2026-11-24", "2026-11"].into_iter().cycle();
        let units = [Unit::Tokens, Unit::NanoUsd].into_iter().cycle();
        let charges = scopes.zip(windows).zip(units).map(|((scope, window), unit)| Charge {
            scope,
            unit,
            window: window.to_owned(),
            held: 1 << 40,
        });
        // The first charges are for rate limits, which have their own windows.
        let rates = [Unit::Requests, Unit::Tokens].map(|unit| Charge {
            scope: Scope::Rate,
            unit,
            window: "2026-11-24T18:43".to_owned(),
            held: 1,
        });
        rates.into_iter().chain(charges).take(count).collect()
    }

    fn call_settled() -> CallSettled {
        CallSettled {
            answered_model: Some("m-2".to_owned()),
            http_status: Some(200),
            ending: "clean".into(),
            stop: Some("limit".into()),
            verdict: Some("cut".into()),
            cut_kind: Some("limit".into()),
            tokens: Tokens { prompt: Some(3), output: Some(4), total: Some(7), ..Tokens::default() },
            billing: Billing { tier: Some("flex".to_owned()), web_searches: 2, ..Billing::default() },
            nano_usd: Some(8),
            received_bytes: 99,
            estimate: Some(Estimate { prompt: 4, output: 3 }),
            first_byte_us: Some(5),
            total_us: 6,
        }
    }

    #[test]
    fn an_encoded_record_round_trips() {
        for settled in [None, Some(call_settled())] {
            let bytes = encode(&call_started(), settled.as_ref());
            assert_eq!(decode(&bytes), Some(Call { started: call_started(), settled }));
        }
    }

    #[test]
    fn a_partial_or_changed_record_is_rejected() {
        let bytes = encode(&call_started(), Some(&call_settled()));
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{end}");
            let mut changed = bytes.clone();
            changed[end] ^= 1;
            assert_eq!(decode(&changed), None, "{end}");
        }
        assert_eq!(decode(&[0; SLOT_BYTES]), None);
    }

    #[test]
    fn the_longest_texts_fit_into_a_slot() {
        let long = "é".repeat(4_000);
        let word: Word = long.clone().into();
        let started = CallStarted {
            request_id: long.clone(),
            session: long.clone(),
            credential: Some("c".repeat(16)),
            upstream: long.clone(),
            model: long.clone(),
            // No configuration has more charges.
            charges: charges(11),
            ..call_started()
        };
        let settled = CallSettled { answered_model: Some(long), ending: word, ..call_settled() };
        let bytes = encode(&started, Some(&settled));
        assert!(bytes.len() <= SLOT_BYTES, "{}", bytes.len());
        assert_eq!(decode(&bytes).unwrap().started.model, "é".repeat(MAX_TEXT_BYTES / 2));
    }
}
