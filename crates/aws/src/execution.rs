//! An execution as one item: the model's own record and spec as JSON, the attributes that other readers of the table expect, and those
//! that its indexes are made of. The spec is written once; what can change is known here, so that a change writes nothing else.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::id::ExecutionId;
use runvoy_model::spec::Spec;
use runvoy_ports::blob::BlobStore;
use runvoy_ports::store::StoreError;
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::day::{Day, iso, shard};
use crate::fault::Fault;
use crate::item::{Item, Read, item, json, n, s};
use crate::lost::{self, Lost};
use crate::stand::Stand;

/// A spec of more bytes than this is kept apart: a step may write dozens of executions, and a transaction ends at 4 MB.
const MOST_INLINE: usize = 48 * 1024;
/// So much of a command is shown to other readers; the spec has all of it.
const MOST_COMMAND: usize = 4096;
/// So many digits at the end of an id have an index.
pub(crate) const SUFFIX_DIGITS: usize = 6;

/// The key of an execution.
pub(crate) fn key(id: ExecutionId) -> Item {
    item([("execution_id", s(id.to_string()))])
}

/// Keeps a spec that is too large for an item. Before the item is written, or it would name what is not there.
pub(crate) async fn store_large(execution: &Execution, blobs: &dyn BlobStore) -> Result<(), StoreError> {
    let text = spec_text(execution);
    if text.len() <= MOST_INLINE {
        return Ok(());
    }
    blobs.put(&digest(&text), text.into_bytes()).await
}

/// The whole item.
pub(crate) fn to_item(execution: &Execution, config: &Config) -> Item {
    let mut item = fixed(execution, config);
    item.extend(moving(execution, config).into_iter().map(|(name, value)| (name.to_owned(), value)));
    item
}

/// An execution as it was read back.
#[derive(Debug)]
pub(crate) struct Restored {
    pub execution: Execution,
    /// Where it could not be read whole.
    pub lost: Option<Lost>,
}

/// Reads an item back for a step: where it is damaged for good, what is left of it, unless that does not even say where it stands. Of whoever waits for a
/// lock a step needs no more than that: its holder must be able to end whatever the spec of the next one is.
pub(crate) async fn from_item(item: Item, blobs: &dyn BlobStore) -> Result<Restored, Fault> {
    restore(item, blobs, |fault, execution| match fault {
        Fault::Damaged(_) => true,
        Fault::Foreign(_) | Fault::Refused { .. } => execution.is_some_and(|execution| matches!(execution.lock, LockClaim::Waiting { .. })),
        _ => false,
    })
    .await
}

/// The same for a look, which one execution must not spoil: also where a newer server could read it, or S3 refuses its spec for now.
pub(crate) async fn shown(item: Item, blobs: &dyn BlobStore) -> Result<Restored, Fault> {
    restore(item, blobs, |fault, _| matches!(fault, Fault::Damaged(_) | Fault::Foreign(_) | Fault::Refused { .. })).await
}

async fn restore(item: Item, blobs: &dyn BlobStore, is_passed_by: fn(&Fault, Option<&Execution>) -> bool) -> Result<Restored, Fault> {
    let mut execution = match state(&item) {
        Err(fault) if is_passed_by(&fault, None) => {
            return Ok(Restored { execution: lost::waiting(&item)?, lost: Some(Lost::of(&item, &fault, true)) });
        }
        state => state?,
    };
    let (spec, lost) = match spec(&item, execution.id, blobs).await {
        Err(fault) if is_passed_by(&fault, Some(&execution)) => (lost::outline(&item)?, Some(Lost::of(&item, &fault, false))),
        spec => (spec?, None),
    };
    execution.spec = spec;
    Ok(Restored { execution, lost })
}

fn state(item: &Item) -> Result<Execution, Fault> {
    let (id, text) = (item.text("execution_id")?, item.text("state")?);
    let execution: Execution =
        serde_json::from_str(text).map_err(|error| Fault::unread(&format!("the state of execution {id}"), &error))?;
    if id != execution.id.to_string() {
        return Err(Fault::Damaged(format!("the item of execution {id} holds execution {}", execution.id)));
    }
    Ok(execution)
}

