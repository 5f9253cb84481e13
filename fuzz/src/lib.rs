//! Properties that must hold for any input bytes. Each module is a target: a plain function that panics if a
//! property does not hold.
//!
//! The functions do not depend on a fuzzer, so `cargo test` can replay the committed corpora with any
//! toolchain (`tests/replay.rs`).

pub mod agents;
pub mod anthropic_messages;
pub mod cap;
pub mod complete;
pub mod conversation;
pub mod detect;
pub mod differential;
pub mod edits;
pub mod envelope;
pub mod findings;
mod formats;
pub mod gemini;
pub mod guard;
pub mod http1;
mod input;
pub mod json;
pub mod openai_responses;
pub mod pipeline;
pub mod request;
pub mod response;
pub mod sse;
pub mod state;
pub mod stitch;
pub mod stream;

/// Checks an input, and panics if a property does not hold.
pub type Check = fn(&[u8]);

/// All targets, each with the name of its corpus.
pub const TARGETS: &[(&str, Check)] = &[
    ("agents", agents::check),
    ("anthropic_messages", anthropic_messages::check),
    ("cap", cap::check),
    ("complete", complete::check),
    ("conversation", conversation::check),
    ("detect", detect::check),
    ("differential", differential::check),
    ("edits", edits::check),
    ("envelope", envelope::check),
    ("findings", findings::check),
    ("http1", http1::check),
    ("gemini", gemini::check),
    ("guard", guard::check),
    ("json", json::check),
    ("openai_responses", openai_responses::check),
    ("pipeline", pipeline::check),
    ("request", request::check),
    ("response", response::check),
    ("sse", sse::check),
    ("state", state::check),
    ("stitch", stitch::check),
    ("stream", stream::check),
];
