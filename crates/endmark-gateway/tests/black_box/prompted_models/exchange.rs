//! Sends one request through the gateway and judges the result.

use std::fmt;
use std::sync::Arc;

use endmark_gateway::ResumeMode;
use serde_json::{Value, json};
use testkit::{
    ModelBehaviour, ModelFormat, ModelFormatAdapter, ReadingModel, ReadingModels, ReceivedRequest,
    RepeatedReply, Request, RequestKind, Respond as _, tokens,
};
use tokio::task::JoinSet;

use super::documents::DocumentKind;
use crate::support::Endmark;
use crate::support::wire_replies::{End, Wire};

/// Number of concurrent exchanges.
const CONCURRENT_EXCHANGES: usize = 4;

/// A request, the document that answers it, and how the model returns the rest.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) number: usize,
    /// The row of the table that counts this exchange.
    pub(super) label: &'static str,
    pub(super) wire: Wire,
    pub(super) stream: bool,
    pub(super) kind: DocumentKind,
    pub(super) document: String,
    pub(super) cut: usize,
    /// Whether the request's own fields demand JSON, instead of an Endmark header.
    pub(super) demands_json: bool,
    pub(super) manner: ModelBehaviour,
    pub(super) again: RepeatedReply,
}

/// The reply that the client got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExchangeOutcome {
    /// The complete document that the model intended.
    Whole,
    /// A correct beginning, reported as cut. The text is the reason.
    Refused(String),
    /// A wrong text that is not reported as cut. The text is the reason.
    Wrong(SilentError, String),
}

/// What is wrong with a reply that looks whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SilentError {
    /// The end of the intended document is missing.
    EndLost,
    /// Other text was changed or added.
    Changed,
}

/// The result of an exchange.
#[derive(Debug, Clone)]
pub(super) struct ExchangeResult {
    pub(super) outcome: ExchangeOutcome,
    /// Whether the model's closing remark is still at the end of the text, because it looks like a last
    /// sentence.
    pub(super) remark_left_in: bool,
    /// The strategies of all continuation requests, in order.
    pub(super) strategies: String,
    /// Prompt tokens and output tokens of all further calls, and the tokens of the whole reply.
    pub(super) extra_tokens: (usize, usize, usize),
}

impl fmt::Display for Exchange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, behind) = self.document.split_at(self.cut);
        let tail: String = before.chars().skip(before.chars().count().saturating_sub(60)).collect();
        let head: String = behind.chars().take(60).collect();
        let streamed = if self.stream { "streamed" } else { "not streamed" };
        write!(
            formatter,
            "exchange {} ({}, {:?}, {:?}, {streamed}), cut {tail:?} | {head:?}\n  {:?}",
            self.number, self.label, self.kind, self.wire, self.manner
        )
    }
}

impl Exchange {
    fn first_message(&self) -> String {
        format!("Write text number {}.", self.number)
    }

    fn model(&self) -> ReadingModel {
        ReadingModel::new(&self.document, self.cut, self.manner.clone()).with_repeated_reply(self.again)
    }

    /// Returns the client's request. Its output limit causes the cut.
    fn body(&self) -> Value {
        let limit = tokens(&self.document[..self.cut]).len() as u64;
        let message = json!(self.first_message());
        let demands = self.demands_json;
        let Wire::Other(dialect) = self.wire else {
            let mut body = json!({"model": "reading", "max_tokens": limit, "stream": self.stream,
                "messages": [{"role": "user", "content": message}]});
            if demands {
                body["response_format"] = json!({"type": "json_object"});
            }
            return body;
        };
        let mut body = dialect.request(limit, self.stream);
        match dialect {
            ModelFormat::Responses => {
                body["input"] = message;
                if demands {
                    body["text"] = json!({"format": {"type": "json_object"}});
                }
            }
            ModelFormat::Messages => body["messages"][0]["content"] = message,
            ModelFormat::Gemini => {
                body["contents"][0]["parts"][0]["text"] = message;
                if demands {
                    body["generationConfig"]["responseMimeType"] = json!("application/json");
                }
            }
        }
        body
    }

