//! Settings of the listener: its address, and the clients that it admits.

use std::net::SocketAddr;
use std::path::PathBuf;

use endmark_setting::{Flag, Names, settings};

use super::DEFAULT_PORT;
use super::value_types::ListenAddress;
use crate::{HostName, OriginName};

const ALLOWED_HOST_NAMES: Names = Names {
    accepts_name: |name| name.parse::<HostName>().is_ok(),
    expected: "host names, like [\"gateway.example.com\"]",
};

const ALLOWED_ORIGIN_NAMES: Names = Names {
    accepts_name: |name| name.parse::<OriginName>().is_ok(),
    expected: "origins, like [\"https://app.example.com\"]",
};

settings! {
    /// Where the gateway listens, and which clients it admits.
    #[derive(Debug, Clone)]
    pub struct ListenerSettings {
        /// Address and port to listen on.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)), ListenAddress;
        // If the list is empty, a listener on the loopback address accepts only the names of this machine. Any other
        // listener accepts every name.
        /// Hosts to which requests may be sent, in addition to this machine's own names; `*`: any.
        allowed_hosts: Vec<String> = Vec::new(), ALLOWED_HOST_NAMES;
        /// Origins of pages that may send requests, in addition to the gateway's own; `*`: any.
        allowed_origins: Vec<String> = Vec::new(), ALLOWED_ORIGIN_NAMES;
        /// Whether every client needs one of the gateway's own keys (endmark keys).
        require_key: bool = false, Flag;
    }
}

/// The listener's TLS files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain of certificates in PEM, starting with the listener's own.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}
