//! The bus as the publisher knows it: some letters at once, each of which is taken or not.

use async_trait::async_trait;
use aws_sdk_eventbridge::primitives::DateTime;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use runvoy_model::time::UnixMs;

use crate::config::Config;
use crate::fault::Fault;

const SERVICE: &str = "EventBridge";
/// One call carries so many letters.
const MOST_LETTERS: usize = 10;
/// And so many bytes.
const MOST_BYTES: usize = 256 * 1024;
/// What a letter weighs beside its detail: its time, source and type.
const AROUND: usize = 256;
const DETAIL_TYPE: &str = "log-event";
/// The end of the year 9999: no later time can be told.
const LAST_TIME_MS: i64 = 253_402_300_799_999;

/// An event on its way.
#[derive(Debug, Clone)]
pub(in crate::event) struct Letter {
    pub place: u64,
    pub at: UnixMs,
    /// The event as JSON.
    pub detail: String,
}

/// Whoever carries letters.
#[async_trait]
pub(in crate::event) trait Bus: Send + Sync {
    /// Gives them to it, at most as many as one of [`batches`]; for each the reason why it was not taken, if it was not.
    async fn put(&self, letters: &[&Letter]) -> Result<Vec<Option<String>>, Fault>;
}

/// Cuts letters into what one call carries, in order. `left` are those that are still to be sent.
pub(super) fn batches<'l>(letters: &'l [Letter], left: &'l [usize]) -> impl Iterator<Item = &'l [usize]> {
    let mut rest = left;
    std::iter::from_fn(move || {
        let (mut bytes, mut count) = (0, 0);
        for at in rest {
            bytes += letters[*at].detail.len() + AROUND;
            if count == MOST_LETTERS || count > 0 && bytes > MOST_BYTES {
                break;
            }
            count += 1;
        }
        let (batch, left) = rest.split_at(count);
        rest = left;
        (count > 0).then_some(batch)
    })
}

/// The bus did not take a letter.
pub(super) fn refused(reason: String) -> Fault {
    let source = std::io::Error::other("the bus did not take an event");
    Fault::Unavailable { service: SERVICE, code: reason, source: Box::new(source) }
}

/// EventBridge.
#[derive(Debug)]
pub(super) struct EventBridge {
    client: aws_sdk_eventbridge::Client,
    bus: String,
    source: String,
}

impl EventBridge {
    pub fn new(client: aws_sdk_eventbridge::Client, config: &Config) -> Self {
        Self { client, bus: config.event_bus.clone(), source: format!("task-workflow.{}", config.scope.app) }
    }

    fn entry(&self, letter: &Letter) -> PutEventsRequestEntry {
        PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(&self.source)
            .detail_type(DETAIL_TYPE)
            .detail(&letter.detail)
            .time(DateTime::from_millis(letter.at.0.clamp(0, LAST_TIME_MS)))
            .build()
    }
}

#[async_trait]
impl Bus for EventBridge {
    async fn put(&self, letters: &[&Letter]) -> Result<Vec<Option<String>>, Fault> {
        let entries = letters.iter().map(|letter| self.entry(letter)).collect();
        let answer = self.client.put_events().set_entries(Some(entries)).send().await;
        let answer = answer.map_err(|error| Fault::of(SERVICE, error))?;
        if answer.failed_entry_count() == 0 {
            return Ok(vec![None; letters.len()]);
        }
        let mut results: Vec<_> = answer.entries().iter().map(|entry| entry.error_code().map(str::to_owned)).collect();
        // An answer that tells of fewer than were sent leaves the others in doubt.
        results.resize(letters.len(), Some("no answer".to_owned()));
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_carries_ten_letters_or_as_many_as_fit() {
        let letter = |bytes| Letter { place: 1, at: UnixMs(0), detail: "x".repeat(bytes) };
        let letters: Vec<Letter> = (0..25).map(|_| letter(10)).chain([200_000, 100_000, 150_000].map(letter)).collect();
        let left: Vec<usize> = (0..letters.len()).filter(|at| *at != 3).collect();
        let sizes: Vec<usize> = batches(&letters, &left).map(<[usize]>::len).collect();
        assert_eq!(sizes, [10, 10, 5, 2]);
        assert_eq!(batches(&letters, &left).flatten().copied().collect::<Vec<_>>(), left);
    }
}
