//! Masks what a foreign worker publishes: it was given the values of the execution's secrets, and nobody knows whether it masks. An event goes out whole, so that a secret
//! that is cut by the edge of one is recognised by its better part, and its rest in the next.

use std::sync::Arc;

use runvoy_model::execution::Execution;
use runvoy_model::job_event::JobEvent;
use runvoy_model::log::Stream;
use runvoy_model::mask::{Mask, MaskStand, Masker, TooMuch};
use runvoy_model::record::{Kind, Record};
use runvoy_ports::lease::LeaseError;

use crate::Engine;

/// The masks of one attempt: its streams for themselves.
pub(super) struct Masks {
    mask: Arc<Mask>,
    stdout: Masker,
    stderr: Masker,
}

impl Masks {
    fn new(mask: Arc<Mask>, [stdout, stderr]: [MaskStand; 2]) -> Self {
        Self { stdout: Masker::at(Arc::clone(&mask), stdout), stderr: Masker::at(Arc::clone(&mask), stderr), mask }
    }

    /// Where they stand between two events: kept with the event, so that another start or another server goes on from there.
    pub(super) fn stands(&self) -> [MaskStand; 2] {
        [self.stdout.stand(), self.stderr.stand()]
    }

    /// An event without secrets.
    pub(super) fn apply(&mut self, mut event: JobEvent) -> JobEvent {
        for (stream, masker) in [(Stream::Stdout, &mut self.stdout), (Stream::Stderr, &mut self.stderr)] {
            let mut pieces = event.output.iter_mut().filter(|piece| piece.stream == stream).peekable();
            while let Some(piece) = pieces.next() {
                let mut masked = Vec::with_capacity(piece.bytes.len());
                masker.push(&piece.bytes, &mut masked);
                if pieces.peek().is_none() {
                    masker.cut(&mut masked);
                }
                piece.bytes = masked;
            }
        }
        for text in &mut event.texts {
            *text = self.mask.text(text);
        }
        event
    }
}

impl Engine {
    /// The masks of an execution's secrets, with the values they have now, going on from where they stood; `None` if it has none.
    pub(super) async fn masks(&self, execution: &Execution, stands: [MaskStand; 2]) -> Result<Option<Masks>, LeaseError> {
        let token = execution.spec.git.as_ref().and_then(|git| git.token.as_ref());
        let mut values = Vec::new();
        for name in execution.spec.secrets.iter().chain(token) {
            let record = self.ports.records.record(Kind::Secret, name.as_str()).await;
            let record = record.map_err(|error| LeaseError::Unavailable(Box::new(error)))?;
            // One that was deleted since is nobody's secret any more.
            let Some(secret) = record.as_ref().and_then(Record::secret) else { continue };
            values.push(self.open_secret(secret).await.map_err(|error| LeaseError::Unavailable(Box::new(error)))?);
        }
        if values.is_empty() {
            return Ok(None);
        }
        let made = tokio::task::spawn_blocking(move || {
            // Of a token with a user the token alone is secret too.
            let tokens = values.iter().filter_map(|value| value.split_once(':').map(|(_, token)| token));
            let all: Vec<&str> = values.iter().map(String::as_str).chain(tokens).collect();
            Mask::new(&all)
        });
        match made.await.map_err(|error| LeaseError::Unavailable(Box::new(error)))? {
            Ok(mask) => Ok(mask.map(|mask| Masks::new(mask, stands))),
            Err(TooMuch(bytes)) => {
                Err(LeaseError::Refused(format!("its secrets are {bytes} bytes together, too much to mask: use fewer or smaller secrets")))
            }
        }
    }
}
