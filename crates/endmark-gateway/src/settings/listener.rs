//! What the listener needs beside its address.

use std::path::PathBuf;

/// The files from which the listener gets its TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain of certificates in PEM, its own first.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}
