//! Replies that come as a stream, and go to the client as one, whatever it took to make them whole.

use std::borrow::Cow;

use endmark_core::Ending;
use endmark_wire::openai_chat::{Choice, ChunkEdit, error_body};
use http::Response;
use serde_json::value::RawValue;
use tokio::time::timeout_at;
use tracing::Instrument as _;

use super::client::{ClientStream, LiveSlot};
use super::disclose::{Disclosure, Outcome};
use super::exchange::Exchange;
use super::observe::{Held, Observed, Says, observe};
use super::settle::{self, Settled};
use super::slot::Part;
use super::suspects::{lead, suspects, worst};
use crate::body::{AnyBody, outlet, passing};
use crate::ledger::{Call, CallEnd, Ended};
use crate::recovery::{Account, ClientGone, Flow, Suspect, mend};
use crate::upstream::of_another_body;

/// Answers with the stream's head at once; the rest follows as it comes.
pub(crate) fn streamed(mut exchange: Exchange, answer: Response<AnyBody>) -> Response<AnyBody> {
    let call = exchange.call.take();
    let (mut head, upstream) = answer.into_parts();
    // How it ends is not known yet, so nothing can be said of it as a whole.
    of_another_body(&mut head.headers);
    let (outlet, body) = outlet(exchange.gateway.settings.limits.stream_bytes);
    let relaying = async move {
        let mut client = ClientStream::new(outlet, exchange.gateway.settings.limits.unread);
        match relay(&exchange, call, upstream, &mut client).await {
            Ok(End::Orderly) => {}
            Ok(End::Broken) => client.abort("the upstream broke off"),
            Err(ClientGone) => tracing::debug!(request = exchange.id, "the client went away"),
        }
    };
    tokio::spawn(relaying.instrument(tracing::Span::current()));
    Response::from_parts(head, passing(body))
}

/// How the client's stream ends.
enum End {
    /// As the protocol ends one, with an error event or without.
    Orderly,
    /// By breaking off, since it passed unread and so did its end.
    Broken,
}

async fn relay(
    exchange: &Exchange,
    call: Option<Call>,
    upstream: AnyBody,
    client: &mut ClientStream,
) -> Result<End, ClientGone> {
    let mut observed = observe(exchange, upstream, client).await?;
    let last = std::mem::take(&mut observed.last);
    let parts = parts(exchange, &observed);
    // Before the last bytes go to the client: what it has whole is written down as that.
    if let Some(call) = call {
        call.settle(ended(&observed, &parts));
    }
    client.send(last).await?;
    if observed.unread {
        exchange.calls.watch.end(Ended::Unread);
        client.send(std::mem::take(&mut observed.residue)).await?;
        return Ok(if observed.ending == Ending::Clean { End::Orderly } else { End::Broken });
    }
    let mut account = Account::new(exchange.gateway.settings.resume.max_extra_tokens);
    account.first = observed.stream.usage();
    let mut closing = Closing {
        exchange,
        observed: &observed,
        client,
        account,
        worst: Outcome::Whole,
        touched: false,
        failed: None,
    };
    match timeout_at(exchange.deadline, closing.choices(&parts)).await {
        Ok(ended) => ended?,
        Err(_) => closing.took_too_long(),
    }
    exchange.calls.watch.end(Ended::Replied(closing.worst));
    closing.end().await?;
    Ok(End::Orderly)
}

/// The choices of a stream, each with its parts that may be cut.
type Parts<'a> = Vec<(Cow<'a, Choice>, Vec<Suspect>)>;

fn parts<'a>(exchange: &Exchange, observed: &'a Observed) -> Parts<'a> {
    if observed.unread {
        return Vec::new();
    }
    let output_tokens = observed.stream.output_tokens();
    let choices: Vec<Cow<'a, Choice>> = match observed.stream.choices() {
        // A stream that broke off before its first chunk is one reply, cut before its first character.
        [] if matches!(observed.ending, Ending::Dropped | Ending::Stalled) => {
            vec![Cow::Owned(Choice::new(0))]
        }
        choices => choices.iter().map(Cow::Borrowed).collect(),
    };
    let of = |choice: Cow<'a, Choice>| {
        let ending = if choice.finish.is_some() { Ending::Clean } else { observed.ending };
        let parts = suspects(exchange, &choice, ending, output_tokens);
        (choice, parts)
    };
    choices.into_iter().map(of).collect()
}

