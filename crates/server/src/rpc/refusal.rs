//! Refusals that are kept in the trail: as of the HTTP API, those of a known caller who wanted to change something, before they are told. It is the one place
//! where calls, items of batches and streams bring theirs.

use runvoy_engine::Caller;

use super::error::RpcFault;
use super::rule::RpcRule;
use crate::app::State;
use crate::fault::shortened;

/// Keeps a refusal, if it is one; where it cannot be kept, that is the answer.
pub(super) async fn noted(state: &State, caller: &Caller, rule: &RpcRule, fault: RpcFault) -> RpcFault {
    let Some((code, why)) = fault.to_be_noted().filter(|_| rule.is_change) else { return fault };
    let action = format!("POST {}", rule.path);
    match state.engine.note_refused(caller, &action, code.as_str(), &shortened(&why)).await {
        Ok(()) => fault,
        Err(error) => error.into(),
    }
}
