//! Test helpers for both sides of a gateway: an upstream that answers by script and fails on command, a model that
//! knows its text and behaves as real servers do, and a client that shows every received byte.
//!
//! HTTP/1.1 is implemented here on purpose: a library would refuse to send half of these faults, and a client built on
//! the library under test would share its bugs. Servers listen on a free port of the loopback address. Every wait is
//! limited to [`TEST_TIMEOUT`], and a failure panics.
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
pub use dialect::{Dialect, DialectAdapter, Heard};
pub use model::{Prefill, Prompted, ScriptedModel};
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use proxy::{ForwardProxy, ProxiedRequest};
pub use reading::{Asks, Begins, Call, Library, Manner, ReadingModel, RepeatedReply, Seam, Style};
pub use script::{Respond, Script};
pub use tcp_proxy::{Link, TcpProxy};
pub use tokens::tokens;
pub use upstream::{Outcome, Received, Upstream};

/// The longest wait before a test fails, far more than a loaded machine needs.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);
