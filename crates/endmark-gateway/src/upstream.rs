//! Calls to upstreams: the client, and the headers that go there and come back.

mod client;
mod headers;

pub(crate) use client::{Client, ClientError, ReadError, UpstreamError, read_whole};
pub(crate) use headers::{for_upstream, from_upstream};
