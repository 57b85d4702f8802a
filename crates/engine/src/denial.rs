//! What people were refused is kept as events, which cost a durable write each; so nobody is refused more often than so many times a minute that way.
//! Beyond that they are turned away without a write. A bucket is one time: when the last of its refusals will have been forgotten.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use runvoy_model::change::{Change, Denied};

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::subject::Subject;

const WINDOW: Duration = Duration::from_secs(60);
/// More buckets than this are first freed of what has been forgotten.
const MANY: usize = 1_000;

/// Refusals that were kept lately, by user.
pub(crate) struct Denials {
    /// What one refusal costs; `None` where it costs nothing.
    cost: Option<Duration>,
    forgotten: Mutex<HashMap<String, Duration>>,
}

impl Denials {
    /// So many refusals of one user in a minute; 0 is any number.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { cost: (per_minute > 0).then(|| WINDOW / per_minute), forgotten: Mutex::default() }
    }

    /// Counts one more; an error where it is one too many.
    fn count(&self, email: &str, now: Duration) -> Result<(), EngineError> {
        let Some(cost) = self.cost else { return Ok(()) };
        let mut forgotten = self.forgotten.lock();
        if forgotten.len() >= MANY {
            forgotten.retain(|_, at| *at > now);
        }
        let at = forgotten.entry(email.to_owned()).or_default();
        let next = (*at).max(now) + cost;
        match next.checked_sub(now + WINDOW).filter(|wait| !wait.is_zero()) {
            Some(wait) => Err(EngineError::RefusedTooOften(wait)),
            None => {
                *at = next;
                Ok(())
            }
        }
    }
}

impl Engine {
    /// Keeps that somebody wanted what they may not. An error means that it could not be kept, or not once more, and then that is the answer.
    pub async fn note_denied(&self, caller: &Caller, action: &str, why: &str, subject: &Subject) -> Result<(), EngineError> {
        self.note_refused(caller, action, ("FORBIDDEN", why), subject).await
    }

    /// Keeps that somebody was refused what would have changed something, with the code they are told. An error means the same as of
    /// [`Engine::note_denied`].
    pub async fn note_refused(
        &self,
        caller: &Caller,
        action: &str,
        (code, why): (&str, &str),
        subject: &Subject,
    ) -> Result<(), EngineError> {
        self.denials.count(&caller.email, self.ports.clock.monotonic())?;
        // Other actions have targets that are neither executions nor playbooks.
        let resolved = match action {
            "playbooks.run" => Some(self.with_command_of_playbook(subject).await?),
            _ if action.starts_with("executions.") => Some(self.with_whole_id(subject).await?),
            _ => None,
        };
        let subject = resolved.as_ref().unwrap_or(subject);
        let (command, target) = (self.masked_command(subject).await?, subject.target.clone());
        let denied = Denied { email: caller.email.clone(), code: code.to_owned(), why: why.to_owned(), command, target };
        self.ports.store.change(self.user_step(caller, action), Change::NoteDenied(denied), None).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_allows_so_many_and_others_have_their_own() {
        let denials = Denials::new(6);
        let start = Duration::from_secs(500);
        for _ in 0..6 {
            denials.count("ana@x", start).expect("not yet");
        }
        let wait = match denials.count("ana@x", start) {
            Err(EngineError::RefusedTooOften(wait)) => wait,
            other => panic!("one too many: {other:?}"),
        };
        assert_eq!(wait, Duration::from_secs(10));
        denials.count("bob@x", start).expect("their own");
        denials.count("ana@x", start + wait).expect("one is forgotten");
        assert!(denials.count("ana@x", start + wait).is_err(), "and only one");
    }

    #[test]
    fn what_was_forgotten_takes_no_memory() {
        let denials = Denials::new(60);
        for n in 0..10 * MANY {
            denials.count(&format!("user-{n}@x"), Duration::from_secs(n as u64)).expect("their first");
        }
        assert!(denials.forgotten.lock().len() <= MANY);
    }
}
