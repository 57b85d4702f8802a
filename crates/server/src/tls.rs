//! The server's certificate, from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("{what} in {} cannot be read", path.display())]
    File {
        /// Certificate or key.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// There is no certificate in the file.
    #[error("no certificate in {}", .0.display())]
    NoCertificate(PathBuf),
    /// Certificate and key do not belong together, or are of an unknown kind.
    #[error("certificate and key cannot be used")]
    Unusable(#[source] rustls::Error),
}

/// What speaks TLS with clients.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let unreadable = |what, path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::File { what, path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate).map_err(unreadable("the certificate", certificate))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(unreadable("the certificate", certificate))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(certificate.to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable("the key", key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let mut config = config.map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
