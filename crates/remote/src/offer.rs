//! Leases as a server hands them out: read from its stream and understood. Begins none of them.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use runvoy_model::execution::Execution;
use runvoy_model::spec::Spec;
use runvoy_ports::clock::Clock;
use runvoy_rpc::job::v1::DequeueJobResponse;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::fault::Fault;

/// What is on its way when no more is wanted has this long to come: nobody else is given it before its lease has lapsed.
const LINGER: Duration = Duration::from_millis(200);

/// A lease as it was handed out.
pub(crate) struct Offer {
    pub(crate) token: String,
    pub(crate) execution: Execution,
    pub(crate) spec: Spec,
    pub(crate) since: Since,
}

/// Of a message that no lease can be read from its token, and why not.
pub(crate) type Unreadable = (String, String);

/// Reads what is handed out, each within a time, to the end of it or until no more is wanted. What has come by then is good, and is for the caller to begin or
/// to hand back.
pub(crate) async fn read(
    mut messages: BoxStream<'_, Result<DequeueJobResponse, Fault>>,
    within: Duration,
    clock: &dyn Clock,
    mut closing: watch::Receiver<bool>,
) -> Result<Vec<Result<Offer, Unreadable>>, Fault> {
    let mut offers = Vec::new();
    loop {
        let is_closing = *closing.borrow_and_update();
        let message = tokio::select! {
            biased;
            message = timeout(if is_closing { LINGER } else { within }, messages.next()) => message,
            Ok(()) = closing.changed() => continue,
        };
        match message {
            Ok(Some(Ok(message))) => offers.push(offer(message, Since::now(clock))),
            Ok(None) => return Ok(offers),
            Ok(Some(Err(_))) | Err(_) if is_closing || !offers.is_empty() => return Ok(offers),
            Ok(Some(Err(fault))) => return Err(fault),
            Err(_) => return Err(Fault::Away("no answer to a request for work".to_owned())),
        }
    }
}

/// Understands a lease.
fn offer(message: DequeueJobResponse, since: Since) -> Result<Offer, Unreadable> {
    let read = || -> Result<(Execution, Spec), serde_json::Error> {
        Ok((serde_json::from_slice(&message.execution)?, serde_json::from_slice(&message.spec)?))
    };
    match read() {
        Ok((execution, spec)) if execution.lease.is_some() => Ok(Offer { token: message.task_token, execution, spec, since }),
        Ok(_) => Err((message.task_token, "it holds no lease".to_owned())),
        Err(error) => Err((message.task_token, error.to_string())),
    }
}

/// A moment, by the clock that stands still while the machine sleeps, and how long it had slept by then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since {
    at: Instant,
    asleep: Duration,
}

impl Since {
    pub(crate) fn now(clock: &dyn Clock) -> Self {
        Self { at: Instant::now(), asleep: clock.asleep() }
    }

    /// The same moment for whoever does not know how long the machine has slept since: earlier by that.
    pub(crate) fn instant(self, clock: &dyn Clock) -> Instant {
        self.at.checked_sub(clock.asleep().saturating_sub(self.asleep)).unwrap_or(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::stream;
    use runvoy_model::time::UnixMs;

    use super::*;

    #[derive(Default)]
    struct Sleeper(AtomicU64);

    impl Clock for Sleeper {
        fn now(&self) -> UnixMs {
            UnixMs(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn asleep(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::SeqCst))
        }
    }

    fn message(token: &str) -> Result<DequeueJobResponse, Fault> {
        Ok(DequeueJobResponse { task_token: token.to_owned(), ..DequeueJobResponse::default() })
    }

    const WITHIN: Duration = Duration::from_secs(35);

    /// The tokens of what was read from these messages, and silence after them, when no more is wanted after so long.
    async fn tokens(messages: Vec<Result<DequeueJobResponse, Fault>>, closes_after: Duration) -> Result<Vec<String>, Fault> {
        let closing = watch::Sender::new(false);
        let messages = stream::iter(messages).chain(stream::pending()).boxed();
        let clock = Sleeper::default();
        let (read, ()) = tokio::join!(read(messages, WITHIN, &clock, closing.subscribe()), async {
            tokio::time::sleep(closes_after).await;
            closing.send_replace(true);
        });
        Ok(read?.into_iter().map(|offer| offer.map_or_else(|(token, _)| token, |offer| offer.token)).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_handed_out_before_the_close_is_not_dropped() {
        let began = tokio::time::Instant::now();
        let read = tokens(vec![message("a"), message("b")], Duration::from_secs(1)).await;
        assert_eq!(read, Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert!(began.elapsed() < Duration::from_secs(2), "nothing more is waited for");
        assert_eq!(tokens(vec![message("a")], Duration::ZERO).await, Ok(vec!["a".to_owned()]), "what is on its way has a moment");
        assert_eq!(tokens(Vec::new(), Duration::from_secs(1)).await, Ok(Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_come_is_good_whatever_comes_after_it() {
        let (away, late) = (|| Err(Fault::Away("cut".to_owned())), Duration::from_secs(600));
        assert_eq!(tokens(vec![message("a"), away()], late).await, Ok(vec!["a".to_owned()]));
        assert_eq!(tokens(vec![message("a")], late).await, Ok(vec!["a".to_owned()]));
        assert_eq!(tokens(vec![away()], late).await, Err(Fault::Away("cut".to_owned())));
        assert!(matches!(tokens(Vec::new(), late).await, Err(Fault::Away(_))));
    }

    #[test]
    fn a_lease_grows_old_while_the_machine_sleeps() {
        let clock = Sleeper(7.into());
        let since = Since::now(&clock);
        assert_eq!(since.instant(&clock), since.at);
        clock.0.store(11, Ordering::SeqCst);
        assert_eq!(since.at - since.instant(&clock), Duration::from_secs(4));
    }
}
