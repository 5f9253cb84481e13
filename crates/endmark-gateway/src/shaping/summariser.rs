//! A model that says what happened in the part of a conversation that is condensed (CX-4). It is asked once for it, at the
//! upstream that the request is for, in the request's own format and with its credential. Where its answer does not come, or
//! does not hold up, the summary is made without a model.

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

/// Where a format demands a limit of the answer: the question asks for 400 words.
const LIMIT_TOKENS: u64 = 4_096;
/// A client waits for its reply meanwhile.
const PATIENCE: Duration = Duration::from_mins(1);
/// No summary is longer.
const ANSWER_LIMIT_BYTES: usize = 1 << 20;
/// What a model is shown of a conversation where nothing is known of its window.
const ROOM_CHARS: usize = 100_000;
/// Characters of a question to a token of the window, at most: dense text has two.
const CHARS_PER_TOKEN: u64 = 2;

/// The model of an upstream that is asked for summaries, and what it is asked with.
#[derive(Clone, Copy)]
pub(crate) struct Summariser<'a> {
    pub(crate) client: &'a Client,
    pub(crate) destination: &'a Destination,
    /// In which its call is noted, and held in the budgets of the request.
    pub(crate) calls: &'a Calls,
}

/// Why a model tells nothing.
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
    /// The model that is asked, if the upstream has one for that.
    pub(super) fn model(&self) -> Option<&str> {
        self.destination.summary.as_ref()?;
        self.destination.upstream.summary_model.as_deref()
    }

    /// How many characters a question may have, where its model's window has so many tokens.
    pub(super) fn room_chars(window_tokens: Option<u64>) -> usize {
        let of = |tokens: u64| usize::try_from(tokens.saturating_sub(LIMIT_TOKENS) * CHARS_PER_TOKEN);
        window_tokens.map_or(ROOM_CHARS, |tokens| of(tokens).unwrap_or(usize::MAX).min(ROOM_CHARS))
    }

    /// Asks the model.
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

    /// What it answers, and whether that is all of it. Where nobody waits any more, its call is settled as left.
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
