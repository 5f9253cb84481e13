//! A non-streamed response: read, and edited in place.

use std::collections::BTreeSet;

use endmark_recovery::Stop;
use serde_json::value::RawValue;

use super::Gemini;
use super::candidate::{
    SIGNATURE, call_arguments, candidate, candidates, has_extra, is_grounded, is_in_pieces, is_thought,
    last_content_part, part_call, part_signature, part_text, parts, tally_other_part, web_searches,
    will_continue,
};
use super::stream::ContentReader;
use super::writer::ContentWriter;
use super::{error, stop, usage};
use crate::edit::Edits;
use crate::error::{ProviderError, ResponseError};
use crate::json::{Kind, Value, quote};
use crate::reply::{Choice, Continuation, ToolCall, Usage};
use crate::request::{Request, RequestView};
use crate::response::{Reply, ReplyEdit};
use crate::stream::Reader;
use crate::wire_format::WireReply;
use crate::writer::{ReportedEnd, Writer};

impl WireReply for Gemini {
    fn recognises(&self, root: Value<'_>) -> bool {
        match root.field("candidates") {
            Some(candidates) => candidates.items().all(|item| item.kind() == Kind::Object),
            // Without a candidate, the prompt may have been refused.
            None => stop::prompt_refusal(root).is_some(),
        }
    }

    fn reply(&self, root: Value<'_>, request: &RequestView) -> Result<Reply, ResponseError> {
        let has_stop = request.has_stop;
        let model = root.non_empty_text("modelVersion").unwrap_or_default();
        let of_candidate = |(index, candidate)| {
            let web_searches = web_searches(candidate, &model);
            Choice { web_searches, ..choice(candidate, index, has_stop) }
        };
        let mut choices: Vec<Choice> = candidates(root).map(of_candidate).collect();
        let blocked = stop::prompt_refusal(root).filter(|_| choices.is_empty());
        if let Some(blocked) = blocked {
            let mut choice = Choice::new(0);
            choice.end(Some(blocked));
            choices.push(choice);
        } else if root.field("candidates").is_none() {
            return Err(ResponseError::MissingField("candidates"));
        }
        Ok(Reply {
            id: root.non_empty_text("responseId"),
            model,
            choices,
            usage: usage::read(root),
            tier: usage::tier(root),
        })
    }

    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a> {
        Box::new(ContentEdit::new(root))
    }

    fn reader(&self, request: &Request, keep_bytes: usize) -> Box<dyn Reader> {
        Box::new(ContentReader::new(request.view().has_stop, keep_bytes))
    }

    fn writer(&self, request: &Request, _keep_bytes: usize) -> Box<dyn Writer> {
        Box::new(ContentWriter::new(&request.view().model))
    }

    fn read_error(&self, root: Value<'_>) -> Option<ProviderError> {
        error::read(root)
    }

    fn error_body(&self, status: u16, kind: &str, message: &str) -> Vec<u8> {
        format!("{{{}}}", error::field(status, kind, message)).into_bytes()
    }
}

fn choice(candidate: Value<'_>, index: u32, has_stop: bool) -> Choice {
    let finish = stop::read(candidate, index, has_stop);
    let at_limit = finish.as_ref().is_some_and(|finish| finish.stop == Some(Stop::Limit));
    let last = last_content_part(parts(candidate));
    let mut choice = Choice::new(index);
    choice.has_unrequestable_part = is_grounded(candidate);
    for part in parts(candidate) {
        if has_extra(part) {
            choice.note_unshowable();
            tally_other_part(part, &mut choice.written);
        }
        if let Some(text) = part_text(part).and_then(Value::decode) {
            choice.signature = part_signature(part).or(choice.signature);
            choice.text.push_str(&text.text);
            choice.exact &= text.exact;
            choice.ends_in_unshown_part &= text.text.is_empty();
        } else if is_thought(part) {
            choice.written.add(&part.non_empty_text("text").unwrap_or_default());
            choice.note_thought();
        } else if let Some(call) = part_call(part) {
            choice.ends_in_unshown_part = false;
            choice.last_call_at = choice.text.len();
            choice.is_mendable &= !is_in_pieces(call);
            choice.is_unfinished = will_continue(call);
            choice.tool_calls.push(ToolCall {
                index: u32::try_from(choice.tool_calls.len()).unwrap_or(u32::MAX),
                id: call.non_empty_text("id"),
                name: call.non_empty_text("name").unwrap_or_default(),
                arguments: call_arguments(call, at_limit && last == Some(part)).to_owned(),
                signature: part_signature(part),
                ..ToolCall::default()
            });
        }
    }
    choice.note_written();
    choice.continuation = candidate
        .non_empty_text("continuationToken")
        .map(|token| Continuation { token, text: choice.text.len() });
    choice.end(finish);
    choice
}