async fn spec(item: &Item, id: ExecutionId, blobs: &dyn BlobStore) -> Result<Spec, Fault> {
    let unread = |error: serde_json::Error| Fault::unread(&format!("the spec of execution {id}"), &error);
    let Some(key) = item.text_if("spec_blob") else { return serde_json::from_str(item.text("spec")?).map_err(unread) };
    let missing = || Fault::Damaged(format!("the spec of execution {id} is not at {key} any more"));
    let bytes = blobs.get(key).await?.ok_or_else(missing)?;
    serde_json::from_slice(&bytes).map_err(unread)
}

/// What is written once.
fn fixed(execution: &Execution, config: &Config) -> Item {
    let (id, spec) = (execution.id, &execution.spec);
    let (day, shard) = (Day::of_id(id.0), shard(id.0, config.shards));
    let digits = id.to_string();
    let mut item = item([
        ("suffix", s(&digits[digits.len() - SUFFIX_DIGITS..])),
        ("execution_id", s(digits)),
        ("user_email", s(&execution.created_by)),
        ("command", s(beginning(&spec.command))),
        ("request_id", s(&execution.created_by_request_id)),
        ("created_at", s(iso(execution.submitted_at))),
        ("day_shard", s(format!("{day}#{shard}"))),
        ("user_day_shard", s(user_part(&execution.created_by, day, shard))),
    ]);
    let text = spec_text(execution);
    if text.len() <= MOST_INLINE {
        item.insert("spec".to_owned(), s(text));
    } else {
        item.insert("spec_blob".to_owned(), s(digest(&text)));
        item.extend(lost::line_attributes(spec));
    }
    let lock = spec.lock.as_ref().map(|lock| ("lock_name", s(lock.as_str())));
    let job = spec.task.as_ref().map(|task| ("job_id", s(task.job.to_string())));
    item.extend([lock, job, lost::task_attribute(spec)].into_iter().flatten().map(|(name, value)| (name.to_owned(), value)));
    item
}

/// What a change may write; what is not here is removed by it.
fn moving(execution: &Execution, config: &Config) -> HashMap<&'static str, AttributeValue> {
    let (id, status) = (execution.id, execution.status.as_str());
    let (day, shard) = (Day::of_id(id.0), shard(id.0, config.shards));
    let mut owners = vec![s(&execution.created_by)];
    owners.extend(execution.owned_by.iter().filter(|owner| **owner != execution.created_by).map(s));
    let mut moving = HashMap::from([
        ("version", n(execution.version)),
        ("state", json(execution)),
        ("owners", AttributeValue::L(owners)),
        ("status", s(status)),
        ("status_day_shard", s(status_part(status, day, shard))),
    ]);
    if let Some(stand) = Stand::of(execution) {
        moving.insert("stand", s(stand.line.partition(&stand.queue, shard)));
        moving.insert("stand_sort", s(stand.sort));
    }
    let ended = execution.completed_at.and_then(|at| execution.duration_ms(at));
    let stream = (execution.attempt > 0).then(|| format!("{}{id}/{}", config.log_stream_prefix, execution.attempt));
    let shown = [
        ("started_at", execution.started_at.map(|at| s(iso(at)))),
        ("completed_at", execution.completed_at.map(|at| s(iso(at)))),
        ("exit_code", execution.exit_code.map(n)),
        ("duration_seconds", ended.map(|ms| n(ms / 1000))),
        ("cost_usd", execution.cost_micro_usd.map(|micro| n(dollars(micro)))),
        ("log_stream_name", stream.map(s)),
        ("compute_platform", execution.ran_on.as_ref().map(|ran_on| s(&ran_on.runner))),
    ];
    moving.extend(shown.into_iter().filter_map(|(name, value)| Some((name, value?))));
    moving
}

/// The partition of a user's executions of a day.
pub(crate) fn user_part(user: &str, day: Day, shard: u32) -> String {
    format!("{user}#{day}#{shard}")
}

/// The partition of a day's executions of a status.
pub(crate) fn status_part(status: &str, day: Day, shard: u32) -> String {
    format!("{status}#{day}#{shard}")
}

/// As the table itself writes numbers: without noughts at the end.
fn dollars(micro: u64) -> String {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn spec_text(execution: &Execution) -> String {
    serde_json::to_string(&execution.spec).expect("a spec is JSON")
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn beginning(command: &str) -> &str {
    &command[..command.floor_char_boundary(MOST_COMMAND)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_written_as_a_table_keeps_it() {
        let costs = [(0, "0"), (1, "0.000001"), (199_940, "0.19994"), (1_500_000, "1.5"), (10_000_000, "10")];
        for (micro, text) in costs {
            assert_eq!(dollars(micro), text);
        }
    }
}
