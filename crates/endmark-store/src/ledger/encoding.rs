//! Encodes one call into a slot: a checksum, then length-prefixed texts and little-endian numbers.

use std::borrow::Cow;

use endmark_context::Moment;
use endmark_context::budget::{Period, Scope, Unit, Zone};

use crate::calls::{Billing, Call, CallSettled, CallStarted, Charge, Label, Purpose, TokenEstimate, Tokens};

/// Size of a slot in bytes. A page contains a whole number of slots, so a kill of the process never leaves an
/// incomplete slot.
pub(super) const SLOT_BYTES: usize = 1024;

/// Size of the checksum and the length.
const HEADER_BYTES: usize = 10;

/// Maximum length of a stored text in bytes. Clients choose model names, and all texts of a call must fit into a slot.
const MAX_STORED_TEXT_BYTES: usize = 100;

/// Marks the fields of [`Billing`]. For a charge, the number of its kind is at this position.
const BILLING_TAG: u8 = 0xff;

/// Encodes a call into the bytes of a slot.
pub(super) fn encode(started: &CallStarted, settled: Option<&CallSettled>) -> Vec<u8> {
    let mut writer = SlotWriter(Vec::with_capacity(SLOT_BYTES));
    writer.0.resize(HEADER_BYTES, 0);
    writer.write_text(&started.request_id);
    writer.write_number(u64::from(started.call));
    writer.write_text(started.purpose.name());
    writer.write_text(&started.session);
    writer.write_optional_text(started.credential.as_deref());
    writer.write_text(&started.upstream);
    writer.write_text(&started.format);
    writer.write_text(&started.model);
    writer.write_number(u64::from(started.streamed));
    writer.write_text(&started.mode);
    writer.write_number(started.started_ms);
    writer.write_number(started.sent_bytes);
    writer.write_number(started.prompt_estimate);
    writer.write_number(u64::from(settled.is_some()));
    if let Some(settled) = settled {
        writer.write_optional_text(settled.answered_model.as_deref());
        writer.write_optional_number(settled.http_status.map(u64::from));
        writer.write_text(&settled.ending);
        writer.write_optional_text(settled.stop.as_deref());
        writer.write_optional_text(settled.verdict.as_deref());
        writer.write_optional_text(settled.cut_kind.as_deref());
        let Tokens { prompt, output, cached, cache_written, cache_written_1h, reasoning, total } =
            settled.tokens;
        for count in [prompt, output, cached, cache_written, cache_written_1h, reasoning, total] {
            writer.write_optional_number(count);
        }
        writer.write_optional_number(settled.nano_usd);
        writer.write_number(settled.received_bytes);
        writer.write_optional_number(settled.estimate.map(|estimate| estimate.prompt));
        writer.write_optional_number(settled.estimate.map(|estimate| estimate.output));
        writer.write_optional_number(settled.first_byte_us);
        writer.write_number(settled.total_us);
    }
    for charge in &started.charges {
        writer.write_charge(charge);
    }
    if let Some(billing) =
        settled.map(|settled| &settled.billing).filter(|billing| **billing != Billing::default())
    {
        writer.write_billing(billing);
    }
    writer.into_slot_bytes()
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
    let mut reader = SlotReader(payload);
    let mut started = CallStarted {
        request_id: reader.read_text()?,
        call: u32::try_from(reader.read_number()?).ok()?,
        purpose: reader.read_purpose()?,
        session: reader.read_text()?,
        credential: reader.read_optional_text()?,
        upstream: reader.read_text()?,
        format: reader.read_label()?,
        model: reader.read_text()?,
        streamed: reader.read_number()? != 0,
        mode: reader.read_label()?,
        started_ms: reader.read_number()?,
        sent_bytes: reader.read_number()?,
        prompt_estimate: reader.read_number()?,
        charges: Vec::new(),
    };
    let mut settled = if reader.read_number()? == 0 {
        None
    } else {
        Some(CallSettled {
            answered_model: reader.read_optional_text()?,
            http_status: reader.read_optional_number()?.and_then(|status| u16::try_from(status).ok()),
            ending: reader.read_label()?,
            stop: reader.read_optional_label()?,
            verdict: reader.read_optional_label()?,
            cut_kind: reader.read_optional_label()?,
            tokens: Tokens {
                prompt: reader.read_optional_number()?,
                output: reader.read_optional_number()?,
                cached: reader.read_optional_number()?,
                cache_written: reader.read_optional_number()?,
                cache_written_1h: reader.read_optional_number()?,
                reasoning: reader.read_optional_number()?,
                total: reader.read_optional_number()?,
            },
            billing: Billing::default(),
            nano_usd: reader.read_optional_number()?,
            received_bytes: reader.read_number()?,
            estimate: reader
                .read_optional_number()?
                .zip(reader.read_optional_number()?)
                .map(|(prompt, output)| TokenEstimate { prompt, output }),
            first_byte_us: reader.read_optional_number()?,
            total_us: reader.read_number()?,
        })
    };
    // Slates of earlier versions contain neither charges nor billing data.
    while let Some(kind) = reader.0.first() {
        match &mut settled {
            Some(settled) if *kind == BILLING_TAG => settled.billing = reader.read_billing()?,
            _ => started.charges.push(reader.read_charge()?),
        }
    }
    Some(Call { started, settled })
}

