//! The address that messages are posted to, and one request to it.
//!
//! The name is looked up once per request, every address found is judged, and the connection goes to an address that was judged: a name that leads
//! elsewhere the next time leads nowhere. Redirects are not followed. The path is a secret and is in no error.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use runvoy_model::address::is_public;
use runvoy_model::git::Reach;
use runvoy_ports::alert::AlertError;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// So much of an answer is read.
const MOST_READ: usize = 4 << 10;

/// What Slack says of a message that it does not take. Nothing else of an answer is ever told: whatever a server says may repeat the path that
/// it was asked for, and that is the secret.
const KNOWN_WORDS: [&str; 21] = [
    "action_prohibited",
    "channel_is_archived",
    "channel_not_found",
    "invalid_attachments",
    "invalid_blocks",
    "invalid_blocks_format",
    "invalid_payload",
    "invalid_token",
    "message_limit_exceeded",
    "missing_text_or_fallback_or_attachments",
    "msg_too_long",
    "no_service",
    "no_service_id",
    "no_team",
    "no_text",
    "posting_to_general_channel_denied",
    "rate_limited",
    "rollup_error",
    "team_disabled",
    "too_many_attachments",
    "user_not_found",
];

/// An address that no message can be posted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidWebhook(&'static str);

/// Where messages are posted to.
pub(crate) struct Webhook {
    tls: Option<TlsConnector>,
    host: String,
    port: u16,
    path: PathAndQuery,
    reach: Reach,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The body, if it is a word that is known.
    pub(crate) said: Option<&'static str>,
}

impl Webhook {
    pub(crate) fn new(url: &str, reach: Reach) -> Result<Self, InvalidWebhook> {
        let uri: Uri = url.trim().parse().map_err(|_| InvalidWebhook("is not an address"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if reach == Reach::Private => false,
            Some("http") => return Err(InvalidWebhook("must begin with https://, unless private addresses are allowed")),
            _ => return Err(InvalidWebhook("must begin with https://")),
        };
        let authority = uri.authority().ok_or(InvalidWebhook("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(InvalidWebhook("must not hold a user or a password"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(InvalidWebhook("has no host"));
        }
        if host.parse::<IpAddr>().is_ok_and(|address| reach == Reach::Public && !is_public(address)) {
            return Err(InvalidWebhook("is on this machine or in a private network, which alerts.allow_private_addresses would allow"));
        }
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { tls: is_tls.then(system_trust), host, port, path, reach })
    }

    /// The host, which is no secret.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Posts JSON. Nothing limits the time that this takes.
    pub(crate) async fn post(&self, body: &Value) -> Result<Answer, AlertError> {
        let stream = self.connect().await?;
        match &self.tls {
            None => self.exchange(stream, body).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(|error| self.failed("is no name for a certificate", error))?;
                let stream = tls.connect(name, stream).await.map_err(|error| self.failed("is not trusted", error))?;
                self.exchange(stream, body).await
            }
        }
    }

    async fn connect(&self) -> Result<TcpStream, AlertError> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await.map_err(|error| self.failed("is not found", error))?;
        let found: Vec<SocketAddr> = found.collect();
        let allowed: Vec<SocketAddr> = found.iter().copied().filter(|address| self.allows(*address)).collect();
        if allowed.is_empty() && !found.is_empty() {
            let why = "leads to this machine or a private network: alerts.allow_private_addresses would allow that";
            return Err(AlertError::new(format!("{} {why}", self.host)));
        }
        TcpStream::connect(&allowed[..]).await.map_err(|error| self.failed("cannot be reached", error))
    }

    fn allows(&self, address: SocketAddr) -> bool {
        self.reach == Reach::Private || is_public(address.ip())
    }

    async fn exchange<S>(&self, stream: S, body: &Value) -> Result<Answer, AlertError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broken = |error| self.failed("broke off", error);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let request = Request::post(self.path.as_str())
            .header(HOST, self.authority())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("runvoy/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body.to_string())))
            .expect("a path that was parsed and constant headers make a request");
        // The connection lives as long as this exchange: dropping it, at a time limit too, closes it.
        let exchange = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            let (parts, body) = response.into_parts();
            // An answer that is too long or breaks off has said enough with its status.
            let said = Limited::new(body, MOST_READ).collect().await.map(|said| said.to_bytes()).unwrap_or_default();
            Ok(Answer { status: parts.status, headers: parts.headers, said: known_word(&said) })
        };
        tokio::pin!(connection, exchange);
        tokio::select! {
            biased;
            answer = &mut exchange => answer,
            ended = &mut connection => match ended {
                Err(error) => Err(broken(error)),
                Ok(()) => exchange.await,
            },
        }
    }

    fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.tls.is_some() { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    fn failed(&self, what: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> AlertError {
        let source = source.into();
        AlertError { message: format!("{} {what}: {source}", self.host), retry_after: None, source: Some(source) }
    }
}

fn known_word(said: &[u8]) -> Option<&'static str> {
    KNOWN_WORDS.into_iter().find(|word| word.as_bytes() == said.trim_ascii())
}

