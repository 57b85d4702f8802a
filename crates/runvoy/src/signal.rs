//! The signals that stop a server: the first asks, the second insists.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for signals.
pub struct Stops {
    term: Signal,
    int: Signal,
    /// Absent where whoever started the server had it ignored, as `nohup` does.
    hangup: Option<Signal>,
}

impl Stops {
    /// Begins to catch them.
    pub fn catch() -> Result<Self> {
        let catch = |kind| signal(kind).context("cannot catch signals");
        let hangup = if is_ignored(libc::SIGHUP) { None } else { Some(catch(SignalKind::hangup())?) };
        Ok(Self { term: catch(SignalKind::terminate())?, int: catch(SignalKind::interrupt())?, hangup })
    }

    /// Comes back with the next one.
    pub async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
            _ = hangup => {}
        }
    }
}

#[expect(unsafe_code, reason = "how a signal is handled cannot be asked in std")]
fn is_ignored(signal: libc::c_int) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only fills the buffer, which is large enough and read only after success.
    unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) == 0 && now.assume_init().sa_sigaction == libc::SIG_IGN }
}