/// Changes to a response.
#[derive(Debug)]
pub(super) struct ContentEdit<'a> {
    edits: Edits<'a>,
    /// The text that follows a signed text, for a part of its own, and the number of its candidate.
    unsigned_rest: Option<(u32, String)>,
}

impl<'a> ContentEdit<'a> {
    pub(super) fn new(root: Value<'a>) -> Self {
        Self { edits: Edits::for_document(root), unsigned_rest: None }
    }

    /// Returns the rest of `text` after the candidate's own text, if that text is signed at its end.
    fn rest_after_signed(candidate: Value<'_>, text: &str) -> Option<String> {
        let last = parts(candidate).last().filter(|part| part_text(*part).is_some())?;
        part_signature(last)?;
        let joined_text: String = parts(candidate).filter_map(part_text).filter_map(Value::text).collect();
        text.strip_prefix(joined_text.as_str()).filter(|rest| !rest.is_empty()).map(str::to_owned)
    }

    /// Adds the pending text with this signature as a part of its own. Returns whether any text was pending.
    fn add_rest(&mut self, signature: Option<&str>) -> bool {
        let Some((choice, rest)) = self.unsigned_rest.take() else { return false };
        if let Some(candidate) = self.candidate(choice) {
            let signature = signature.map(|signature| format!(",\"thoughtSignature\":{}", quote(signature)));
            let part = format!("{{\"text\":{}{}}}", quote(&rest), signature.unwrap_or_default());
            self.add_parts(candidate, &[part]);
        }
        true
    }

    fn candidate(&self, choice: u32) -> Option<Value<'a>> {
        candidate(self.edits.original(), choice)
    }

    /// Returns the part with the call of this number.
    fn call_part_at(&self, choice: u32, call: u32) -> Option<Value<'a>> {
        let mut calls = (0..).zip(parts(self.candidate(choice)?).filter(|part| part_call(*part).is_some()));
        calls.find(|(index, _)| *index == call).map(|(_, part)| part)
    }

    /// Adds parts to a candidate, and creates the containing fields if they are missing.
    fn add_parts(&mut self, candidate: Value<'a>, new: &[String]) {
        let content = candidate.field("content").filter(|content| content.kind() == Kind::Object);
        let all = new.join(",");
        match (content, content.and_then(|content| content.field("parts")?.as_kind(Kind::Array))) {
            (_, Some(parts)) => new.iter().for_each(|part| self.edits.push_item(parts, part)),
            (Some(content), None) => self.edits.set_field(content, "parts", &format!("[{all}]")),
            (None, None) => {
                let content = format!("{{\"role\":\"model\",\"parts\":[{all}]}}");
                self.edits.set_field(candidate, "content", &content);
            }
        }
    }
}