/// Returns the text cut to the stored length at a character boundary.
pub(crate) fn clip(text: &str) -> &str {
    if text.len() <= MAX_STORED_TEXT_BYTES {
        return text;
    }
    let end = (0..=MAX_STORED_TEXT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// Returns the FNV-1a hash. It detects incomplete and foreign records, but does not prevent forgery.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

struct SlotWriter(Vec<u8>);

impl SlotWriter {
    fn write_text(&mut self, text: &str) {
        let text = clip(text);
        // The length of a clipped text fits into a byte.
        self.0.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.0.extend_from_slice(text.as_bytes());
    }

    fn write_number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn write_optional_number(&mut self, number: Option<u64>) {
        self.0.push(u8::from(number.is_some()));
        if let Some(number) = number {
            self.write_number(number);
        }
    }

    fn write_optional_text(&mut self, text: Option<&str>) {
        self.0.push(u8::from(text.is_some()));
        if let Some(text) = text {
            self.write_text(text);
        }
    }

    /// Encodes a budget window as a number. `2026-11` becomes 202611, and an unlimited window becomes 0. A
    /// minute becomes the number of minutes since 1970.
    fn write_charge(&mut self, charge: &Charge) {
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
        self.write_number(charge.held);
    }

    fn write_billing(&mut self, billing: &Billing) {
        let Billing { tier, prompt_audio, cached_audio, completion_audio, web_searches } = billing;
        self.0.push(BILLING_TAG);
        self.write_optional_text(tier.as_deref());
        for count in [prompt_audio, cached_audio, completion_audio, web_searches] {
            self.write_number(*count);
        }
    }

    fn into_slot_bytes(mut self) -> Vec<u8> {
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

struct SlotReader<'a>(&'a [u8]);

impl<'a> SlotReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn read_byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn read_number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn read_text(&mut self) -> Option<String> {
        let length = usize::from(self.read_byte()?);
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn read_label(&mut self) -> Option<Label> {
        self.read_text().map(Cow::Owned)
    }

    fn read_charge(&mut self) -> Option<Charge> {
        let kind = usize::from(self.read_byte()?);
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
        Some(Charge { scope, unit, window, held: self.read_number()? })
    }

    fn read_billing(&mut self) -> Option<Billing> {
        let _kind = self.read_byte()?;
        Some(Billing {
            tier: self.read_optional_text()?,
            prompt_audio: self.read_number()?,
            cached_audio: self.read_number()?,
            completion_audio: self.read_number()?,
            web_searches: self.read_number()?,
        })
    }

    fn read_purpose(&mut self) -> Option<Purpose> {
        let name = self.read_text()?;
        Purpose::ALL.into_iter().find(|purpose| purpose.name() == name)
    }

    /// Reads an optional number. The outer `None` means that the record is invalid, the inner one that the
    /// number is missing.
    #[expect(clippy::option_option, reason = "the two mean different things")]
    fn read_optional_number(&mut self) -> Option<Option<u64>> {
        if self.read_byte()? == 0 { Some(None) } else { self.read_number().map(Some) }
    }

    #[expect(clippy::option_option, reason = "the two mean different things")]
    fn read_optional_text(&mut self) -> Option<Option<String>> {
        if self.read_byte()? == 0 { Some(None) } else { self.read_text().map(Some) }
    }

    #[expect(clippy::option_option, reason = "the two mean different things")]
    fn read_optional_label(&mut self) -> Option<Option<Label>> {
        Some(self.read_optional_text()?.map(Cow::Owned))
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
        // The first charges are for rate limits, whose windows are minutes.
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
            estimate: Some(TokenEstimate { prompt: 4, output: 3 }),
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
        let word: Label = long.clone().into();
        let started = CallStarted {
            request_id: long.clone(),
            session: long.clone(),
            credential: Some("c".repeat(16)),
            upstream: long.clone(),
            model: long.clone(),
            // No configuration causes more charges.
            charges: charges(11),
            ..call_started()
        };
        let settled = CallSettled { answered_model: Some(long), ending: word, ..call_settled() };
        let bytes = encode(&started, Some(&settled));
        assert!(bytes.len() <= SLOT_BYTES, "{}", bytes.len());
        assert_eq!(decode(&bytes).unwrap().started.model, "é".repeat(MAX_STORED_TEXT_BYTES / 2));
    }
}
