//! Asks a model to describe the condensed part of a conversation (CX-4). The model is called once, at the request's
//! upstream, in its format and with its credential. If the response is invalid, the summary is made without a model.

use std::time::Duration;

use bytes::Bytes;
use endmark_context::compact::{ModelNarrative, NarrativeRejection, TokenCounter};
use endmark_recovery::{Ending, Stop};
use endmark_store::Purpose;
use endmark_wire::request::Request as WireRequest;
use http::StatusCode;
use tokio::time::timeout;

use crate::ledger::{CallEnd, Calls};
use crate::upstream::{Client, Destination, decode_response, read_whole, remove_replaced_body_headers};

/// The output limit for formats that require one. The prompt requests 400 words.
const SUMMARY_LIMIT_TOKENS: u64 = 4_096;
/// Time limit of the call. The client waits for it.
const SUMMARY_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum size of the response in bytes.
const ANSWER_LIMIT_BYTES: usize = 1 << 20;
/// Maximum characters of the question if the model's window is unknown.
const MAX_QUESTION_CHARS: usize = 100_000;
/// Maximum characters of a question for each token of the window. Dense text has two characters per token.
const CHARS_PER_TOKEN: u64 = 2;

/// The upstream's model for summaries, and the request to summarise.
#[derive(Clone, Copy)]
pub(crate) struct Summariser<'a> {
    pub(crate) client: &'a Client,
    pub(crate) destination: &'a Destination,
    /// Records the call and reserves its cost in the request's budgets.
    pub(crate) calls: &'a Calls,
}

/// Error of a description that a model should write.
#[derive(Debug, thiserror::Error)]
pub(super) enum SummaryFailure {
    #[error("{0}")]
    CallFailed(String),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("the upstream answered {0}")]
    Refused(StatusCode),
    #[error(transparent)]
    Rejected(#[from] NarrativeRejection),
}

impl Summariser<'_> {
    /// Returns the upstream's model for summaries, if any.
    pub(super) fn model(&self) -> Option<&str> {
        self.destination.summary_uri.as_ref()?;
        self.destination.upstream.summary_model.as_deref()
    }

    /// Returns the maximum length of a question in characters, for a model with this window.
    pub(super) fn max_question_chars(window_tokens: Option<u64>) -> usize {
        let of = |tokens: u64| usize::try_from(tokens.saturating_sub(SUMMARY_LIMIT_TOKENS) * CHARS_PER_TOKEN);
        window_tokens
            .map_or(MAX_QUESTION_CHARS, |tokens| of(tokens).unwrap_or(usize::MAX).min(MAX_QUESTION_CHARS))
    }

    /// Requests a description from the model.
    pub(super) async fn summarise(
        &self,
        request: &WireRequest,
        question: &str,
        count: TokenCounter,
    ) -> Result<ModelNarrative, SummaryFailure> {
        let summary_request = timeout(SUMMARY_TIMEOUT, self.request_answer(request, question)).await;
        let (text, is_whole) = summary_request.map_err(|_| SummaryFailure::Timeout(SUMMARY_TIMEOUT))??;
        Ok(ModelNarrative::accept(&text, is_whole, question, count)?)
    }

    /// Returns the model's answer, and whether it is complete. If the client disconnects, the call is recorded as
    /// abandoned.
    async fn request_answer(
        &self,
        request: &WireRequest,
        question: &str,
    ) -> Result<(String, bool), SummaryFailure> {
        let call_failed = |error: String| SummaryFailure::CallFailed(error);
        let upstream = &self.destination.upstream;
        let (Some(model), Some(uri)) = (self.model(), &self.destination.summary_uri) else {
            return Err(call_failed("no summary model is configured".to_owned()));
        };
        let summary_request = request.question(model, question, SUMMARY_LIMIT_TOKENS);
        let summary_request = summary_request
            .ok_or_else(|| call_failed("the model's name cannot be part of a path".to_owned()))?;
        let opened =
            self.calls.open(Purpose::Summary, &upstream.name, model, false, summary_request.body()).await;
        let mut call = opened.map_err(|error| call_failed(error.to_string()))?;
        let mut http =
            self.destination.post(uri, call.request_body(Bytes::copy_from_slice(summary_request.body())));
        remove_replaced_body_headers(http.headers_mut());
        let answer = match self.client.send(upstream, http, SUMMARY_TIMEOUT).await {
            Ok(answer) => answer,
            Err(error) => {
                call.settle(CallEnd::new(error.ending()));
                return Err(call_failed(error.to_string()));
            }
        };
        let status = answer.status();
        let answer = decode_response(answer.map(|body| call.note_answer(status, body)));
        if !status.is_success() {
            call.settle(CallEnd::new(Ending::UpstreamError));
            return Err(SummaryFailure::Refused(status));
        }
        let body = match read_whole(answer.into_body(), ANSWER_LIMIT_BYTES, SUMMARY_TIMEOUT).await {
            Ok(body) => body,
            Err(error) => {
                call.settle(CallEnd::new(Ending::Dropped));
                return Err(call_failed(error.to_string()));
            }
        };
        let response = match summary_request.response(&body) {
            Ok(response) => response,
            Err(error) => {
                call.settle(CallEnd::new(Ending::UpstreamError));
                return Err(call_failed(format!("the answer cannot be read: {error}")));
            }
        };
        let reply = response.reply();
        let choice = reply.choices.first();
        let stop = choice.and_then(|choice| choice.finish.as_ref()?.stop);
        call.record_text(Some(&reply.choices));
        call.settle(CallEnd::from_reply(reply));
        Ok(choice.map_or_else(Default::default, |choice| (choice.text.clone(), stop == Some(Stop::Normal))))
    }
}
