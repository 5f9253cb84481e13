//! Where the gateway listens, and whom it lets in.

use std::net::SocketAddr;
use std::path::PathBuf;

use endmark_setting::{Flag, Names, settings};

use super::USUAL_PORT;
use super::kinds::Address;
use crate::{HostName, OriginName};

const HOSTS: Names = Names {
    fits: |name| name.parse::<HostName>().is_ok(),
    expected: "host names, like [\"gateway.example.com\"]",
};

const ORIGINS: Names = Names {
    fits: |name| name.parse::<OriginName>().is_ok(),
    expected: "origins, like [\"https://app.example.com\"]",
};

settings! {
    /// Where the gateway listens, and whom it lets in.
    #[derive(Debug, Clone)]
    pub struct ListenerSettings {
        /// Address and port to listen on.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], USUAL_PORT)), Address;
        // Where none is named a listener on the loopback address serves this machine's names alone, and any other one every name.
        /// Hosts that requests may be sent to, beside this machine's own names; `*`: any.
        allowed_hosts: Vec<String> = Vec::new(), HOSTS;
        /// Origins of pages that may send requests, beside the gateway's own; `*`: any.
        allowed_origins: Vec<String> = Vec::new(), ORIGINS;
        /// Whether every client needs one of the gateway's own keys (endmark keys).
        require_key: bool = false, Flag;
    }
}

/// The files from which the listener gets its TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain of certificates in PEM, its own first.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}
