//! Keeps an eye on whoever an answer goes to while it takes its time: a revocation, or another role, ends it. Looked at no more than once a second,
//! and a store that does not answer has revoked nothing.

use std::sync::Arc;
use std::time::Duration;

use runvoy_engine::{Caller, EngineError};
use runvoy_model::role::Role;

use crate::app::State;
use crate::call::Call;
use crate::credential::Standing;
use crate::fault::Fault;

const EVERY: Duration = Duration::from_secs(1);

/// The rights of whoever reads an answer.
pub(crate) struct Vigil {
    state: Arc<State>,
    standing: Standing,
    role: Role,
    looked: Duration,
}

impl Vigil {
    /// Over the caller of an admitted request.
    pub(crate) fn over(call: &Call) -> Result<Self, Fault> {
        let (state, caller) = (Arc::clone(&call.state), call.caller()?);
        let looked = state.engine.ports().clock.monotonic();
        Ok(Self { standing: Standing::of(caller), role: caller.role, state, looked })
    }

    /// An error once the rights ended that the answer was begun with.
    pub(crate) async fn look(&mut self) -> Result<(), EngineError> {
        let now = self.state.engine.ports().clock.monotonic();
        if now.saturating_sub(self.looked) < EVERY {
            return Ok(());
        }
        self.looked = now;
        match self.standing.caller(&self.state).await {
            Ok(Caller { role, .. }) if role != self.role => Err(EngineError::RoleChanged { role: role.as_str() }),
            Err(Fault::Engine(ended @ (EngineError::InvalidKey | EngineError::RevokedKey))) => Err(ended),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
