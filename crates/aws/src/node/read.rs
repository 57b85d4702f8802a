//! How the tasks and edges of a job are found: by name, by place, and by how they stand. Everything lies in one partition and is read consistently, so
//! that nothing here lags; whether it is still so when a step is written is for the job's guard to say.

use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::{Node, Payload, Phase};
use runvoy_model::name::Name;
use runvoy_model::view::Standing;
use runvoy_ports::blob::BlobStore;
use runvoy_ports::job::PAGE_BYTES;

use super::{Brief, brief, failed_stand, from_item, key, name_of, opened, phase_of, staged_stand, task_of};
use crate::dynamo::{Dynamo, Query};
use crate::fault::Fault;
use crate::item::{Item, Read, item, n, s};
use crate::job;
use crate::table::Table;

/// So many blobs are read at once.
const AT_ONCE: usize = 16;
/// So many whole tasks are read at once for a page: what they gave may be large.
const READ: usize = 50;
/// So many places are looked through at once.
const LOOK: usize = 1_000;

/// One task.
pub(crate) async fn read(dynamo: &Dynamo, blobs: &dyn BlobStore, job: JobId, task: &str) -> Result<Option<Node>, Fault> {
    let Ok(task) = Name::new(task) else { return Ok(None) };
    match dynamo.get(Table::Jobs, key(job, &task)).await? {
        Some(item) => from_item(&item, blobs).await.map(Some),
        None => Ok(None),
    }
}

/// Tasks by name, in the order of the names; those that are not there are left out, and each is given once.
pub(crate) async fn by_name(dynamo: &Dynamo, blobs: &dyn BlobStore, job: JobId, tasks: &[Name]) -> Result<Vec<Node>, Fault> {
    let nodes = decoded(named(dynamo, job, tasks).await?, blobs).await?;
    let mut by_name: HashMap<Name, Node> = nodes.into_iter().map(|node| (node.task.clone(), node)).collect();
    Ok(tasks.iter().filter_map(|task| by_name.remove(task)).collect())
}

/// What is small of tasks, by name and in no order: where a parent stands needs no look at what it gave.
pub(crate) async fn briefs(dynamo: &Dynamo, job: JobId, tasks: &[Name]) -> Result<Vec<Brief>, Fault> {
    named(dynamo, job, tasks).await?.iter().map(brief).collect()
}

/// What tasks gave, in the order they are asked for.
pub(crate) async fn outputs(dynamo: &Dynamo, blobs: &dyn BlobStore, job: JobId, tasks: &[Name]) -> Result<Vec<Option<Payload>>, Fault> {
    let mut by_name: HashMap<Name, Payload> = HashMap::new();
    let items = named(dynamo, job, tasks).await?;
    let outputs = items.iter().map(|item| opened::<Payload>(item, "output", "output_blob", blobs)).collect::<Vec<_>>();
    let outputs: Vec<_> = stream::iter(outputs).buffered(AT_ONCE).try_collect().await?;
    for (item, output) in items.iter().zip(outputs) {
        if let Some(output) = output {
            by_name.insert(task_of(item)?, output);
        }
    }
    Ok(tasks.iter().map(|task| by_name.get(task).cloned()).collect())
}

async fn named(dynamo: &Dynamo, job: JobId, tasks: &[Name]) -> Result<Vec<Item>, Fault> {
    let once: HashSet<&Name> = tasks.iter().collect();
    dynamo.get_all(Table::Jobs, once.into_iter().map(|task| key(job, task)).collect()).await
}

async fn decoded(items: Vec<Item>, blobs: &dyn BlobStore) -> Result<Vec<Node>, Fault> {
    let nodes = items.iter().map(|item| from_item(item, blobs)).collect::<Vec<_>>();
    stream::iter(nodes).buffer_unordered(AT_ONCE).try_collect().await
}

/// Tasks that stand like this, by place.
pub(crate) async fn standing(
    dynamo: &Dynamo,
    blobs: &dyn BlobStore,
    job: JobId,
    standing: Standing,
    max: usize,
) -> Result<Vec<Node>, Fault> {
    let (mut found, mut after) = (Vec::new(), None);
    while found.len() < max {
        let most = max - found.len();
        let keys = dynamo.query(Query { after, ..stands(job, standing).limit(most) }).await?;
        after = keys.last().cloned();
        let is_last = keys.len() < most;
        let keys = keys.iter().map(table_key).collect::<Result<Vec<_>, _>>()?;
        let mut nodes = decoded(dynamo.get_all(Table::Jobs, keys).await?, blobs).await?;
        nodes.retain(|node| standing.fits(node));
        nodes.sort_unstable_by_key(|node| node.place);
        found.extend(nodes);
        if is_last {
            break;
        }
    }
    Ok(found)
}

