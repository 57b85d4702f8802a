//! Whom to trust: the system's certificates, and one more CA file where it is given. What is in that file may also be a server's own certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::TlsConnector;

use crate::error::ClientError;
use crate::tls_error::is_ca_as_server;

/// A connector that trusts the system's certificates and those in `ca_file`, and speaks HTTP/1.1.
pub(crate) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, ClientError> {
    let mut config = tls_config(ca_file)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// What trusts the system's certificates and those in `ca_file`, for others who talk to a server.
pub fn tls_config(ca_file: Option<&Path>) -> Result<ClientConfig, ClientError> {
    let (mut roots, mut named) = (RootCertStore::empty(), Vec::new());
    // A damaged system certificate only matters if it is the one that is needed, and then the handshake says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let invalid = |why: String| ClientError::Invalid { what: "CA file", why: format!("{}: {why}", path.display()) };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| invalid(error.to_string()))? {
            let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
            roots.add(certificate.clone()).map_err(|error| invalid(error.to_string()))?;
            named.push(certificate);
        }
        if named.is_empty() {
            return Err(invalid("it holds no certificate in PEM form".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring serves the default versions");
    if named.is_empty() {
        return Ok(config.with_root_certificates(roots).with_no_client_auth());
    }
    let verifier = Arc::new(Verifier::new(roots, named, provider));
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Trusts as usual, and also a server whose very certificate is in the CA file although it is a CA's: the self-signed ones that everybody makes
/// are.
#[derive(Debug)]
struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Verifier {
    fn new(roots: RootCertStore, named: Vec<CertificateDer<'static>>, provider: Arc<CryptoProvider>) -> Self {
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Self { usual: usual.expect("what is named is among the roots"), named }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let is_named = || self.named.iter().any(|named| named.as_ref() == end_entity.as_ref());
        match self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(error) if is_of_ca(&error) && is_named() => {
                // Its time was looked at before that was found; its name would have been after it.
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Whether a server showed a CA's certificate as its own, and nothing else was found before.
fn is_of_ca(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(error) if is_ca_as_server(error))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A self-signed certificate as `openssl req -x509` makes it, good for ten years.
    fn made() -> CertificateDer<'static> {
        let mut params = rcgen::CertificateParams::new(["runvoy.example.com".to_owned()]).expect("a name");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2030, 1, 1));
        params.self_signed(&rcgen::KeyPair::generate().expect("a key")).expect("a certificate").der().clone()
    }

    #[test]
    fn a_self_signed_certificate_is_trusted_where_it_is_named_for_its_name_and_its_time() {
        let (own, other) = (made(), made());
        let mut roots = RootCertStore::empty();
        roots.add(own.clone()).expect("a root");
        let verifier = Verifier::new(roots, vec![own.clone()], Arc::new(rustls::crypto::ring::default_provider()));
        let year = |year: u64| UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_557_600));
        for (shown, name, now, trusted) in [
            (&own, "runvoy.example.com", year(2026), true),
            (&own, "evil.example.com", year(2026), false),
            (&own, "runvoy.example.com", year(2031), false),
            (&own, "runvoy.example.com", year(2019), false),
            (&other, "runvoy.example.com", year(2026), false),
        ] {
            let server = ServerName::try_from(name).expect("a name");
            assert_eq!(verifier.verify_server_cert(shown, &[], &server, &[], now).is_ok(), trusted, "{name} {now:?}");
        }
    }
}
