//! Refusals that are kept in the trail: as of the HTTP API, those of a known caller who wanted to change something, before they are told. It is the one place
//! where calls, items of batches and streams bring theirs.

use runvoy_engine::{Caller, EngineError, Subject};
use runvoy_wire::Code;
use tokio::sync::Mutex;

use super::error::RpcFault;
use super::rule::RpcRule;
use crate::app::State;
use crate::fault::shortened;

/// Keeps a refusal, if it is one; where it cannot be kept, that is the answer.
pub(super) async fn noted(state: &State, caller: &Caller, rule: &RpcRule, fault: RpcFault, subject: &Subject) -> RpcFault {
    let Some(refused) = fault.to_be_noted().filter(|_| rule.is_change) else { return fault };
    match keep(state, caller, rule, refused, subject).await {
        Ok(()) => fault,
        Err(error) => error.into(),
    }
}

/// Refusals of the items of one batch: one of each code is kept, so that a call of many items costs few writes and leaves few events.
#[derive(Default)]
pub(super) struct ItemRefusals(Mutex<Vec<Code>>);

impl ItemRefusals {
    /// As [`noted`]; but an item tells what was wrong with it also where its caller was refused too often for one more event.
    pub(super) async fn noted(&self, state: &State, caller: &Caller, rule: &RpcRule, fault: RpcFault, subject: &Subject) -> RpcFault {
        let Some(refused) = fault.to_be_noted().filter(|_| rule.is_change) else { return fault };
        // Held while it is kept: who comes second must not answer before it is.
        let (mut kept, code) = (self.0.lock().await, refused.0);
        if kept.contains(&code) {
            return fault;
        }
        match keep(state, caller, rule, refused, subject).await {
            Ok(()) | Err(EngineError::RefusedTooOften(_)) => {
                kept.push(code);
                fault
            }
            Err(error) => error.into(),
        }
    }
}

async fn keep(state: &State, caller: &Caller, rule: &RpcRule, (code, why): (Code, String), subject: &Subject) -> Result<(), EngineError> {
    let action = rule.audit_action();
    state.engine.note_refused(caller, &action, (code.as_str(), &shortened(&why)), subject).await
}