/// How the call ended whose answer the stream is.
fn ended(observed: &Observed, parts: &Parts<'_>) -> CallEnd {
    let stream = &observed.stream;
    CallEnd {
        // A stream that passed unread from some event on was too long to be kept.
        ending: if observed.unread && observed.ending == Ending::Clean {
            Ending::OverCap
        } else {
            observed.ending
        },
        stop: stream.choices().first().and_then(|choice| choice.finish.as_ref()?.stop),
        judged: worst(parts.iter().flat_map(|(_, parts)| parts)),
        usage: stream.usage(),
        model: stream.model().map(str::to_owned),
    }
}

/// The end of a stream: what was held back, and what was done for it.
struct Closing<'a> {
    exchange: &'a Exchange,
    observed: &'a Observed,
    client: &'a mut ClientStream,
    account: Account,
    /// The worst outcome of any choice.
    worst: Outcome,
    /// Some choice got another end than its own.
    touched: bool,
    /// Why the reply is not whole, where its own stream did not say that it ended.
    failed: Option<Disclosure>,
}

impl Closing<'_> {
    /// Every choice to its end.
    async fn choices(&mut self, parts: &Parts<'_>) -> Result<(), ClientGone> {
        let mut untouched = Vec::new();
        for (choice, parts) in parts {
            let mut disclosure = Disclosure::new(self.exchange);
            let mut settled = Settled::default();
            for part in parts {
                let mended = {
                    let template = self.observed.stream.template();
                    let had = self.sent(choice, part);
                    let mut flow = match had {
                        Some(sent) => {
                            Flow::Live(LiveSlot { client: self.client, template, slot: &part.slot, sent })
                        }
                        None => Flow::Waiting,
                    };
                    let mended = mend(self.exchange, part, &mut self.account, &mut flow).await?;
                    if let (Flow::Live(slot), Some(text)) = (&mut flow, &mended.text) {
                        let sent = slot.sent();
                        // What the client has is the beginning of the text: the core refuses any other join.
                        slot.extend(text.get(sent..).unwrap_or_default()).await?;
                    }
                    if let Flow::Live(slot) = &flow {
                        settled.went_on |= Some(slot.sent()) > had;
                    }
                    mended
                };
                settle::add(
                    self.exchange,
                    choice,
                    part,
                    mended,
                    &mut self.account,
                    &mut disclosure,
                    &mut settled,
                )
                .await?;
            }
            self.worst = self.worst.max(disclosure.outcome());
            if disclosure.has_something() {
                self.touched = true;
                self.choice(choice, &settled, &disclosure).await?;
            } else {
                untouched.push(choice.index);
            }
        }
        let unfinished =
            |index: &u32| self.observed.stream.choice_at(*index).is_none_or(|choice| choice.finish.is_none());
        if self.observed.ending != Ending::Clean && untouched.iter().any(unfinished) {
            let disclosure = self.broke_off();
            self.failed.get_or_insert(disclosure);
        }
        if self.touched || self.failed.is_some() {
            for held in self.observed.held.iter().filter(|held| held.is_of(&untouched)) {
                self.client.send(held.frame.raw.clone()).await?;
            }
        }
        Ok(())
    }

    /// There is no time left to make it whole.
    fn took_too_long(&mut self) {
        self.touched = true;
        self.failed = Some(self.broke_off());
    }

    /// The reply is not whole, and nothing more is done for it.
    fn broke_off(&mut self) -> Disclosure {
        let mut disclosure = Disclosure::new(self.exchange);
        disclosure.broke_off();
        self.worst = self.worst.max(disclosure.outcome());
        disclosure
    }

    /// Bytes of a part that the client has; none where calls are held until they are whole.
    fn sent(&self, choice: &Choice, part: &Suspect) -> Option<usize> {
        match &part.slot.part {
            Part::Text => {
                Some(lead(self.exchange, &choice.text).len() + self.observed.sent.of(choice.index, None))
            }
            Part::ToolCall(_) if self.exchange.gateway.settings.hold_tool_calls => None,
            Part::ToolCall(call) => Some(self.observed.sent.of(choice.index, Some(call.index))),
        }
    }

    /// The end of a choice for which something was done, or of which something is to be told.
    async fn choice(
        &mut self,
        choice: &Choice,
        settled: &Settled,
        disclosure: &Disclosure,
    ) -> Result<(), ClientGone> {
        let template = self.observed.stream.template();
        let endmark = disclosure.json();
        self.held_calls(choice, settled).await?;
        let own_end = self.observed.held.iter().find(|held| held.ends_one_of(&[choice.index]));
        if !settled.has_more()
            && let (Some(held), Some(endmark)) = (own_end, &endmark)
        {
            return self.own_end(held, choice.index, settled.finish, endmark).await;
        }
        for call in &settled.new_calls {
            self.client.send_chunk(&template.tool_call_chunk(choice.index, call)).await?;
        }
        let own_word = choice.finish.as_ref().map(|finish| finish.word.as_str());
        if let Some(word) = settled.finish.or(own_word) {
            let chunk = template.finish_chunk(choice.index, word, endmark.as_deref());
            return self.client.send_chunk(&chunk).await;
        }
        // Cut off, and not mended: there is no word of the protocol for that but an error.
        self.failed.get_or_insert_with(|| disclosure.clone());
        Ok(())
    }

    /// Calls that were held until they are whole, or as far as they came.
    async fn held_calls(&mut self, choice: &Choice, settled: &Settled) -> Result<(), ClientGone> {
        if !self.exchange.gateway.settings.hold_tool_calls {
            return Ok(());
        }
        for call in &choice.tool_calls {
            let mut call = call.clone();
            if let Some((_, arguments)) = settled.arguments.iter().find(|(index, _)| *index == call.index) {
                call.arguments.clone_from(arguments);
            }
            let chunk = self.observed.stream.template().tool_call_chunk(choice.index, &call);
            self.client.send_chunk(&chunk).await?;
        }
        Ok(())
    }

    /// The provider's own last chunk of a choice, with what is to be told written into it.
    async fn own_end(
        &mut self,
        held: &Held,
        choice: u32,
        finish: Option<&str>,
        endmark: &RawValue,
    ) -> Result<(), ClientGone> {
        let data = held.frame.data.as_deref().unwrap_or_default();
        let bytes = match ChunkEdit::new(data) {
            Ok(mut edit) => {
                if let Some(word) = finish {
                    edit.set_finish(choice, Some(word));
                }
                edit.set_endmark(endmark);
                held.frame.with_data(&edit.finish())
            }
            Err(_) => held.frame.raw.clone(),
        };
        self.client.send(bytes).await
    }

    /// The end of the stream itself.
    async fn end(&mut self) -> Result<(), ClientGone> {
        if !self.touched && self.failed.is_none() {
            for held in &self.observed.held {
                self.client.send(held.frame.raw.clone()).await?;
            }
            if self.observed.ending == Ending::Clean {
                return self.client.send(self.observed.residue.clone()).await;
            }
            // Every choice had said that it ended, and only the stream's own end was lost.
            return self.client.send_chunk(b"[DONE]").await;
        }
        if let Some(disclosure) = self.failed.take() {
            return self.error(&disclosure).await;
        }
        self.usage().await?;
        match self.observed.held.iter().find(|held| matches!(held.says, Says::Done)) {
            Some(done) => self.client.send(done.frame.raw.clone()).await,
            None => self.client.send_chunk(b"[DONE]").await,
        }
    }

    /// The tokens of all calls, for a client that asked for them.
    async fn usage(&mut self) -> Result<(), ClientGone> {
        let own = self.observed.held.iter().find(|held| held.only_counts());
        if !self.account.has_further_calls() {
            return match own {
                Some(held) => self.client.send(held.frame.raw.clone()).await,
                None => Ok(()),
            };
        }
        if !self.exchange.request.include_usage {
            return Ok(());
        }
        let chunk = self.observed.stream.template().usage_chunk(&self.account.total());
        self.client.send_chunk(&chunk).await
    }

    /// The end of a stream that broke off: the upstream's own error where there is one, never `[DONE]`.
    async fn error(&mut self, disclosure: &Disclosure) -> Result<(), ClientGone> {
        let endmark = disclosure.json();
        if let Some(held) = self.observed.held.iter().find(|held| matches!(held.says, Says::Error)) {
            let told = endmark
                .zip(held.frame.data.as_deref())
                .map(|(endmark, data)| held.frame.with_data(&with_endmark(data.as_bytes(), &endmark)));
            return self.client.send(told.unwrap_or_else(|| held.frame.raw.clone())).await;
        }
        let message = format!(
            "the reply of the upstream `{}` is cut: its stream ended {} ({}); send the request again",
            self.exchange.upstream_name(),
            self.observed.ending.name(),
            disclosure.reason(),
        );
        let error = error_body(&message, "endmark_reply_cut", None, None);
        let bytes = match endmark {
            Some(endmark) => with_endmark(&error, &endmark),
            None => error,
        };
        self.client.send_chunk(&bytes).await
    }
}

fn with_endmark(error: &[u8], endmark: &RawValue) -> Vec<u8> {
    let text = String::from_utf8_lossy(error);
    match ChunkEdit::new(&text) {
        Ok(mut edit) => {
            edit.set_endmark(endmark);
            edit.finish()
        }
        Err(_) => error.to_vec(),
    }
}
