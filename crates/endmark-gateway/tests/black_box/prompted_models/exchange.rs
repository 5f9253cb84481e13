//! Sends one request through the gateway, and judges its result.

use std::fmt;
use std::sync::Arc;

use endmark_gateway::Mode;
use serde_json::{Value, json};
use testkit::{
    Asks, Dialect, DialectAdapter, Library, Manner, ReadingModel, Received, RepeatedReply, Request,
    Respond as _, tokens,
};
use tokio::task::JoinSet;

use super::documents::Kind;
use crate::support::Endmark;
use crate::support::wire_replies::{End, Wire};

/// Number of concurrent requests.
const AT_A_TIME: usize = 4;

/// A request, the document that answers it, and how the rest arrives.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) number: usize,
    /// The label under which it is counted.
    pub(super) label: &'static str,
    pub(super) wire: Wire,
    pub(super) stream: bool,
    pub(super) kind: Kind,
    pub(super) document: String,
    pub(super) cut: usize,
    /// Whether the request itself demands JSON, and no header of Endmark's.
    pub(super) demands_json: bool,
    pub(super) manner: Manner,
    pub(super) again: RepeatedReply,
}

/// What a client got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// The complete document that the model intended.
    Whole,
    /// A correct beginning, reported as cut.
    Refused(String),
    /// A wrong text, without any report.
    Wrong(Harm, String),
}

/// How a reply that claims to be whole is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    /// It is only a beginning of the intended document.
    EndLost,
    /// It contains other words.
    Changed,
}

