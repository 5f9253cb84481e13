//! An HTTP server that accepts connections, records requests, and answers them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::TEST_TIMEOUT;
use crate::http1::{BodyFraming, BufferedConnection, find_header};
use crate::script::Respond;
use crate::send::send;

/// A running server. Dropping it stops the server and closes its connections.
pub struct Upstream {
    address: SocketAddr,
    record: Arc<UpstreamRecord>,
    task: JoinHandle<()>,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The time at which the request was read completely.
    pub received_at: Instant,
    /// The method, in capitals.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The header fields in the order in which they arrived, with their original names.
    pub headers: Vec<(String, String)>,
    /// The body, without its transfer coding.
    pub body: Vec<u8>,
}

/// The outcome of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseOutcome {
    /// All bytes were written.
    Delivered,
    /// The scripted fault occurred.
    Faulted,
    /// The client closed or reset the connection before the end.
    ClientGone,
}

struct UpstreamRecord {
    exchanges: Mutex<Vec<(ReceivedRequest, Option<ResponseOutcome>)>>,
    connections: Mutex<usize>,
    changed: watch::Sender<()>,
}

impl ReceivedRequest {
    /// Returns the first field with this name, in upper or lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the request's body is JSON")
    }
}

impl Upstream {
    /// Starts on a free port.
    pub async fn start(respond: impl Respond) -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), respond).await
    }

    /// Starts on this address, for example to restart a stopped server.
    pub async fn start_at(address: SocketAddr, respond: impl Respond) -> Self {
        let listener = TcpListener::bind(address).await.expect("a loopback port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let record = Arc::new(UpstreamRecord {
            exchanges: Mutex::default(),
            connections: Mutex::default(),
            changed: watch::Sender::new(()),
        });
        let task = tokio::spawn(accept(listener, Arc::new(respond), Arc::clone(&record)));
        Self { address, record, task }
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL for a client: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns all requests, in the order in which they were read.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.record.exchanges.lock().unwrap().iter().map(|(request, _)| request.clone()).collect()
    }

    /// Returns the outcome of each request, or `None` while its response is being sent.
    pub fn outcomes(&self) -> Vec<Option<ResponseOutcome>> {
        self.record.exchanges.lock().unwrap().iter().map(|(_, outcome)| *outcome).collect()
    }

    /// Returns the number of accepted connections.
    pub fn connection_count(&self) -> usize {
        *self.record.connections.lock().unwrap()
    }

    /// Waits until this many requests have arrived.
    pub async fn wait_for_requests(&self, count: usize) {
        self.wait_until("requests", || self.outcomes().len() >= count).await;
    }

    /// Waits until the response to this request has ended, and returns its outcome. Requests are counted from
    /// 0.
    pub async fn wait_for_outcome(&self, request: usize) -> ResponseOutcome {
        let outcome = || self.outcomes().get(request).copied().flatten();
        self.wait_until("the outcome of a request", || outcome().is_some()).await;
        outcome().expect("there is one now")
    }

    /// Stops the server and closes all connections, as if the server were killed. Returns the requests when
    /// that is done.
    pub async fn stop(mut self) -> Vec<ReceivedRequest> {
        self.task.abort();
        // An error means that the task was aborted.
        let _ = (&mut self.task).await;
        self.requests()
    }

    async fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let mut changed = self.record.changed.subscribe();
        let waiting = async {
            while !is_so() {
                changed.changed().await.expect("the record is still there");
            }
        };
        assert!(timeout(TEST_TIMEOUT, waiting).await.is_ok(), "waited in vain for {what}");
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, respond: Arc<dyn Respond>, record: Arc<UpstreamRecord>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("a connection can be accepted");
        *record.connections.lock().unwrap() += 1;
        connections.spawn(converse(stream, Arc::clone(&respond), Arc::clone(&record)));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers the requests of a connection one after another, until the client or a response ends it.
async fn converse(stream: TcpStream, respond: Arc<dyn Respond>, record: Arc<UpstreamRecord>) {
    let mut wire = BufferedConnection::new(stream);
    while let Some(request) = read_request(&mut wire).await {
        let answer = respond.respond(&request);
        let number = {
            let mut exchanges = record.exchanges.lock().unwrap();
            exchanges.push((request, None));
            exchanges.len() - 1
        };
        record.changed.send_replace(());
        let (outcome, goes_on) = send(&mut wire.stream, &answer).await;
        record.exchanges.lock().unwrap()[number].1 = Some(outcome);
        record.changed.send_replace(());
        if !goes_on {
            return;
        }
    }
}

/// Reads a request. Returns `None` if the client disconnects before its end.
async fn read_request(wire: &mut BufferedConnection) -> Option<ReceivedRequest> {
    let head = wire.read_head().await.ok()??;
    let mut words = head.first_line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut body = head.body(BodyFraming::Length(0));
    let mut bytes = Vec::new();
    while let Some(part) = wire.read_part(&mut body).await.ok()? {
        bytes.extend_from_slice(&part);
    }
    Some(ReceivedRequest { received_at: Instant::now(), method, path, headers: head.headers, body: bytes })
}
