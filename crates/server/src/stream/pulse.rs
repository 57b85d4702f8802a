//! Signs of life of a stream's client: whatever it sends, and room that it makes for more. A client that reads slowly may answer a ping late,
//! behind everything that waits before it, and lives all the same.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout};

use super::{Gone, SILENCE};

/// When the client last showed life.
pub(super) struct Pulse {
    began: Instant,
    last_ms: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    /// It lives.
    pub(super) fn beat(&self) {
        let ms = self.began.elapsed().as_millis();
        self.last_ms.store(u64::try_from(ms).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long it has shown none.
    pub(super) fn silent_for(&self, now: Instant) -> Duration {
        let last = self.began + Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        now.saturating_duration_since(last)
    }

    /// Sends. Where there is no room it waits for the client to make some, though not for ever.
    pub(super) async fn through<E>(&self, sending: impl Future<Output = Result<(), E>>) -> Result<(), Gone> {
        let mut sending = pin!(sending);
        if let Some(sent) = sending.as_mut().now_or_never() {
            return sent.map_err(|_| Gone);
        }
        match timeout(SILENCE, sending).await {
            Ok(Ok(())) => {
                self.beat();
                Ok(())
            }
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn room_that_is_made_is_a_sign_of_life_and_room_that_was_there_is_not() {
        let pulse = Pulse::new();
        tokio::time::advance(Duration::from_secs(60)).await;
        pulse.through(async { Ok::<_, ()>(()) }).await.expect("room");
        assert_eq!(pulse.silent_for(Instant::now()), Duration::from_secs(60));
        let slow = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok::<_, ()>(())
        };
        pulse.through(slow).await.expect("room in the end");
        assert_eq!(pulse.silent_for(Instant::now()), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_makes_room_is_gone() {
        assert_eq!(Pulse::new().through(std::future::pending::<Result<(), ()>>()).await, Err(Gone));
    }
}