impl ReplyEdit for ContentEdit<'_> {
    fn set_text(&mut self, choice: u32, text: &str) {
        self.add_rest(None);
        let Some(candidate) = self.candidate(choice) else { return };
        remove_continuation_token(&mut self.edits, candidate);
        // The continuation has no logprobs. Those of the beginning would look like those of the whole text.
        for name in ["avgLogprobs", "logprobsResult"] {
            self.edits.remove_field(candidate, name);
        }
        if let Some(rest) = Self::rest_after_signed(candidate, text) {
            self.unsigned_rest = Some((choice, rest));
            return;
        }
        let texts: Vec<Value<'_>> = parts(candidate).filter_map(part_text).collect();
        if texts.is_empty() && !text.is_empty() {
            self.add_parts(candidate, &[format!("{{\"text\":{}}}", quote(text))]);
        }
        self.edits.set_texts(&texts, text);
    }

    fn set_signature(&mut self, choice: u32, signature: &str) {
        if self.add_rest(Some(signature)) {
            return;
        }
        let Some(candidate) = self.candidate(choice) else { return };
        match parts(candidate).filter(|part| part_text(*part).is_some()).last() {
            Some(part) => self.edits.set_field(part, "thoughtSignature", &quote(signature)),
            None if candidate.at("content.parts").is_some() => {
                self.add_parts(candidate, &[signature_part(signature)]);
            }
            None => {}
        }
    }

    fn set_arguments(&mut self, choice: u32, call: u32, arguments: &str) {
        let call = self.call_part_at(choice, call).and_then(part_call);
        if let (Some(call), Some(arguments)) = (call, arguments_object(arguments)) {
            self.edits.set_field(call, "args", arguments);
        }
    }

    fn sign_call(&mut self, choice: u32, call: u32, signature: Option<&str>) {
        if let Some(part) = self.call_part_at(choice, call) {
            sign(&mut self.edits, part, signature);
        }
    }

    fn note_cut_calls(&mut self, choice: u32, cut: &BTreeSet<u32>) {
        let parts = self.candidate(choice).and_then(|candidate| candidate.at("content.parts"));
        let Some(parts) = parts.filter(|parts| parts.kind() == Kind::Array) else { return };
        let calls = parts.items().enumerate().filter(|(_, part)| part_call(*part).is_some());
        for (_, (position, _)) in (0..).zip(calls).filter(|(index, _)| cut.contains(index)) {
            self.edits.remove_item(parts, position);
        }
    }

    fn shows_cut_calls(&self) -> bool {
        false
    }

    fn add_calls(&mut self, choice: u32, calls: &[ToolCall]) {
        self.add_rest(None);
        let Some(candidate) = self.candidate(choice) else { return };
        let parts: Vec<String> = calls.iter().filter_map(call_part).collect();
        if !parts.is_empty() {
            self.add_parts(candidate, &parts);
        }
    }

    fn set_end(&mut self, choice: u32, end: ReportedEnd) {
        if let Some(candidate) = self.candidate(choice) {
            if end != ReportedEnd::Cut {
                remove_continuation_token(&mut self.edits, candidate);
            }
            self.edits.set_field(candidate, "finishReason", &quote(finish_reason(end)));
        }
    }

    fn set_usage(&mut self, counts: &Usage) {
        usage::write(&mut self.edits, counts);
    }

    fn set_endmark(&mut self, endmark: &RawValue) {
        self.edits.set_field(self.edits.original(), "endmark", endmark.get());
    }

    fn finish(mut self: Box<Self>) -> Vec<u8> {
        self.add_rest(None);
        self.edits.finish()
    }
}

/// Returns the arguments if they are a JSON object, which is the only valid value of `args`.
pub(super) fn arguments_object(arguments: &str) -> Option<&str> {
    let value = Value::parse_str(arguments).ok()?;
    (value.kind() == Kind::Object).then(|| value.raw())
}

/// Returns a part that calls a function, or `None` if its arguments are not an object.
pub(super) fn call_part(call: &ToolCall) -> Option<String> {
    let arguments = arguments_object(&call.arguments)?;
    let id = call.id.as_ref().map(|id| format!("\"id\":{},", quote(id))).unwrap_or_default();
    let signature = call.signature.as_ref();
    let signature = signature.map(|signature| format!(",\"thoughtSignature\":{}", quote(signature)));
    Some(format!(
        "{{\"functionCall\":{{{id}\"name\":{},\"args\":{arguments}}}{}}}",
        quote(&call.name),
        signature.unwrap_or_default()
    ))
}

/// Removes the provider's continuation token, which refers to the end of the provider's own text.
pub(super) fn remove_continuation_token<'a>(edits: &mut Edits<'a>, candidate: Value<'a>) {
    for place in [candidate, edits.original()] {
        edits.remove_field(place, "continuationToken");
    }
}

/// Sets or removes the signature of a part.
pub(super) fn sign<'a>(edits: &mut Edits<'a>, part: Value<'a>, signature: Option<&str>) {
    if part_signature(part).as_deref() == signature {
        return;
    }
    for name in SIGNATURE {
        edits.remove_field(part, name);
    }
    if let Some(signature) = signature {
        edits.set_field(part, "thoughtSignature", &quote(signature));
    }
}

/// Returns a part with a signature and an empty text, in the form that the provider sends.
pub(super) fn signature_part(signature: &str) -> String {
    format!("{{\"text\":\"\",\"thoughtSignature\":{}}}", quote(signature))
}

/// Returns the finish reason for an end.
pub(super) fn finish_reason(end: ReportedEnd) -> &'static str {
    match end {
        ReportedEnd::Turn | ReportedEnd::ToolCalls => "STOP",
        ReportedEnd::Cut => "MAX_TOKENS",
    }
}
