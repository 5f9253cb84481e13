//! Requests a description of the condensed part of a conversation from a model (CX-4). The model is called
//! once, at the request's upstream, in the request's format and with its credential. Without a valid
//! response, the summary is made without a model.

use std::time::Duration;

use bytes::Bytes;
use endmark_context::compact::{Count, NotTold, Told};
use endmark_recovery::{Ending, Stop};
use endmark_store::Purpose;
use endmark_wire::request::Request as WireRequest;
use http::StatusCode;
use tokio::time::timeout;

use crate::ledger::{CallEnd, Calls};
use crate::upstream::{Client, Destination, of_another_body, plain, read_whole};

/// The output limit for formats that require one. The prompt requests 400 words.
const LIMIT_TOKENS: u64 = 4_096;
/// Time limit of the call, because the client waits meanwhile.
const PATIENCE: Duration = Duration::from_mins(1);
/// Maximum size of the response in bytes.
const ANSWER_LIMIT_BYTES: usize = 1 << 20;
/// Maximum characters of the question if the model's window is unknown.
const ROOM_CHARS: usize = 100_000;
/// Characters of a question per token of the window. Dense text has two characters per token.
const CHARS_PER_TOKEN: u64 = 2;

/// The upstream's model for summaries, and the request to summarise.
#[derive(Clone, Copy)]
pub(crate) struct Summariser<'a> {
    pub(crate) client: &'a Client,
    pub(crate) destination: &'a Destination,
    /// Records the call, and reserves it in the request's budgets.
    pub(crate) calls: &'a Calls,
}

/// Why there is no description by a model.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotAsked {
    #[error("{0}")]
    NotMade(String),
    #[error("no answer within {0:?}")]
    TookTooLong(Duration),
    #[error("the upstream answered {0}")]
    Refused(StatusCode),
    #[error(transparent)]
    NotTold(#[from] NotTold),
}

impl Summariser<'_> {
    /// Returns the model for summaries, if the upstream has one.
    pub(super) fn model(&self) -> Option<&str> {
        self.destination.summary.as_ref()?;
        self.destination.upstream.summary_model.as_deref()
    }

    /// Returns the maximum length of a question in characters, for a model with this window.
    pub(super) fn room_chars(window_tokens: Option<u64>) -> usize {
        let of = |tokens: u64| usize::try_from(tokens.saturating_sub(LIMIT_TOKENS) * CHARS_PER_TOKEN);
        window_tokens.map_or(ROOM_CHARS, |tokens| of(tokens).unwrap_or(usize::MAX).min(ROOM_CHARS))
    }

    /// Requests a description from the model.
    pub(super) async fn told(
        &self,
        request: &WireRequest,
        question: &str,
        count: Count,
    ) -> Result<Told, NotAsked> {
        let asked = timeout(PATIENCE, self.answer(request, question)).await;
        let (text, is_whole) = asked.map_err(|_| NotAsked::TookTooLong(PATIENCE))??;
        Ok(Told::of(&text, is_whole, question, count)?)
    }

    /// Returns the model's answer, and whether it is complete. If the client disconnects, the call is
    /// recorded as abandoned.
    async fn answer(&self, request: &WireRequest, question: &str) -> Result<(String, bool), NotAsked> {
        let not_made = |error: String| NotAsked::NotMade(error);
        let upstream = &self.destination.upstream;
        let (Some(model), Some(uri)) = (self.model(), &self.destination.summary) else {
            return Err(not_made("no model is named for it".to_owned()));
        };
        let asked = request.question(model, question, LIMIT_TOKENS);
        let asked = asked.ok_or_else(|| not_made("no path can be made of the model's name".to_owned()))?;
        let opened = self.calls.open(Purpose::Summary, &upstream.name, model, false, asked.body()).await;
        let mut call = opened.map_err(|error| not_made(error.to_string()))?;
        let mut http = self.destination.post(uri, call.sends(Bytes::copy_from_slice(asked.body())));
        of_another_body(http.headers_mut());
        let answer = match self.client.send(upstream, http, PATIENCE).await {
            Ok(answer) => answer,
            Err(error) => {
                call.settle(CallEnd::new(error.ending()));
                return Err(not_made(error.to_string()));
            }
        };
        let status = answer.status();
        let answer = plain(answer.map(|body| call.answered(status, body)));
        if !status.is_success() {
            call.settle(CallEnd::new(Ending::UpstreamError));
            return Err(NotAsked::Refused(status));
        }
        let body = match read_whole(answer.into_body(), ANSWER_LIMIT_BYTES, PATIENCE).await {
            Ok(body) => body,
            Err(error) => {
                call.settle(CallEnd::new(Ending::Dropped));
                return Err(not_made(error.to_string()));
            }
        };
        let response = match asked.response(&body) {
            Ok(response) => response,
            Err(error) => {
                call.settle(CallEnd::new(Ending::UpstreamError));
                return Err(not_made(format!("the answer cannot be read: {error}")));
            }
        };
        let reply = response.reply();
        let choice = reply.choices.first();
        let stop = choice.and_then(|choice| choice.finish.as_ref()?.stop);
        call.read(Some(&reply.choices));
        call.settle(CallEnd::whole(reply));
        Ok(choice.map_or_else(Default::default, |choice| (choice.text.clone(), stop == Some(Stop::Normal))))
    }
}
