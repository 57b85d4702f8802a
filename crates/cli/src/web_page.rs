//! The web page of an execution: its address, and opening it in a browser.

use std::process::{Command, Stdio};
use std::time::Duration;

use runvoy_client::{Client, Endpoint};
use tokio::time::sleep;

use crate::failure::Failure;
use crate::global::Format;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::terminal::Tone;

/// The program that opens an address in the user's browser.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
/// How long the opener may take to fail: one that runs longer is a browser in the foreground.
const OPENER_LIMIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// The address of an execution's page: below the `web_url` of the client, else as the server says
/// (`told`), else at the server's own address. `None` for a server that has no page.
pub(crate) fn address(session: &Session, client: &Client, id: &str, told: Option<&str>) -> Option<String> {
    let configured = session.settings.web_url.value.as_deref();
    let address = match (configured, told, client.endpoint()) {
        (Some(web_url), ..) => below(web_url, id),
        (None, Some(told), _) => told.to_owned(),
        (None, None, endpoint @ Endpoint::Tcp { .. }) => format!("{endpoint}/logs?execution_id={id}"),
        (None, None, Endpoint::Unix(_)) => return None,
    };
    is_web(&address).then(|| one_line(&address))
}

/// Says once, on stderr, where the page is. A program that reads JSON is not told: it has `log_url`.
pub(crate) fn note(session: &Session, address: Option<&str>) {
    if let Some(address) = address.filter(|_| session.format() == Format::Table) {
        session.note(Tone::Dim, &format!("### runvoy: web page: {address}"));
    }
}

/// Opens the page in a browser; where there is none to open it with, prints its address.
pub(crate) async fn open(session: &Session, address: Option<&str>) -> Result<(), Failure> {
    let Some(address) = address else {
        return Err(Failure::usage("the address of the web page is not known")
            .why("the server listens on its local socket only, and `web_url` is not set")
            .next("set it: RUNVOY_WEB_URL=URL, or runvoy configure --web-url URL"));
    };
    match start_browser(address).await {
        true => session.note(Tone::Plain, &format!("Opened {address} in your browser.")),
        false => session.tell(&format!("Open this page in a browser: {address}")),
    }
    Ok(())
}

/// Whether a browser was started.
async fn start_browser(address: &str) -> bool {
    let mut opener = Command::new(OPENER);
    opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = opener.spawn() else { return false };
    for _ in 0..OPENER_LIMIT.as_millis() / POLL.as_millis() {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => sleep(POLL).await,
            Err(_) => return false,
        }
    }
    true
}

/// The page of an execution below the address of the page, which may be a file or a directory.
fn below(web_url: &str, id: &str) -> String {
    match web_url.ends_with(".html") {
        true => format!("{web_url}?execution_id={id}"),
        false => format!("{}/?execution_id={id}", web_url.trim_end_matches('/')),
    }
}

/// Only such an address is handed to another program.
fn is_web(address: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| address.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_be_a_file_or_a_directory() {
        assert_eq!(below("https://x/page/", "01"), "https://x/page/?execution_id=01");
        assert_eq!(below("https://x", "01"), "https://x/?execution_id=01");
        assert_eq!(below("https://x/index.html", "01"), "https://x/index.html?execution_id=01");
    }

    #[test]
    fn only_web_addresses_are_opened() {
        assert!(is_web("https://x") && is_web("http://x"));
        assert!(!is_web("file:///etc/passwd") && !is_web("--help") && !is_web("/logs?execution_id=01"));
    }
}
