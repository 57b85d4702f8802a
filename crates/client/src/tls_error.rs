//! Why a TLS handshake failed, in words, and what to do about it. The library names its own types, which say nothing to a user.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
use rustls_pki_types::UnixTime;

/// What a failed handshake means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsTrouble {
    /// Why it failed.
    pub why: String,
    /// What to do next.
    pub advice: &'static str,
}

const TRUST: &str = "trust its CA with --ca-file FILE (RUNVOY_CA_FILE), or check the address";
const RENEW: &str = "renew the server's certificate, or correct the clock of this machine";
const RENAME: &str = "use a name that the certificate contains, or issue a certificate for this name";
const PLAIN: &str = "use http:// in the address, or start the server with --tls-cert and --tls-key";
const LOOK: &str = "check the address; the server's log says more";

impl std::fmt::Display for TlsTrouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.why, self.advice)
    }
}

impl TlsTrouble {
    /// What an error of the connection means; its own words where it is none of TLS.
    pub fn of_io(error: &io::Error) -> Self {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        match tls {
            Some(error) => Self::of(error),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::new("the server closed the connection during the TLS handshake: it may not speak TLS on this port", LOOK)
            }
            None => Self::new(error.to_string(), LOOK),
        }
    }

    /// What an error of the library means.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(error) => Self::of_certificate(error),
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion | InvalidMessage::MessageTooLarge,
            ) => Self::new("the server does not speak TLS on this port", PLAIN),
            Error::AlertReceived(AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure) | Error::PeerIncompatible(_) => {
                Self::new(
                    "the server offers neither TLS 1.2 nor TLS 1.3 with a cipher that is safe",
                    "update the server or the proxy before it",
                )
            }
            Error::AlertReceived(_) => Self::new("the server refused the TLS handshake", LOOK),
            Error::NoCertificatesPresented => Self::new("the server sent no certificate", LOOK),
            other => Self::new(other.to_string(), LOOK),
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer => Self::new("the server's certificate is signed by an unknown CA, or by itself", TRUST),
            CertificateError::Expired => Self::new("the server's certificate has expired", RENEW),
            CertificateError::ExpiredContext { not_after, .. } => {
                Self::new(format!("the server's certificate expired on {}", day(*not_after)), RENEW)
            }
            CertificateError::NotValidYet => Self::new("the server's certificate is not valid yet", RENEW),
            CertificateError::NotValidYetContext { not_before, .. } => {
                Self::new(format!("the server's certificate is only valid from {}", day(*not_before)), RENEW)
            }
            CertificateError::NotValidForName => Self::new("the server's certificate is for another name", RENAME),
            CertificateError::NotValidForNameContext { expected, presented } => {
                let names: Vec<String> = presented.iter().map(|name| plain_name(name)).collect();
                let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
                Self::new(format!("the server's certificate is for {names}, not for {}", expected.to_str()), RENAME)
            }
            CertificateError::Revoked => Self::new("the server's certificate was revoked", RENEW),
            CertificateError::BadSignature => {
                Self::new("the signature of the server's certificate is wrong: another CA has the same name", TRUST)
            }
            CertificateError::BadEncoding => Self::new("the server's certificate cannot be read", LOOK),
            error if is_ca_as_server(error) => Self::new(
                "the server uses the certificate of a CA as its own",
                "issue a server certificate, or trust exactly this one with --ca-file FILE",
            ),
            other => Self::new(other.to_string(), TRUST),
        }
    }

    fn new(why: impl Into<String>, advice: &'static str) -> Self {
        Self { why: why.into(), advice }
    }
}

/// Whether a server showed a CA's certificate as its own. The library has no other name for it.
pub(crate) fn is_ca_as_server(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(why) if why.0.to_string() == "CaUsedAsEndEntity")
}

/// `DnsName("a.example.com")` is a.example.com.
fn plain_name(name: &str) -> String {
    let inner = name.split_once("(").map_or(name, |(_, rest)| rest.trim_end_matches(')'));
    inner.trim_matches('"').to_owned()
}

fn day(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "an unknown day".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::OtherError;
    use rustls_pki_types::ServerName;

    use super::*;

    #[derive(Debug)]
    struct CaUsedAsEndEntity;
    impl std::fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("CaUsedAsEndEntity")
        }
    }
    impl std::error::Error for CaUsedAsEndEntity {}

    #[test]
    fn what_users_meet_is_told_in_words() {
        let time = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let certificate = |error| Error::InvalidCertificate(error);
        let name = ServerName::try_from("localhost").expect("a name");
        for (error, why) in [
            (certificate(CertificateError::UnknownIssuer), "unknown CA"),
            (certificate(CertificateError::ExpiredContext { time: time(2), not_after: time(1_767_450_139) }), "expired on 2026-01-03"),
            (certificate(CertificateError::NotValidYetContext { time: time(2), not_before: time(86_400) }), "valid from 1970-01-02"),
            (
                certificate(CertificateError::NotValidForNameContext {
                    expected: name,
                    presented: vec!["DnsName(\"runvoy.example.com\")".to_owned()],
                }),
                "is for runvoy.example.com, not for localhost",
            ),
            (certificate(CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)))), "certificate of a CA"),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "does not speak TLS"),
            (Error::AlertReceived(AlertDescription::InternalError), "refused the TLS handshake"),
        ] {
            let trouble = TlsTrouble::of(&error);
            assert!(trouble.why.contains(why), "{error:?}: {trouble:?}");
            assert!(!trouble.why.contains("Error") && !trouble.why.contains('('), "{trouble:?}");
            assert_eq!(TlsTrouble::of_io(&io::Error::new(io::ErrorKind::InvalidData, error)), trouble);
        }
        let cut_off = TlsTrouble::of_io(&io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof"));
        assert!(cut_off.why.contains("closed the connection"), "{cut_off:?}");
    }
}
