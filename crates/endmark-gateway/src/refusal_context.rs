//! Collects the facts about a request that may be refused, for the list of refused requests.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use endmark_store::{RefusedRequest, utc};
use endmark_wire::format::WireFormat;
use http::Response;

use crate::body::AnyBody;
use crate::gateway::Gateway;
use crate::refusals::{self, Refusal};
use crate::scrub::{Scrubber, Secrets};
use crate::stage::identify::new_request_id;
use crate::upstream::Credential;

/// The known facts about a request, and the format of its errors.
pub(crate) struct RefusalContext<'a> {
    gateway: &'a Gateway,
    format: &'static dyn WireFormat,
    refusal: RefusedRequest,
}

impl<'a> RefusalContext<'a> {
    /// Creates the context without any facts.
    pub(crate) fn new(gateway: &'a Gateway, format: &'static dyn WireFormat) -> Self {
        Self { gateway, format, refusal: RefusedRequest::default() }
    }

    /// Records the client's credential.
    pub(crate) fn set_credential(&mut self, credential: &Credential) {
        self.refusal.credential = Some(credential.id().to_owned());
    }

    /// Records the model that the request names, and the upstream.
    pub(crate) fn set_target(&mut self, model: Option<&str>, upstream: Option<&str>) {
        model.unwrap_or_default().clone_into(&mut self.refusal.model);
        upstream.unwrap_or_default().clone_into(&mut self.refusal.upstream);
    }

    /// Records the request's id and session.
    pub(crate) fn set_identity(&mut self, id: &str, session: &str) {
        id.clone_into(&mut self.refusal.request_id);
        session.clone_into(&mut self.refusal.session);
    }

    /// Answers with an error. If no upstream was called, adds the request to the list of refused requests, because it
    /// has no row of its own.
    pub(crate) fn refuse(&self, refusal: &Refusal) -> Response<AnyBody> {
        let id = self.refusal.request_id.as_str();
        let answer = match id {
            "" => refusals::respond(refusal, self.format),
            id => refusals::refusal_response(id, refusal, self.format),
        };
        if !refusal.is_after_call() {
            let id = if id.is_empty() { new_request_id() } else { id.to_owned() };
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let secrets = Secrets {
                settings_secrets: Arc::clone(&self.gateway.scrubber),
                request_secrets: Arc::new(Scrubber::new([""; 0])),
            };
            self.gateway.store.recorder(secrets).note_refusal(RefusedRequest {
                refused_at: utc(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)),
                request_id: id,
                status: answer.status().as_u16(),
                kind: refusal.error_type().to_owned(),
                message: refusals::safe_message(refusal),
                ..self.refusal.clone()
            });
        }
        answer
    }
}
