//! Whom to trust: the system's certificates, and one more CA file where it is given.

use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio_rustls::TlsConnector;

use crate::error::ClientError;

/// A connector that trusts the system's certificates and those in `ca_file`, and speaks HTTP/1.1.
pub(crate) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, ClientError> {
    let mut config = tls_config(ca_file)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// What trusts the system's certificates and those in `ca_file`, for whoever else talks to a server.
pub fn tls_config(ca_file: Option<&Path>) -> Result<ClientConfig, ClientError> {
    let mut roots = RootCertStore::empty();
    // A damaged system certificate only matters if it is the one that is needed, and then the handshake says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let invalid = |why: String| ClientError::Invalid { what: "CA file", why: format!("{}: {why}", path.display()) };
        let mut found = 0;
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| invalid(error.to_string()))? {
            let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
            roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
            found += 1;
        }
        if found == 0 {
            return Err(invalid("it holds no certificate in PEM form".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring serves the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth())
}
