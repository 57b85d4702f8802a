//! Where a server may listen: anywhere with TLS, on loopback without, elsewhere only if told so.

use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::{Context, Result, bail};

use crate::settings::Settings;

/// The address to listen on, if the settings allow it.
pub fn address(settings: &Settings) -> Result<SocketAddr> {
    let mut addresses = settings.listen.to_socket_addrs().with_context(|| format!("listen: `{}` is not ADDRESS:PORT", settings.listen))?;
    let address = addresses.next().with_context(|| format!("listen: `{}` names no address", settings.listen))?;
    let safe = address.ip().is_loopback() || settings.tls_cert.is_some() || settings.insecure || settings.behind_proxy;
    if !safe {
        bail!(
            "{address} can be reached from other machines and API keys would cross the network in the clear: \
             use --tls-cert and --tls-key, or --behind-proxy if a proxy ends TLS, or --insecure"
        );
    }
    Ok(address)
}

/// What is amiss with the settings although a server may start with them, for whoever reads its log.
pub fn concern(settings: &Settings) -> Option<&'static str> {
    (settings.behind_proxy && settings.trusted_proxies.is_empty()).then_some(
        "behind_proxy is set and trusted_proxies is empty: every client has the proxy's address here, in the audit trail too, and all of them \
         share one limit of failed attempts; name the proxy's address in trusted_proxies",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Sources;

    fn settings(flags: &[(&'static str, &str)]) -> Settings {
        let flags = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Settings::load(&Sources { stored: Vec::new(), file: None, env: Vec::new(), flags }).expect("settings")
    }

    #[test]
    fn beyond_loopback_needs_tls_or_a_word() {
        assert!(address(&settings(&[])).is_ok());
        assert!(address(&settings(&[("listen", "[::1]:0")])).is_ok());
        let open = ("listen", "0.0.0.0:80");
        assert!(address(&settings(&[open])).is_err());
        assert!(address(&settings(&[open, ("insecure", "true")])).is_ok());
        assert!(address(&settings(&[open, ("behind_proxy", "true")])).is_ok());
        assert!(address(&settings(&[open, ("tls_cert", "a"), ("tls_key", "b")])).is_ok());
        assert!(address(&settings(&[("listen", "nonsense")])).is_err());
    }

    #[test]
    fn a_proxy_that_is_not_named_is_a_concern() {
        let behind = ("behind_proxy", "true");
        assert!(concern(&settings(&[behind])).is_some_and(|words| words.contains("trusted_proxies")));
        assert_eq!(concern(&settings(&[behind, ("trusted_proxies", "10.0.0.1")])), None);
        assert_eq!(concern(&settings(&[])), None);
    }
}
