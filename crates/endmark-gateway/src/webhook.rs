//! Sends events to the user's URL: budgets that are nearly exhausted, and reports of supervised programs.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use ring::hmac;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::causes::with_causes;
use crate::settings::{BaseUrl, Secret, Upstream};
use crate::upstream::{ClientError, Connector};

/// Maximum events in the queue. Further events are dropped and logged.
const MAX_QUEUED_EVENTS: usize = 256;

/// The time limit of each attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// The pauses before a failed event is sent again.
const RETRY_DELAYS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];

/// The header with the HMAC-SHA256 of the body: `sha256=` and hexadecimal digits.
const SIGNATURE_HEADER: &str = "x-endmark-signature";

/// Sends events as JSON by POST, in order. The caller never waits. A failed event is retried if that may help, and
/// otherwise dropped and logged.
///
/// ```
/// use std::time::Duration;
/// use endmark_gateway::{Secret, Webhook};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let webhook = Webhook::new("http://127.0.0.1:9/hook?for=me", Some(Secret::new("shared".to_owned())))?;
/// webhook.send(&serde_json::json!({"event": "run_finished"}));
/// // Before the program ends: wait at most this long for what is still queued.
/// let all_sent = webhook.flush(Duration::from_millis(1)).await;
/// assert!(!all_sent, "no server listens there");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Webhook(Arc<WebhookState>);

struct WebhookState {
    sender: EventSender,
    queue: OnceLock<mpsc::Sender<Bytes>>,
    /// The number of events that are queued or being sent.
    pending: watch::Sender<usize>,
}

/// Sends the events for one URL.
#[derive(Clone)]
struct EventSender {
    client: legacy::Client<Connector, Full<Bytes>>,
    connector: Connector,
    address: Uri,
    secret: Option<Secret>,
    /// The pause before each retry.
    retry_delays: [Duration; 3],
}

/// Error of a webhook that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The URL is invalid. The error does not contain it, because it may contain a secret.
    #[error("the address of the webhook cannot be used ({0}): use one like https://example.com/hook")]
    Address(&'static str),
    /// Connections cannot be prepared.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl Webhook {
    /// Creates a webhook for this URL. Bodies are signed if there is a secret.
    ///
    /// # Errors
    /// [`WebhookError`] if the address cannot be used.
    pub fn new(address: &str, secret: Option<Secret>) -> Result<Self, WebhookError> {
        Self::with_retry_delays(address, secret, RETRY_DELAYS)
    }

    fn with_retry_delays(
        address: &str,
        secret: Option<Secret>,
        waits: [Duration; 3],
    ) -> Result<Self, WebhookError> {
        let address: Uri = address.parse().map_err(|_| WebhookError::Address("it is no URL"))?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) =
            (address.scheme_str(), address.authority())
        else {
            return Err(WebhookError::Address("it has no host, or is neither http nor https"));
        };
        let origin: BaseUrl = format!("{scheme}://{authority}")
            .parse()
            .map_err(|_| WebhookError::Address("its host cannot be used"))?;
        let connector = Connector::new(&Upstream::new("webhook", origin))?;
        let client = legacy::Client::builder(TokioExecutor::new()).build(connector.clone());
        let sender = EventSender { client, connector, address, secret, retry_delays: waits };
        Ok(Self(Arc::new(WebhookState { sender, queue: OnceLock::new(), pending: watch::Sender::new(0) })))
    }

    /// Queues an event and returns at once. Requires a tokio runtime.
    pub fn send(&self, event: &Value) {
        let queue = self.0.queue.get_or_init(|| {
            let (queue, events) = mpsc::channel(MAX_QUEUED_EVENTS);
            tokio::spawn(deliver(self.0.sender.clone(), events, self.0.pending.clone()));
            queue
        });
        self.0.pending.send_modify(|pending| *pending += 1);
        if queue.try_send(event.to_string().into()).is_err() {
            self.0.pending.send_modify(|pending| *pending -= 1);
            tracing::warn!("an event for the webhook is lost: {MAX_QUEUED_EVENTS} of them wait already");
        }
    }

    /// Waits until all queued events were sent or dropped, but no longer than `within`. Returns `false` if
    /// some events were still pending.
    pub async fn flush(&self, within: Duration) -> bool {
        let mut pending = self.0.pending.subscribe();
        tokio::time::timeout(within, pending.wait_for(|pending| *pending == 0))
            .await
            .is_ok_and(|done| done.is_ok())
    }
}

