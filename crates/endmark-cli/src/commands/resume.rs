//! `endmark resume`: asks a model for the rest of a cut text, and joins both (PC-5).

use std::time::Duration;

use bytes::Bytes;
use endmark_config::{Settings, client_upstream_at, parse_base_url};
use endmark_failure::CommandError;
use endmark_recovery::{
    AskFailure, Ending, Join, Reply, ResumeAsk, ResumeExhausted, ResumeOutcome, ResumePolicy, Stop,
    resume_if_truncated,
};
use endmark_store::runtime;
use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};
use endmark_wire::openai_chat::{ChatRequest, ChatResponse, Partial, Terms, read_error};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde_json::json;

use crate::arguments::Resume;
use crate::client::Client;
use crate::context::{Context, configuration_warnings};
use crate::format;
use crate::input::Input;
use crate::saved;
use crate::view::answer::{Answer, to_data};
use crate::view::seams::{SeamReport, dropped_warnings};

/// The question if none is given, because a conversation must begin with a user message.
const UNKNOWN_QUESTION: &str = "Write the text.";

/// Requests continuations until the text is whole or no attempt is left.
pub(crate) fn run(context: &Context, arguments: &Resume) -> Result<Answer, CommandError> {
    let effective = context.load_configuration(Vec::new())?;
    let text = Input::open(Some(&arguments.file), context.terminal)?.read_text()?;
    let (text, stop) = saved::text_to_continue(text.as_bytes())?.unwrap_or((text, Stop::Limit));
    if text.trim().is_empty() {
        return Err(CommandError::input(
            "empty",
            "the text to continue is empty",
            "Name a file with the cut text.",
        ));
    }
    let demanded = required_format(&text, format::from_arguments(&arguments.format)?)?;
    let server = ModelServer::new(context, arguments, &effective.settings)?;
    let policy = ResumePolicy {
        max_attempts: effective.settings.gateway.resume.max_attempts,
        on_ambiguous: effective.settings.gateway.resume.on_ambiguous,
        sent: 0,
        prompt: effective.settings.gateway.resume.prompt.clone(),
        ..ResumePolicy::default()
    };
    let runtime = runtime::new()?;
    let (mut answered, mut refused) = (false, None);
    let outcome = resume_if_truncated(policy, demanded, Reply::with_stop(text, stop), |ask| {
        context.terminal.progress(&format!("Asking {} for the rest ({}).", arguments.model, ask.attempt));
        let reply = runtime.block_on(server.ask(ask));
        match &reply {
            Ok(_) => answered = true,
            Err(failure) => refused = Some(failure.to_string()),
        }
        reply.map(|reply| (reply, Join::Prompted))
    });
    // If the server never answered, report the failure of the server instead of an incomplete text.
    if let (ResumeOutcome::Exhausted(_), false, Some(message)) = (&outcome, answered, refused) {
        let hint = format!(
            "Check that {} serves `{}`, and whether it requires a key (`--api-key-env NAME`).",
            server.url, arguments.model
        );
        return Err(CommandError::Upstream { message, hint: Some(hint) });
    }
    Ok(answer(outcome)?.with_warnings(configuration_warnings(&effective)))
}

/// Returns the format whose grammar decides when the text is whole.
///
/// Returns `None` for prose, which is whole when the model ends it.
///
/// A text that no continuation can make valid is rejected here, before a model is called and paid for.
fn required_format(text: &str, format: Format) -> Result<Option<Format>, CommandError> {
    let detection = detect(text.as_bytes(), &format);
    let format = match format {
        Format::Auto => detection.detected.unwrap_or(Format::Text),
        format => format,
    };
    if let Verdict::Malformed { index, reason } = detection.verdict {
        return Err(CommandError::input(
            "malformed",
            format!("the text is not cut: it is malformed as {format} at byte {index}: {reason}"),
            "No model was called, because no continuation can make the text valid. Correct the text, or name its format.",
        ));
    }
    Ok(Some(format).filter(Format::can_be_required))
}

/// Answer data: the outcome and the received text.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ResumeReport<'a> {
    /// `whole`, or `exhausted`.
    outcome: &'static str,
    /// The whole text, or everything that was received.
    text: &'a str,
    attempts: u32,
    /// The seams of a whole text.
    #[serde(skip_serializing_if = "Option::is_none")]
    seams: Option<Vec<SeamReport>>,
    /// Why an exhausted text was not continued further.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    /// The number of verified bytes of an exhausted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified_len: Option<usize>,
    /// The best candidate for an exhausted text, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<&'a str>,
}