fn system_trust() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    // A damaged system certificate only matters if it is the one that is needed, and then the handshake says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    connector(roots)
}

fn connector(roots: RootCertStore) -> TlsConnector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring serves the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::{CertificateDer, PrivateKeyDer};
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    fn why(url: &str, reach: Reach) -> &'static str {
        Webhook::new(url, reach).err().map_or("", |error| error.0)
    }

    #[test]
    fn security_23_only_an_address_that_may_be_posted_to_is_taken() {
        assert_eq!(why("https://hooks.example.com/services/T/B/x", Reach::Public), "");
        assert_eq!(why("http://127.0.0.1:9/x", Reach::Private), "");
        assert!(why("http://hooks.example.com/x", Reach::Public).contains("https://"));
        assert!(why("ftp://hooks.example.com/x", Reach::Private).contains("https://"));
        assert!(why("https://me:pw@hooks.example.com/x", Reach::Public).contains("password"));
        assert!(why("not an address", Reach::Public).contains("address"));
        for private in ["127.0.0.1", "10.0.0.8", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "[fd00::1]"] {
            assert!(why(&format!("https://{private}/x"), Reach::Public).contains("private network"), "{private}");
            assert_eq!(why(&format!("https://{private}/x"), Reach::Private), "", "{private}");
        }
    }

    #[tokio::test]
    async fn security_23_a_name_that_leads_to_this_machine_is_not_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        for spelling in ["localhost", "2130706433", "0x7f000001", "127.1"] {
            let webhook = Webhook::new(&format!("https://{spelling}:{port}/secret-path"), Reach::Public).expect("a name");
            let error = webhook.post(&json!({})).await.expect_err("refused").to_string();
            assert!(!error.contains("secret-path"), "{error}");
        }
        let none = tokio::time::timeout(std::time::Duration::from_millis(50), listener.accept()).await;
        assert!(none.is_err(), "somebody connected");
    }

    #[tokio::test]
    async fn a_message_goes_through_tls_and_only_to_who_is_trusted() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let certificate: CertificateDer<'static> = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .expect("a server");
        let (acceptor, listener) = (TlsAcceptor::from(Arc::new(server)), TcpListener::bind("127.0.0.1:0").await.expect("a port"));
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = [0; 4096];
                let read = stream.read(&mut request).await.unwrap_or(0);
                assert!(request[..read].starts_with(b"POST /path?x=1 HTTP/1.1\r\n"));
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.ok();
                stream.shutdown().await.ok();
            }
        });
        let url = format!("https://localhost:{port}/path?x=1");
        let mut webhook = Webhook::new(&url, Reach::Private).expect("an address");
        let error = webhook.post(&json!({})).await.expect_err("nobody knows the certificate").to_string();
        assert!(error.contains("is not trusted"), "{error}");
        let mut roots = RootCertStore::empty();
        roots.add(certificate).expect("a root");
        webhook.tls = Some(connector(roots));
        let answer = webhook.post(&json!({})).await.expect("an answer");
        assert_eq!((answer.status, answer.said), (StatusCode::OK, None));
    }
}