    /// Returns the model's closing remark, or an empty string.
    fn remark(&self) -> &'static str {
        match &self.manner {
            ModelBehaviour::Continues(style) => style.suffix,
            ModelBehaviour::FixedText(_) | ModelBehaviour::Loops(_) => "",
        }
    }

    /// Sends the request and judges the result.
    async fn run(&self, address: std::net::SocketAddr, library: &ReadingModels) -> ExchangeResult {
        let mut request = Request::post(address, self.wire.path(self.stream)).json(&self.body());
        if let Some(format) = self.kind.required_format().filter(|_| !self.demands_json) {
            request = request.header("x-endmark-format", format);
        }
        let reply = request.send().await.read().await;
        let heard = self.wire.read_reply(&reply);
        let model = library.model(&self.first_message());
        let says_whole =
            heard.error.is_none() && heard.stop.as_deref() == Some(self.wire.finish_reason(End::Turn));
        let intended = model.intended_texts();
        let disclosed = heard.endmark.as_ref().and_then(|disclosed| disclosed["outcome"].as_str());
        let outcome = disclosed.or(reply.header("x-endmark-outcome")).map(str::to_owned);
        let is_restarted = outcome.as_deref() == Some("restarted");
        let fate = match self.judge(&heard.text, says_whole, &intended) {
            // The text differs from the received one, but the reply is reported as generated again.
            ExchangeOutcome::Wrong(_, why) if is_restarted => {
                ExchangeOutcome::Refused(format!("{why}, generated again"))
            }
            fate => fate,
        };
        let left_out = heard
            .endmark
            .as_ref()
            .and_then(|disclosed| disclosed["left_out"].as_u64())
            .or_else(|| reply.header("x-endmark-left-out")?.parse().ok());
        // The received text must be delivered, or the change must be disclosed.
        let is_told = is_restarted || outcome.as_deref() == Some("corrected") || left_out.is_some();
        let fate = if heard.text.starts_with(&self.document[..self.cut]) || is_told || heard.error.is_some() {
            fate
        } else {
            ExchangeOutcome::Wrong(
                SilentError::Changed,
                format!("received bytes are lost without a word: {:?}", heard.text),
            )
        };
        // Keeping a remark is less harmful than losing a part of the text (PC-4).
        let without_remark = heard.text.trim_end().strip_suffix(self.remark().trim());
        let remark_left_in = fate != ExchangeOutcome::Whole
            && self.kind.is_prose()
            && without_remark
                .is_some_and(|text| self.judge(text, says_whole, &intended) == ExchangeOutcome::Whole);
        let fate = if remark_left_in { ExchangeOutcome::Whole } else { fate };
        let calls = model.calls();
        let further = calls.get(1..).unwrap_or_default();
        let name = |asks: RequestKind| match asks {
            RequestKind::First => "first",
            RequestKind::Repetition => "again",
            RequestKind::Prefill => "prefill",
            RequestKind::Prompt => "in words",
        };
        let strategies: Vec<&str> = further.iter().map(|call| name(call.request_kind)).collect();
        let extra_tokens = (
            further.iter().map(|call| call.prompt_tokens).sum(),
            further.iter().map(|call| call.output_tokens).sum(),
            tokens(&self.document).len(),
        );
        ExchangeResult { outcome: fate, remark_left_in, strategies: strategies.join(", "), extra_tokens }
    }

    fn judge(&self, text: &str, says_whole: bool, intended: &[String]) -> ExchangeOutcome {
        let value = |text: &str| -> Option<Vec<Value>> {
            match self.kind {
                DocumentKind::Json => Some(vec![serde_json::from_str(text).ok()?]),
                DocumentKind::JsonLines => {
                    let rows = text.lines().filter(|line| !line.trim().is_empty());
                    rows.map(|line| serde_json::from_str(line).ok()).collect()
                }
                DocumentKind::Prose | DocumentKind::Markdown | DocumentKind::Code | DocumentKind::Tags => {
                    None
                }
            }
        };
        let is_same = |intended: &String| {
            // The end may differ by one newline.
            let same_value = value(text).is_some_and(|got| Some(got) == value(intended));
            intended.trim_end() == text.trim_end() || same_value
        };
        let differs = || {
            let common = |intended: &str| -> usize {
                let pairs = intended.chars().zip(text.chars());
                pairs
                    .take_while(|(intended, got)| intended == got)
                    .map(|(intended, _)| intended.len_utf8())
                    .sum()
            };
            let Some((at, nearest)) = intended.iter().map(|intended| (common(intended), intended)).max()
            else {
                return String::new();
            };
            let ahead = |text: &str| text[at..].chars().take(60).collect::<String>();
            format!("  {:?} of {} bytes, and not {:?}", ahead(text), text.len(), ahead(nearest))
        };
        if says_whole {
            if intended.iter().any(is_same) {
                return ExchangeOutcome::Whole;
            }
            let is_beginning = intended.iter().any(|intended| intended.starts_with(text.trim_end()));
            return ExchangeOutcome::Wrong(
                if is_beginning { SilentError::EndLost } else { SilentError::Changed },
                differs(),
            );
        }
        if intended.iter().any(|intended| intended.starts_with(text)) {
            ExchangeOutcome::Refused(differs())
        } else {
            ExchangeOutcome::Wrong(SilentError::Changed, format!("{}, told as cut", differs()))
        }
    }
}

/// Runs all exchanges, with one gateway for each format. The results are in the given order.
pub(super) async fn run_all(exchanges: Vec<Exchange>) -> Vec<(Exchange, ExchangeResult)> {
    let mut played = Vec::new();
    for wire in Wire::ALL {
        let those: Vec<Exchange> =
            exchanges.iter().filter(|exchange| exchange.wire == wire).cloned().collect();
        let library = those.iter().fold(ReadingModels::default(), |library, exchange| {
            library.with(&exchange.first_message(), exchange.model())
        });
        let library = Arc::new(library);
        let answers = Arc::clone(&library);
        let answering = move |request: &ReceivedRequest| answers.respond(request);
        let resuming = |settings: &mut endmark_gateway::Settings| settings.resume.mode = ResumeMode::On;
        let endmark = match wire {
            Wire::Chat => Endmark::start_with(answering, resuming).await,
            Wire::Other(dialect) => {
                Endmark::start_with(ModelFormatAdapter::new(dialect, answering), resuming).await
            }
        };
        let mut under_way = JoinSet::new();
        for exchange in those {
            if under_way.len() == CONCURRENT_EXCHANGES {
                played.extend(under_way.join_next().await.map(Result::unwrap));
            }
            let (address, library) = (endmark.address, Arc::clone(&library));
            under_way.spawn(async move {
                let result = exchange.run(address, &library).await;
                (exchange, result)
            });
        }
        played.extend(under_way.join_all().await);
        endmark.stop().await;
    }
    played.sort_by_key(|(exchange, _)| exchange.number);
    played
}
