//! Whose commands may run as the server's own user. Such a command can read the store and the keys, so it must belong to the only user there is.
//!
//! The guard acts three times: at submit, at the lease of the server's own worker, and on what was leased before it starts. A queue may hold
//! work that was accepted while commands ran as other users, and a second user may come between two steps.

use runvoy_model::command::{EndAttempt, Fence, Outcome};
use runvoy_model::execution::Execution;
use runvoy_model::retry::Category;
use runvoy_ports::lease::LeaseError;

use crate::Engine;
use crate::error::EngineError;
use crate::lease::Holder;

/// What to do about it.
const REMEDY: &str = "start the server with --run-as-uids FIRST-LAST (a user for each execution), \
                      with --run-as USER (one for all, whose commands see each other's secrets), \
                      with --no-worker (commands run on workers elsewhere), or with --allow-shared-uid to accept that";

/// Whose commands may run as the server's own user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UidGuard {
    /// Anybody's: commands run as other users, or the operator accepts that they do not.
    Anyone,
    /// Only those of the one user.
    Only(String),
    /// Nobody's: there are several users, or none.
    Nobody,
}

impl UidGuard {
    fn permits(&self, execution: &Execution) -> bool {
        match self {
            Self::Anyone => true,
            Self::Only(user) => execution.created_by == *user,
            Self::Nobody => false,
        }
    }
}

impl Engine {
    pub(crate) async fn uid_guard(&self) -> Result<UidGuard, EngineError> {
        if !self.config.shares_uid || self.config.allow_shared_uid {
            return Ok(UidGuard::Anyone);
        }
        let mut users = self.active_users().await?;
        Ok(match (users.pop(), users.is_empty()) {
            (Some(user), true) => UidGuard::Only(user),
            _ => UidGuard::Nobody,
        })
    }

    /// Refuses to take a command that this server would not run.
    pub(crate) async fn refuse_shared_uid(&self) -> Result<(), EngineError> {
        if self.uid_guard().await? != UidGuard::Nobody {
            return Ok(());
        }
        let message = format!("commands would run as the server's own user, which can read every user's data: {REMEDY}");
        Err(EngineError::conflict(message, "nothing was started"))
    }

    /// Refuses a second user, or key that may run, on a server that would then run nothing more, unless the caller confirms that.
    pub(crate) async fn refuse_second_user(&self, confirmed: bool) -> Result<(), EngineError> {
        if confirmed || !matches!(self.uid_guard().await?, UidGuard::Only(_)) {
            return Ok(());
        }
        Err(EngineError::Unconfirmed {
            what:
                "with a second user or key that may run, this server would run no more commands, because they run as its own user, which \
                   can read every user's data"
                    .into(),
            remedy: format!("first {REMEDY}; or send it again with \"confirm\": true, and commands are refused until then"),
        })
    }

    /// Keeps of what the server's own worker was just given only what may start. What may never start ends; what may start after a restart
    /// with other settings goes back to its queue. A store that fails keeps nothing permitted from starting: it has begun, and nobody else would run it.
    pub(crate) async fn only_permitted(&self, holder: &Holder, leased: Vec<Execution>) -> Vec<Execution> {
        if leased.is_empty() {
            return leased;
        }
        let guard = self.uid_guard().await;
        if let Err(error) = &guard {
            tracing::warn!(%error, "a lease is returned, because it is unknown whose commands may run as this user");
        }
        let mut permitted = Vec::new();
        for execution in leased {
            match &guard {
                Ok(guard) if guard.permits(&execution) => permitted.push(execution),
                guard => {
                    if let Err(error) = self.turn_away(holder, &execution, guard.as_ref().ok()).await {
                        tracing::warn!(execution = %execution.id, %error, "a command that may not run as this user was not returned: its lease is left to expire");
                    }
                }
            }
        }
        permitted
    }

    async fn turn_away(&self, holder: &Holder, execution: &Execution, guard: Option<&UidGuard>) -> Result<(), LeaseError> {
        let Some(lease) = &execution.lease else { return Ok(()) };
        let fence = Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id };
        if !matches!(guard, Some(UidGuard::Only(_))) {
            return self.unsend(holder, fence).await;
        }
        let message =
            format!("{} is no longer a user, and their command would run as the server's own user: {REMEDY}", execution.created_by);
        let outcome = Outcome::Refused { message, category: Category::Auth };
        self.finish(holder, EndAttempt::of(fence, outcome)).await.map(drop)
    }
}