fn answer(outcome: ResumeOutcome) -> Result<Answer, CommandError> {
    match outcome {
        ResumeOutcome::Whole { text, seams, attempts, .. } => {
            let data = to_data(&ResumeReport {
                outcome: "whole",
                text: &text,
                attempts,
                seams: Some(seams.iter().map(SeamReport::new).collect()),
                cause: None,
                verified_len: None,
                best: None,
            })?;
            Ok(Answer::yes(data, text).with_warnings(dropped_warnings(&seams)))
        }
        ResumeOutcome::Exhausted(exhausted) => exhausted_answer(&exhausted),
        ResumeOutcome::Passed => Err(CommandError::Bug("a cut text was not resumed".to_owned())),
    }
}

fn exhausted_answer(exhausted: &ResumeExhausted) -> Result<Answer, CommandError> {
    let data = to_data(&ResumeReport {
        outcome: "exhausted",
        text: &exhausted.merged_raw,
        attempts: exhausted.attempts,
        seams: None,
        cause: Some(exhausted.cause.name()),
        verified_len: Some(exhausted.verified_len),
        best: exhausted.best.as_deref(),
    })?;
    let hint =
        "`--json` shows everything that was received; `--set resume.max_attempts=N` allows more attempts.";
    let message = format!("still not whole: {}", exhausted.reason);
    Ok(Answer::no(data, "exhausted", message, Some(hint.to_owned())))
}

/// The server that receives the requests.
struct ModelServer {
    client: Client,
    url: String,
    authorization: Option<http::HeaderValue>,
    /// The request that presumably led to the cut text.
    request: ChatRequest,
    terms: Terms,
    timeout: Duration,
}

impl ModelServer {
    fn new(context: &Context, arguments: &Resume, settings: &Settings) -> Result<Self, CommandError> {
        let base_url = parse_base_url(&arguments.base_url).map_err(|expected| CommandError::Input {
            code: "invalid_url",
            message: format!("--base-url must be {expected}"),
            hint: None,
        })?;
        let question = match &arguments.prompt_context {
            Some(file) => Input::open_file(file, context.terminal)?.read_hand_written()?,
            None => UNKNOWN_QUESTION.to_owned(),
        };
        let request = json!({"model": arguments.model, "messages": [{"role": "user", "content": question}]});
        let request = ChatRequest::parse(request.to_string().as_bytes())
            .map_err(|error| CommandError::Bug(error.to_string()))?;
        Ok(Self {
            client: Client::new(&client_upstream_at(settings, base_url.clone(), &context.environment)?)
                .map_err(|error| CommandError::Upstream { message: error.to_string(), hint: None })?,
            url: format!("{base_url}/chat/completions"),
            authorization: arguments
                .api_key_env
                .as_deref()
                .map(|name| read_key(context, name))
                .transpose()?,
            request,
            terms: Terms {
                limit: settings.gateway.resume.continuation_tokens,
                stream: false,
                include_usage: false,
            },
            timeout: settings.gateway.limits.total,
        })
    }

    async fn ask(&self, ask: &ResumeAsk) -> Result<Reply, AskFailure> {
        let shown = ask.so_far.get(..ask.shown.length).unwrap_or(&ask.so_far);
        let body = self.request.with_prompt(&Partial::Text(shown), &ask.prompt, self.terms);
        let mut request = Request::post(&self.url).header("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.map_err(|error| AskFailure::Rejected(error.to_string()))?;
        let response = self.client.send(request, self.timeout).await;
        let response = response.map_err(|error| AskFailure::Lost(error.to_string()))?;
        if response.status() != StatusCode::OK {
            let error_message =
                read_error(response.body()).map(|error| format!(": {}", error.message)).unwrap_or_default();
            return Err(AskFailure::Rejected(format!(
                "{} answers {}{error_message}",
                self.url,
                response.status()
            )));
        }
        self.read(response.body())
    }

    fn read(&self, body: &[u8]) -> Result<Reply, AskFailure> {
        let response =
            ChatResponse::parse(body, &self.request).map_err(|error| AskFailure::Lost(error.to_string()))?;
        let output_tokens = response.usage.map(|usage| usage.completion);
        let choice = response.choices.into_iter().next();
        let choice = choice.ok_or_else(|| AskFailure::Lost("the response has no choice".to_owned()))?;
        Ok(Reply {
            ending: choice.ending_after(Ending::Clean),
            stop: choice.finish.as_ref().and_then(|finish| finish.stop),
            text: choice.text,
            output_tokens,
            limit: Some(self.terms.limit),
            reasoned: choice.has_reasoning,
        })
    }
}

/// Returns the authorization header with the key in this environment variable.
fn read_key(context: &Context, name: &str) -> Result<http::HeaderValue, CommandError> {
    let key = context.environment.get(name).ok_or_else(|| {
        let message = format!("the environment variable `{name}` is not set");
        CommandError::input("missing_key", message, "Set it to the key of the server.")
    })?;
    let mut value = http::HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
        let message = format!("the environment variable `{name}` does not contain a valid key");
        CommandError::input("missing_key", message, "A key consists of visible ASCII characters.")
    })?;
    value.set_sensitive(true);
    Ok(value)
}
