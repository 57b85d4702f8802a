//! Receipts of steps and the keys of submits, as items of the marks table. Both may be forgotten after a while: the pruner does that, and an
//! expiry far behind it tidies up where no pruner comes by.

use runvoy_model::change::Made;
use runvoy_model::command::{Receipt, SubmitKey};
use runvoy_model::hex::hex;
use runvoy_model::id::StepId;
use runvoy_model::time::UnixMs;
use sha2::{Digest, Sha256};

use crate::dynamo::Dynamo;
use crate::fault::Fault;
use crate::item::{Item, Read, item, json, n, s};
use crate::table::Table;

/// Longer than anything may be forgotten by the pruner.
const TIDY_AFTER_S: i64 = 60 * 24 * 3600;

/// What answers a repeat of a step.
pub(crate) async fn receipt(dynamo: &Dynamo, step: StepId) -> Result<Option<Receipt>, Fault> {
    let found = dynamo.get(Table::Marks, key(&step_mark(step))).await?;
    found.map(|found| found.json("receipt")).transpose()
}

/// The receipt as an item.
pub(crate) fn receipt_item(step: StepId, at: UnixMs, receipt: &Receipt) -> Item {
    kept(&step_mark(step), at, [("receipt", json(receipt)), ("step_id", s(step.to_string()))])
}

/// What a user's key was used for.
pub(crate) async fn submitted(dynamo: &Dynamo, user: &str, submit_key: &str) -> Result<Option<(Made, [u8; 32])>, Fault> {
    let Some(found) = dynamo.get(Table::Marks, key(&submit_mark(user, submit_key))).await? else { return Ok(None) };
    let fingerprint = found.bytes("fingerprint")?.try_into().map_err(|_| Fault::Damaged("a fingerprint is not 32 bytes".to_owned()))?;
    Ok(Some((found.json("made")?, fingerprint)))
}

/// The key of a submit as an item.
pub(crate) fn submitted_item(at: UnixMs, used: &SubmitKey, made: &Made) -> Item {
    let attributes = [
        ("user_email", s(&used.user)),
        ("request_id", s(&used.key)),
        ("fingerprint", crate::item::b(used.fingerprint)),
        ("made", json(made)),
    ];
    kept(&submit_mark(&used.user, &used.key), at, attributes)
}

/// The key of a mark.
pub(crate) fn key(mark: &str) -> Item {
    item([("mark", s(mark))])
}

/// The key of a mark that was read.
pub(crate) fn key_of(found: &Item) -> Result<Item, Fault> {
    Ok(key(found.text("mark")?))
}

/// Whether a mark is one that may be forgotten, and is this old.
pub(crate) fn is_forgettable(mark: &Item, before: UnixMs) -> Result<bool, Fault> {
    Ok(mark.number_if::<i64>("since")?.is_some_and(|since| since < before.0))
}

/// Forgets a mark that is this old; `false` if it is not there, or was made anew since it was looked at.
pub(crate) async fn forget(dynamo: &Dynamo, key: Item, before: UnixMs) -> Result<bool, Fault> {
    match dynamo.delete_if(Table::Marks, key.clone(), "since < :before", vec![(":before", n(before.0))]).await {
        Ok(()) => Ok(true),
        Err(Fault::Conflict) => match dynamo.get(Table::Marks, key).await? {
            // Somebody else was at it at that moment, and it is as it was.
            Some(mark) if is_forgettable(&mark, before)? => Err(Fault::Conflict),
            _ => Ok(false),
        },
        Err(fault) => Err(fault),
    }
}

fn kept<const N: usize>(mark: &str, at: UnixMs, attributes: [(&str, aws_sdk_dynamodb::types::AttributeValue); N]) -> Item {
    let mut kept = item(attributes);
    kept.extend(item([("mark", s(mark)), ("since", n(at.0)), ("ttl", n(at.seconds().saturating_add(TIDY_AFTER_S)))]));
    kept
}

fn step_mark(step: StepId) -> String {
    format!("step#{step}")
}

/// The name of a key of a submit. Keys are the client's own words: of any length, with any sign in them.
pub(crate) fn submit_mark(user: &str, submit_key: &str) -> String {
    let mut digest = Sha256::new();
    digest.update((user.len() as u64).to_be_bytes());
    digest.update(user);
    digest.update(submit_key);
    format!("key#{}", hex(&digest.finalize()))
}
