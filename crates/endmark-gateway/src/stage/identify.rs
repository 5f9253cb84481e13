//! Determines the id, session, task and turn of a request.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use endmark_store::sha256_hex;
use endmark_wire::request::Request;
use http::HeaderMap;
use http::request::Parts;

use super::admit::{AdmittedRequest, own_header};
use crate::api::ApiNames;
use crate::gateway::Gateway;
use crate::keys::OwnKey;
use crate::ledger::{Caller, Calls, RequestWatch};
use crate::refusals::Refusal;
use crate::scrub::{Scrubber, Secrets};
use crate::upstream::{Credential, Destination, find_secrets};

/// Number of digits of a session's hash. 64 bits suffice to distinguish sessions.
const SESSION_DIGITS: usize = 16;

/// Headers in which agents name their sessions: Claude Code, Codex, and older versions of Codex.
const SESSION_HEADERS: [&str; 3] = ["x-claude-code-session-id", "session-id", "session_id"];

/// An admitted request with its client and session.
pub(crate) struct IdentifiedRequest {
    pub(super) admitted: AdmittedRequest,
    /// The id that `endmark log show` accepts.
    pub(crate) id: String,
    pub(crate) session: String,
    /// The hash of the client's credential, if it sent one.
    pub(super) credential: Option<String>,
    /// The task: the client's name for it, or the session.
    pub(super) task_id: String,
    /// The number of the conversation's turn that the reply answers, from 1.
    pub(super) turn_number: u32,
}

/// Determines the client and session of an admitted request.
///
/// # Errors
/// [`Refusal::BadRequest`] if one of Endmark's own headers cannot be read.
pub(crate) fn identify(admitted: AdmittedRequest) -> Result<IdentifiedRequest, Refusal> {
    let headers = &admitted.client.headers;
    let turn_number = match own_header(headers, "x-endmark-turn")? {
        Some(turn) => turn
            .parse()
            .map_err(|_| Refusal::BadRequest(format!("x-endmark-turn is `{turn}`: use a whole number")))?,
        None => admitted.request.reply_count().saturating_add(1),
    };
    let credential = admitted.client.extensions.get::<Credential>().map(|known| known.id().to_owned());
    let own = own_header(headers, "x-endmark-session")?;
    let named_session =
        own.or_else(|| client_session(headers)).or(admitted.request.view().conversation.as_deref());
    if let (Some(name), Some(credential)) = (named_session, &credential) {
        admitted.gateway.rotations.note(name, credential);
    }
    let conversation =
        named_session.map_or_else(|| Cow::Owned(conversation_key(&admitted.request)), Cow::Borrowed);
    let session = session(credential.as_deref(), &conversation);
    let task_id = own_header(headers, "x-endmark-task")?.map_or_else(|| session.clone(), str::to_owned);
    Ok(IdentifiedRequest { id: new_request_id(), credential, session, task_id, turn_number, admitted })
}

/// Returns the session that a client names for its own purposes. An unreadable value is ignored.
fn client_session(headers: &HeaderMap) -> Option<&str> {
    let mut named = SESSION_HEADERS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    named.find(|session| !session.trim().is_empty()).map(str::trim)
}

impl IdentifiedRequest {
    pub(crate) fn model(&self) -> &str {
        &self.admitted.request.view().model
    }

    /// Creates the record of the request's calls. Each call is recorded before it starts.
    pub(super) fn calls(&self) -> Calls {
        let AdmittedRequest { gateway, client, request, destination, fallback, mode, .. } = &self.admitted;
        let destinations = std::iter::once(destination).chain(fallback);
        let recorder = gateway.store.recorder(secrets(gateway, client, destinations));
        let watch = RequestWatch::new(
            &gateway.metrics,
            &gateway.stopping,
            self.id.clone(),
            destination.upstream.name.clone(),
            ApiNames::from_format(request.format()),
            request.view().stream,
            &client.headers,
        );
        let caller = Caller {
            request_id: self.id.clone(),
            session: self.session.clone(),
            credential: self.credential.clone(),
            limits: client.extensions.get::<Arc<OwnKey>>().map(|key| key.limits()).unwrap_or_default(),
        };
        let format = request.format();
        let api = ApiNames::from_format(format);
        Calls::new(recorder, watch, caller, *mode, (format, api), Arc::clone(&gateway.budgets))
    }
}

/// Returns the client of a request that is not for a reply. If the client names no session, `text` identifies it.
///
/// # Errors
/// [`Refusal::BadRequest`] if one of Endmark's own headers cannot be read.
pub(crate) fn new_caller(client: &Parts, text: &str) -> Result<Caller, Refusal> {
    let headers = &client.headers;
    let named = own_header(headers, "x-endmark-session")?.or_else(|| client_session(headers));
    let credential = client.extensions.get::<Credential>().map(|known| known.id().to_owned());
    Ok(Caller {
        request_id: new_request_id(),
        session: session(credential.as_deref(), named.unwrap_or(text)),
        credential,
        limits: client.extensions.get::<Arc<OwnKey>>().map(|key| key.limits()).unwrap_or_default(),
    })
}

/// Returns the secrets of a request, both as received and as sent.
fn secrets<'a>(
    gateway: &Gateway,
    client: &Parts,
    destinations: impl Iterator<Item = &'a Destination>,
) -> Secrets {
    let sent = destinations.map(|destination| (&destination.headers, &destination.uri));
    let all = std::iter::once((&client.headers, &client.uri)).chain(sent);
    Secrets {
        settings_secrets: Arc::clone(&gateway.scrubber),
        request_secrets: Arc::new(Scrubber::new(all.flat_map(|(headers, uri)| find_secrets(headers, uri)))),
    }
}

/// Returns the text that identifies a conversation without a name: the first user message and the tools. The
/// system text is excluded, because it often contains a date.
fn conversation_key(request: &Request) -> String {
    let mut parts = vec![request.first_user_text().unwrap_or_default()];
    parts.extend(request.tools().into_iter().map(|tool| tool.name));
    parts.join("\n")
}

/// Returns a new request id. Ids are unique and sort by time.
pub(crate) fn new_request_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut noise = RandomState::new().build_hasher();
    noise.write_u64(COUNTER.fetch_add(1, Ordering::Relaxed));
    format!("em_{:011x}{:016x}", since_epoch.as_millis(), noise.finish())
}

/// Returns the session of a request. It is the hash of the credential with the client's own session id, or with the
/// beginning of the conversation.
fn session(credential: Option<&str>, conversation: &str) -> String {
    // The zero byte separates the credential from the session.
    let identity = [credential.unwrap_or_default().as_bytes(), &[0], conversation.as_bytes()].concat();
    let mut digits = sha256_hex(&identity);
    digits.truncate(SESSION_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_differ() {
        let ids: std::collections::BTreeSet<_> = (0..1_000).map(|_| new_request_id()).collect();
        assert_eq!(ids.len(), 1_000);
    }

    #[test]
    fn a_session_is_one_credential_and_one_conversation() {
        let one = session(Some("a"), "Hello");
        assert_eq!(one, session(Some("a"), "Hello"));
        assert_ne!(one, session(Some("b"), "Hello"));
        assert_ne!(one, session(Some("a"), "Good day"));
        assert_ne!(session(None, "x"), session(Some("x"), ""));
    }
}
