//! TLS on the listener: a certificate and its key from two files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use endmark_process::{MAX_WRITTEN_BYTES, read_regular};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::settings::TlsFiles;

/// Error of a listener that cannot use TLS. Each message contains the file and the next step.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or is not PEM.
    #[error("the {what} `{}` cannot be read: {why}", path.display())]
    Unreadable {
        /// The kind of the file: the certificate or the key.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// Why the file cannot be used.
        why: String,
    },
    /// The file contains no certificate.
    #[error("the certificate `{}` has no CERTIFICATE section: give it the chain in PEM, its own certificate first", .0.display())]
    NoCertificate(PathBuf),
    /// The certificate and the key do not match, or have an unsupported type.
    #[error("the certificate `{}` cannot be used with the key `{}`: {why}", certificate.display(), key.display())]
    Unusable {
        /// The path of the certificate's file.
        certificate: PathBuf,
        /// The path of the key's file.
        key: PathBuf,
        /// Why the pair cannot be used.
        why: String,
    },
}

/// Creates the acceptor for TLS connections.
///
/// # Errors
/// [`TlsError`] if the files cannot be used.
pub(crate) fn new_acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let certificates = read_certificates(&files.certificate)?;
    let pem = read_file("key", &files.key)?;
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| TlsError::Unreadable {
        what: "key",
        path: files.key.clone(),
        why: match error {
            rustls::pki_types::pem::Error::NoItemsFound => "it has no PRIVATE KEY section".to_owned(),
            other => other.to_string(),
        },
    })?;
    let unusable = |why: rustls::Error| TlsError::Unusable {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        why: match why {
            rustls::Error::InconsistentKeys(_) => "they do not belong together".to_owned(),
            other => other.to_string(),
        },
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read_file(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    read_regular(path, MAX_WRITTEN_BYTES).map_err(|error| TlsError::Unreadable {
        what,
        path: path.to_owned(),
        why: error.to_string(),
    })
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |error: rustls::pki_types::pem::Error| TlsError::Unreadable {
        what: "certificate",
        path: path.to_owned(),
        why: error.to_string(),
    };
    let pem = read_file("certificate", path)?;
    let sections = CertificateDer::pem_slice_iter(&pem);
    let certificates = sections.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate(path.to_owned()));
    }
    Ok(certificates)
}
