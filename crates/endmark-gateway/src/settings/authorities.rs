//! Certificate authorities that are trusted in addition to the system's.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Certificate authorities for upstreams, in addition to those of the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorities(Vec<CertificateDer<'static>>);

/// Error for a file without usable certificate authorities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthoritiesError {
    /// The file is not PEM.
    #[error(
        "it is not PEM ({0}): it must hold certificates between -----BEGIN CERTIFICATE----- and -----END CERTIFICATE-----"
    )]
    NotPem(String),
    /// The file contains no certificate.
    #[error(
        "it contains no certificate: look for -----BEGIN CERTIFICATE-----; a key or a request does not count"
    )]
    None,
    /// A certificate cannot be used.
    #[error("its certificate {number} cannot be used: {why}")]
    Unusable {
        /// The number of the certificate in the file, from 1.
        number: usize,
        /// Why the certificate cannot be used.
        why: String,
    },
}

impl Authorities {
    /// Reads the certificates of a PEM file.
    ///
    /// # Errors
    /// [`AuthoritiesError`] for a file without usable certificates.
    pub fn from_pem(pem: &[u8]) -> Result<Self, AuthoritiesError> {
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| AuthoritiesError::NotPem(error.to_string()))?;
        if certificates.is_empty() {
            return Err(AuthoritiesError::None);
        }
        let mut store = RootCertStore::empty();
        for (index, certificate) in certificates.iter().enumerate() {
            store
                .add(certificate.clone())
                .map_err(|error| AuthoritiesError::Unusable { number: index + 1, why: error.to_string() })?;
        }
        Ok(Self(certificates))
    }

    /// Returns the authorities of both lists.
    #[must_use]
    pub fn merged_with(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }

    pub(crate) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0
    }
}
