//! Determines how an upstream handles an unfinished message, and remembers the result.

use endmark_recovery::{Ending, Join, SeamStyle, Stop, Strategy};
use endmark_wire::ask::PrefillVariant;
use endmark_wire::format::WireFormat;
use endmark_wire::openai_chat::Chat;

use super::super::capabilities::PrefillCapability;
use super::super::continuation::Continuation;
use super::Asker;
use super::refusal::RefusalTerm;
use crate::settings::Prefill;

impl Asker<'_> {
    /// Learns from how the last response was joined. An ambiguous join proves nothing.
    pub(in crate::recovery) async fn learn(&mut self, joined: Option<SeamStyle>, is_ambiguous: bool) {
        if std::mem::take(&mut self.must_learn) && !is_ambiguous {
            let found = if joined == Some(SeamStyle::Exact) {
                PrefillCapability::Continues
            } else {
                PrefillCapability::None
            };
            self.note_capability(found).await;
        }
        if joined.is_none() && self.uses_prefill() {
            // Do not repeat the request, because it would have the same result.
            self.refused_features.prefill = self.refused_features.prefill.or(Some(RefusalTerm::ThisReply));
        }
    }

    /// Returns the prefill variant to use. Returns `None` if the upstream is known to reject prefills.
    pub(super) fn prefill_variant(&self) -> Option<PrefillVariant> {
        let order = &self.case.settings.resume.strategies;
        if self.refused_features.prefill.is_some() || !order.prefers(Strategy::Prefill, Strategy::Prompt) {
            return None;
        }
        match self.site.destination.upstream.prefill {
            Prefill::Never => None,
            Prefill::Auto if self.capability == PrefillCapability::None => None,
            Prefill::Auto | Prefill::Assistant => Some(PrefillVariant::Plain),
            Prefill::ContinueFinalMessage => Some(PrefillVariant::ContinueFinalMessage),
            Prefill::Prefix => Some(PrefillVariant::PrefixFlag),
            Prefill::Partial => Some(PrefillVariant::PartialFlag),
        }
    }

    /// Returns how certain it is that a response to a prefill continues at the cut.
    pub(super) async fn prefill_join(&mut self, continuation: &Continuation) -> Join {
        if continuation.has_echo {
            // A server that ignores the prefill starts again and is cut at the same position.
            if continuation.text.trim().is_empty() && continuation.stop == Some(Stop::Limit) {
                return Join::Shown;
            }
            if self.capability == PrefillCapability::Unknown {
                self.note_capability(PrefillCapability::EchoesPrefill).await;
            }
            return Join::Exact;
        }
        if self.has_only_calls(continuation) && self.calls_end_the_text() {
            return Join::Exact;
        }
        match self.capability {
            PrefillCapability::Continues => Join::InMessage,
            // This upstream usually echoes and now does not, so the text is not a continuation.
            PrefillCapability::EchoesPrefill | PrefillCapability::None => Join::Shown,
            PrefillCapability::Unknown => {
                // A refusal or a broken stream proves nothing about prefills.
                let has_known_stop =
                    matches!(continuation.stop, Some(Stop::Normal | Stop::Sequence | Stop::Limit));
                self.must_learn = has_known_stop && continuation.ending == Ending::Clean;
                Join::Shown
            }
        }
    }

    /// Whether the response to an unfinished text contains only tool calls.
    pub(super) fn has_only_calls(&self, continuation: &Continuation) -> bool {
        !self.is_call() && !continuation.calls.is_empty() && continuation.text.is_empty()
    }

    /// Whether the unfinished text may be the beginning of a tool call that the server did not recognise.
    /// Models write tool calls as JSON or after a special marker. A part with a required format is text.
    pub(super) fn may_be_a_call(&self) -> bool {
        let text = self.suspect.reply.text.trim_start();
        !self.is_call() && self.suspect.required_format.is_none() && text.starts_with(['{', '[', '<', '>'])
    }

    /// Whether the tool calls complete the text, or follow a finished text. This is certain if the model
    /// continues its own message. Otherwise, they are accepted only if the text does not end within a word.
    fn calls_end_the_text(&self) -> bool {
        let is_word_open = self.suspect.reply.text.ends_with(char::is_alphanumeric);
        self.may_be_a_call() || self.capability == PrefillCapability::Continues || !is_word_open
    }

    /// Returns the key under which the capability is stored. The key contains the form in which tool calls
    /// are sent, the format unless it is Chat, and whether the response is streamed. Servers differ in these
    /// cases.
    pub(super) fn capability_key(&self) -> String {
        let (model, format) = (&self.site.request.view().model, self.site.request.format().name());
        let tool_suffix =
            if self.is_call() { format!("#{}", self.tool_prefill.name()) } else { String::new() };
        let streaming_suffix = if self.is_streamed { "#stream" } else { "" };
        if format == Chat.name() {
            format!("{model}{tool_suffix}{streaming_suffix}")
        } else {
            format!("{format}:{model}{tool_suffix}{streaming_suffix}")
        }
    }

    pub(super) async fn note_capability(&mut self, capability: PrefillCapability) {
        self.capability = capability;
        let subject = self.capability_key();
        self.case.capabilities.learn(self.case, self.site.name(), &subject, capability).await;
    }
}
