//! Test helpers for both sides of a gateway: an upstream that follows a script and fails on command, a model
//! that writes a given text and behaves like real servers, and a client that returns every received byte.
//!
//! This crate implements HTTP/1.1 itself: a library would refuse to send half of these faults, and a client
//! that uses the library under test would share its bugs. Servers listen on a free port of the loopback
//! address. Every wait is limited to [`TEST_TIMEOUT`], and a failure panics.
//!
//! ```
//! use testkit::{Answer, Request, Script, Upstream, chat_reply};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let script = Script::new()
//!     .then(Answer::json(200, &chat_reply("Hello", "stop", (3, 1))))
//!     .then(Answer::rate_limited(2));
//! let upstream = Upstream::start(script).await;
//!
//! let reply = Request::get(upstream.address(), "/v1/models").send().await.read().await;
//! assert_eq!(reply.json()["choices"][0]["message"]["content"], "Hello");
//! let reply = Request::get(upstream.address(), "/v1/models").send().await.read().await;
//! assert_eq!((reply.status, reply.header("retry-after")), (429, Some("2")));
//! assert_eq!(upstream.requests()[1].path, "/v1/models");
//! # }
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]

mod answer;
mod chat;
mod client;
mod dialect;
pub mod exam;
mod http1;
mod model;
mod pgbouncer;
mod postgres;
mod proxy;
mod reading;
mod script;
mod send;
mod tcp_proxy;
mod tokens;
mod upstream;

use std::time::Duration;

pub use answer::{Answer, Fault};
pub use chat::{ChatFrames, chat_reply, chat_stream, chat_tool_reply, error_event};
pub use client::{OpenReply, Reply, Request};
pub use dialect::{AssembledReply, ModelFormat, ModelFormatAdapter};
pub use model::{PrefillBehaviour, PromptBehaviour, ScriptedModel};
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use proxy::{ForwardProxy, ProxiedRequest};
pub use reading::{
    AnsweredRequest, ContinuationStart, ContinuationStyle, ModelBehaviour, ReadingModel, ReadingModels,
    RepeatedReply, RequestKind, SeamDeviation,
};
pub use script::{Respond, Script};
pub use tcp_proxy::{LinkState, TcpProxy};
pub use tokens::tokens;
pub use upstream::{ReceivedRequest, ResponseOutcome, Upstream};

/// Time after which a waiting test fails, which is far more than a loaded machine needs.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);