/// Sends events one after another, until the queue is closed.
async fn deliver(sender: EventSender, mut events: mpsc::Receiver<Bytes>, pending: watch::Sender<usize>) {
    while let Some(event) = events.recv().await {
        let mut waits = sender.retry_delays.into_iter();
        while let Err(failed) = sender.attempt(&event).await {
            let wait = waits.next().filter(|_| failed.may_retry);
            let Some(wait) = wait else {
                tracing::warn!(
                    host = sender.address.host(),
                    why = failed.reason,
                    "an event for the webhook is dropped"
                );
                break;
            };
            tokio::time::sleep(wait).await;
        }
        pending.send_modify(|pending| *pending -= 1);
    }
}

/// Why an event could not be delivered.
struct DeliveryFailure {
    reason: String,
    /// Whether a retry may help.
    may_retry: bool,
}

impl EventSender {
    async fn attempt(&self, event: &Bytes) -> Result<(), DeliveryFailure> {
        let broken = |why: String| DeliveryFailure { reason: why, may_retry: true };
        let mut request = Request::new(Full::new(event.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.address.clone();
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        if let Some(secret) = &self.secret
            && let Ok(signature) = signature(secret, event).parse()
        {
            headers.insert(SIGNATURE_HEADER, signature);
        }
        if let Some(authorization) = self.connector.proxy_authorization() {
            headers.insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| broken(with_causes(&error)))?;
            let status = answer.status();
            // Read the body so that the connection can be reused. Its content does not matter.
            drop(answer.into_body().frame().await);
            if status.is_success() {
                return Ok(());
            }
            let may_pass = status.is_server_error()
                || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
            Err(DeliveryFailure { reason: format!("it answered {status}"), may_retry: may_pass })
        };
        tokio::time::timeout(ATTEMPT_TIMEOUT, exchange)
            .await
            .unwrap_or_else(|_| Err(broken(format!("no answer within {ATTEMPT_TIMEOUT:?}"))))
    }
}

fn signature(secret: &Secret, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes());
    let digits = hmac::sign(&key, body);
    digits.as_ref().iter().fold("sha256=".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Webhook").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use testkit::{Answer, Script, Upstream};

    use super::*;

    #[test]
    fn a_signature_follows_the_webhook_standard() {
        // RFC 4231, test case 2.
        assert_eq!(
            signature(&Secret::new("Jefe".to_owned()), b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        for address in ["", "example.com/hook", "ftp://example.com/", "https:///x"] {
            assert!(matches!(Webhook::new(address, None), Err(WebhookError::Address(_))), "{address}");
        }
    }

    #[tokio::test]
    async fn events_arrive_in_order_and_retryable_failures_are_retried() {
        let status = |status| Answer::json(status, &Value::Null);
        let script =
            Script::new().then(status(503)).then(status(200)).then(status(400)).default_answer(status(200));
        let receiver = Upstream::start(script).await;
        let address = format!("http://{}/hook?token=t", receiver.address());
        let webhook =
            Webhook::with_retry_delays(&address, Some(Secret::new("s".to_owned())), [Duration::ZERO; 3])
                .unwrap();
        for number in 1..=3 {
            webhook.send(&serde_json::json!({"number": number}));
        }
        assert!(webhook.flush(Duration::from_mins(1)).await);
        let requests = receiver.requests();
        let numbers: Vec<Value> = requests.iter().map(|request| request.json()["number"].clone()).collect();
        assert_eq!(numbers, [1, 1, 2, 3], "again after a 503, and not after a 400");
        assert!(requests.iter().all(|request| request.path == "/hook?token=t"));
        let signed = signature(&Secret::new("s".to_owned()), &requests[0].body);
        assert_eq!(requests[0].header(SIGNATURE_HEADER), Some(signed.as_str()));
    }
}
