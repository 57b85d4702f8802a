//! A job as one item: the model's own record as JSON, the attributes that other readers of the table expect, and those that its indexes are made
//! of. It guards everything under it: whoever changes a task or an edge of the job raises `guard` in the same step.

pub(crate) mod list;
mod walk;

use std::collections::HashMap;

use runvoy_model::id::{JobId, StepId};
use runvoy_model::job::{Job, JobStatus};

use crate::config::Config;
use crate::day::{Day, iso, shard};
use crate::dynamo::Dynamo;
use crate::fault::Fault;
use crate::item::{Item, Read, item, json, n, s};
use crate::table::Table;

/// The sort key of the job itself, among its tasks and edges.
const ENTRY: &str = "job";
/// So many digits at the end of an id have an index.
const SUFFIX_DIGITS: usize = 6;
/// Jobs that an agent has something to do for.
const ATTENTION: &str = "attention";
/// Jobs that were never opened.
const STAGED: &str = "staged";

/// A job as it was seen.
#[derive(Debug, Clone)]
pub(crate) struct SeenJob {
    pub job: Job,
    /// Rises with every step that changes the job or something under it.
    pub guard: u64,
    /// The step that wrote it last, as the journal calls it.
    pub step: Option<StepId>,
}

/// The key of a job.
pub(crate) fn key(id: JobId) -> Item {
    item([("job_id", s(id.to_string())), ("entry", s(ENTRY))])
}

/// The whole item.
pub(crate) fn to_item(job: &Job, guard: u64, config: &Config) -> Item {
    let (day, shard) = (Day::of_id(job.id.0), shard(job.id.0, config.shards));
    let digits = job.id.to_string();
    let mut item = key(job.id);
    item.extend(crate::item::item([
        ("state", json(job)),
        ("version", n(job.version)),
        ("guard", n(guard)),
        ("status", s(job.status.as_str())),
        ("user_email", s(&job.created_by)),
        ("created_at", s(iso(job.created_at))),
        ("day_shard", s(day_part(day, shard))),
        ("user_day_shard", s(user_part(&job.created_by, day, shard))),
        ("suffix", s(&digits[digits.len() - SUFFIX_DIGITS..])),
    ]));
    let name = job.name.as_ref().map(|name| ("name", s(name)));
    let ended = job.completed_at.map(|at| ("completed_at", s(iso(at))));
    let stand = stand(job).map(|stand| ("stand", s(stand_part(stand, shard))));
    item.extend([name, ended, stand].into_iter().flatten().map(|(name, value)| (name.to_owned(), value)));
    item
}

/// Reads an item back.
pub(crate) fn from_item(item: &Item) -> Result<SeenJob, Fault> {
    let id = item.text("job_id")?;
    let job: Job = item.json("state")?;
    if job.id.to_string() != id || job.status.as_str() != item.text("status")? {
        return Err(Fault::Damaged(format!("job {id} is not what its item says")));
    }
    Ok(SeenJob { job, guard: item.number("guard")?, step: item.text_if("step_id").and_then(|step| step.parse().ok()) })
}

/// One job as it is now.
pub(crate) async fn read(dynamo: &Dynamo, id: JobId) -> Result<Option<SeenJob>, Fault> {
    dynamo.get(Table::Jobs, key(id)).await?.map(|item| from_item(&item)).transpose()
}

/// Jobs as they are now, in the order of the ids; those that are not there are left out.
async fn read_all(dynamo: &Dynamo, ids: &[JobId]) -> Result<Vec<Job>, Fault> {
    let items = dynamo.get_all(Table::Jobs, ids.iter().map(|id| key(*id)).collect()).await?;
    let mut by_id = HashMap::with_capacity(items.len());
    for item in &items {
        let job = from_item(item)?.job;
        by_id.insert(job.id, job);
    }
    Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
}

/// How a job stands for those who look for work; `None` where there is none.
fn stand(job: &Job) -> Option<&'static str> {
    if job.needs_attention() { Some(ATTENTION) } else { (job.status == JobStatus::Staged).then_some(STAGED) }
}

fn stand_part(stand: &str, shard: u32) -> String {
    format!("{stand}#{shard}")
}

fn day_part(day: Day, shard: u32) -> String {
    format!("{day}#{shard}")
}

fn user_part(user: &str, day: Day, shard: u32) -> String {
    format!("{user}#{day}#{shard}")
}

#[cfg(test)]
pub(crate) mod tests;