/// How many tasks were written with a batch and not looked at yet.
pub(crate) async fn staged(dynamo: &Dynamo, job: JobId, batch: u64) -> Result<u32, Fault> {
    let count = dynamo.count(stands(job, Standing::Staged(batch))).await?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The part of the index that has those who stand like this, by place.
fn stands(job: JobId, standing: Standing) -> Query {
    const BEGINS: &str = "begins_with(#r, :stand)";
    let all = Query::of(Table::Jobs, "job_id", s(job.to_string())).index("task-standing-index");
    let begins = |all: Query, with: String| all.range("task_stand", BEGINS, vec![(":stand", s(with))]);
    match standing {
        Standing::Staged(batch) => begins(all, staged_stand(batch)),
        Standing::Ready => begins(all, "ready#".to_owned()),
        Standing::FailedBefore(_) => begins(all, "failed#".to_owned()),
        Standing::FailedFrom(place) => {
            let bounds = vec![(":from", s(failed_stand(place))), (":to", s(failed_stand(u32::MAX)))];
            all.range("task_stand", "#r BETWEEN :from AND :to", bounds)
        }
        Standing::Marked => begins(all, "marked#".to_owned()),
    }
}

/// The children of a task that have not been told that it is done, by place.
pub(crate) async fn children(dynamo: &Dynamo, job: JobId, parent: &str, max: usize) -> Result<Vec<Name>, Fault> {
    let all = Query::of(Table::Jobs, "job_id", s(job.to_string())).limit(max);
    let edges = dynamo.query(all.range("entry", "begins_with(#r, :parent)", vec![(":parent", s(format!("edge#{parent}#")))])).await?;
    edges.iter().map(|edge| name_of(edge, "child")).collect()
}

/// A task as the index by place knows it.
struct Placed {
    task: Name,
    place: u32,
    phase: Phase,
    batch: u64,
    execution: Option<ExecutionId>,
}

/// Tasks by place, after this one.
async fn places(dynamo: &Dynamo, job: JobId, after: Option<u32>, max: usize) -> Result<Vec<Placed>, Fault> {
    let items = dynamo.query(by_place(job, after).limit(max)).await?;
    let placed = |item: &Item| {
        let execution = item.text_if("execution_id").map(str::parse).transpose();
        let execution = execution.map_err(|error| Fault::Damaged(format!("the execution of a task of job {job} is {error}")))?;
        Ok(Placed { task: task_of(item)?, place: item.number("place")?, phase: phase_of(item)?, batch: item.number("batch")?, execution })
    };
    items.iter().map(placed).collect()
}

fn by_place(job: JobId, after: Option<u32>) -> Query {
    let all = Query::of(Table::Jobs, "job_id", s(job.to_string())).index("place-index");
    match after {
        Some(after) => all.range("place", "#r > :after", vec![(":after", n(after))]),
        None => all,
    }
}

/// Where every task that is part of the graph stands, by place.
pub(crate) async fn phases(dynamo: &Dynamo, job: JobId) -> Result<Vec<(Name, Phase)>, Fault> {
    let all = places(dynamo, job, None, usize::MAX).await?;
    Ok(all.into_iter().filter(|placed| placed.phase != Phase::Staged).map(|placed| (placed.task, placed.phase)).collect())
}

/// A page of tasks by place: those of the graph, and those of the batch that is being opened.
pub(crate) async fn page(
    dynamo: &Dynamo,
    blobs: &dyn BlobStore,
    id: JobId,
    after_place: Option<u32>,
    limit: usize,
) -> Result<Vec<Node>, Fault> {
    let Some(seen) = job::read(dynamo, id).await? else { return Ok(Vec::new()) };
    let opening = seen.job.opening;
    let (mut nodes, mut bytes, mut after) = (Vec::new(), 0, after_place);
    while nodes.len() < limit {
        let most = (limit - nodes.len()).min(READ);
        let placed = places(dynamo, id, after, most).await?;
        let is_last = placed.len() < most;
        after = placed.last().map(|last| last.place);
        let opened = placed.into_iter().filter(|placed| placed.phase != Phase::Staged || opening == Some(placed.batch));
        let opened: Vec<Name> = opened.map(|placed| placed.task).collect();
        for node in by_name(dynamo, blobs, id, &opened).await? {
            bytes += [&node.input, &node.output].into_iter().map(held).sum::<usize>();
            nodes.push(node);
            if bytes >= PAGE_BYTES {
                return Ok(nodes);
            }
        }
        if is_last {
            break;
        }
    }
    Ok(nodes)
}

/// How many bytes of text data of a task is.
fn held(payload: &Option<Payload>) -> usize {
    match payload {
        Some(Payload::Inline(value)) => value.to_string().len(),
        _ => 0,
    }
}

/// Tasks that are executions, by place. All of a job's are looked through, by an index that holds little of each.
pub(crate) async fn active(dynamo: &Dynamo, job: JobId, after_place: Option<u32>, max: usize) -> Result<Vec<(u32, ExecutionId)>, Fault> {
    let (mut found, mut after) = (Vec::new(), after_place);
    while found.len() < max {
        let placed = places(dynamo, job, after, LOOK).await?;
        let is_last = placed.len() < LOOK;
        after = placed.last().map(|last| last.place);
        let active = placed.into_iter().filter(|placed| placed.phase == Phase::Active);
        found.extend(active.filter_map(|placed| Some((placed.place, placed.execution?))));
        if is_last {
            break;
        }
    }
    found.truncate(max);
    Ok(found)
}

/// The keys of the first tasks by place, `max` at most, and whether those are all. A job that was never opened has no edges.
pub(crate) async fn first_keys(dynamo: &Dynamo, job: JobId, max: usize) -> Result<(Vec<Item>, bool), Fault> {
    let found = dynamo.query(by_place(job, None).limit(max.saturating_add(1))).await?;
    let keys = found.iter().take(max).map(table_key).collect::<Result<_, _>>()?;
    Ok((keys, found.len() <= max))
}

/// The key of an item as an index names it.
fn table_key(found: &Item) -> Result<Item, Fault> {
    Ok(item([("job_id", s(found.text("job_id")?)), ("entry", s(found.text("entry")?))]))
}