/// The result of an exchange.
#[derive(Debug, Clone)]
pub(super) struct Played {
    pub(super) fate: Fate,
    /// Whether a closing remark of the answer remains at the end of the text. It cannot be distinguished from a last
    /// sentence.
    pub(super) remark_left_in: bool,
    /// The strategy of each call for the rest.
    pub(super) strategies: String,
    /// Tokens of the prompts and the answers after the first call, and of the whole reply.
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
        ReadingModel::new(&self.document, self.cut, self.manner.clone()).repeat_with(self.again)
    }

    /// The client's request: its limit is where the reply is cut.
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
            Dialect::Responses => {
                body["input"] = message;
                if demands {
                    body["text"] = json!({"format": {"type": "json_object"}});
                }
            }
            Dialect::Messages => body["messages"][0]["content"] = message,
            Dialect::Gemini => {
                body["contents"][0]["parts"][0]["text"] = message;
                if demands {
                    body["generationConfig"]["responseMimeType"] = json!("application/json");
                }
            }
        }
        body
    }

    /// The remark of the answer after the rest.
    fn remark(&self) -> &'static str {
        match &self.manner {
            Manner::Continues(style) => style.suffix,
            Manner::Says(_) | Manner::Loops(_) => "",
        }
    }

    /// Sends the request and judges the result.
    async fn play(&self, address: std::net::SocketAddr, library: &Library) -> Played {
        let mut request = Request::post(address, self.wire.path(self.stream)).json(&self.body());
        if let Some(format) = self.kind.required_format().filter(|_| !self.demands_json) {
            request = request.header("x-endmark-format", format);
        }
        let reply = request.send().await.read().await;
        let heard = self.wire.hear(&reply);
        let model = library.model(&self.first_message());
        let says_whole = heard.error.is_none() && heard.stop.as_deref() == Some(self.wire.word(End::Turn));
        let intended = model.intended_texts();
        let disclosed = heard.endmark.as_ref().and_then(|disclosed| disclosed["outcome"].as_str());
        let outcome = disclosed.or(reply.header("x-endmark-outcome")).map(str::to_owned);
        let is_restarted = outcome.as_deref() == Some("restarted");
        let fate = match self.fate(&heard.text, says_whole, &intended) {
            // The text differs from the received one, and is reported as different.
            Fate::Wrong(_, why) if is_restarted => Fate::Refused(format!("{why}, generated again")),
            fate => fate,
        };
        let left_out = heard
            .endmark
            .as_ref()
            .and_then(|disclosed| disclosed["left_out"].as_u64())
            .or_else(|| reply.header("x-endmark-left-out")?.parse().ok());
        // In any case, the received text is delivered, or the missing part is reported.
        let is_told = is_restarted || outcome.as_deref() == Some("corrected") || left_out.is_some();
        let fate = if heard.text.starts_with(&self.document[..self.cut]) || is_told || heard.error.is_some() {
            fate
        } else {
            Fate::Wrong(Harm::Changed, format!("received bytes are lost without a word: {:?}", heard.text))
        };
        // Keeping a remark is a smaller loss than losing words of a text (PC-4).
        let without_remark = heard.text.trim_end().strip_suffix(self.remark().trim());
        let remark_left_in = fate != Fate::Whole
            && self.kind.is_prose()
            && without_remark.is_some_and(|text| self.fate(text, says_whole, &intended) == Fate::Whole);
        let fate = if remark_left_in { Fate::Whole } else { fate };
        let calls = model.calls();
        let further = calls.get(1..).unwrap_or_default();
        let name = |asks: Asks| match asks {
            Asks::First => "first",
            Asks::Again => "again",
            Asks::Prefill => "prefill",
            Asks::Prompt => "in words",
        };
        let strategies: Vec<&str> = further.iter().map(|call| name(call.request_kind)).collect();
        let extra_tokens = (
            further.iter().map(|call| call.prompt_tokens).sum(),
            further.iter().map(|call| call.output_tokens).sum(),
            tokens(&self.document).len(),
        );
        Played { fate, remark_left_in, strategies: strategies.join(", "), extra_tokens }
    }

    fn fate(&self, text: &str, says_whole: bool, intended: &[String]) -> Fate {
        let value = |text: &str| -> Option<Vec<Value>> {
            match self.kind {
                Kind::Json => Some(vec![serde_json::from_str(text).ok()?]),
                Kind::JsonLines => {
                    let rows = text.lines().filter(|line| !line.trim().is_empty());
                    rows.map(|line| serde_json::from_str(line).ok()).collect()
                }
                Kind::Prose | Kind::Markdown | Kind::Code | Kind::Tags => None,
            }
        };
        let is_same = |intended: &String| {
            // The end differs at most by a line end.
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
                return Fate::Whole;
            }
            let is_beginning = intended.iter().any(|intended| intended.starts_with(text.trim_end()));
            return Fate::Wrong(if is_beginning { Harm::EndLost } else { Harm::Changed }, differs());
        }
        if intended.iter().any(|intended| intended.starts_with(text)) {
            Fate::Refused(differs())
        } else {
            Fate::Wrong(Harm::Changed, format!("{}, told as cut", differs()))
        }
    }
}

/// Runs all exchanges, with one gateway for each format. Returns them in the given order.
pub(super) async fn play(exchanges: Vec<Exchange>) -> Vec<(Exchange, Played)> {
    let mut played = Vec::new();
    for wire in Wire::ALL {
        let those: Vec<Exchange> =
            exchanges.iter().filter(|exchange| exchange.wire == wire).cloned().collect();
        let library = those.iter().fold(Library::default(), |library, exchange| {
            library.with(&exchange.first_message(), exchange.model())
        });
        let library = Arc::new(library);
        let answers = Arc::clone(&library);
        let answering = move |request: &Received| answers.respond(request);
        let resuming = |settings: &mut endmark_gateway::Settings| settings.resume.mode = Mode::On;
        let endmark = match wire {
            Wire::Chat => Endmark::start_with(answering, resuming).await,
            Wire::Other(dialect) => {
                Endmark::start_with(DialectAdapter::new(dialect, answering), resuming).await
            }
        };
        let mut under_way = JoinSet::new();
        for exchange in those {
            if under_way.len() == AT_A_TIME {
                played.extend(under_way.join_next().await.map(Result::unwrap));
            }
            let (address, library) = (endmark.address, Arc::clone(&library));
            under_way.spawn(async move {
                let result = exchange.play(address, &library).await;
                (exchange, result)
            });
        }
        played.extend(under_way.join_all().await);
        endmark.stop().await;
    }
    played.sort_by_key(|(exchange, _)| exchange.number);
    played
}
