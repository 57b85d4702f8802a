//! A task of a job as one item, and an edge as another. What is written once of a task is one attribute, what moves is one each; what is large lies in
//! the blob store, so that a step may write many tasks. How they are found is in [`read`].

mod read;

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_model::hex::hex;
use runvoy_model::id::JobId;
use runvoy_model::job::{Node, Payload, Phase, Revision};
use runvoy_model::name::Name;
use runvoy_model::spec::{DEFAULT_PRIORITY, DEFAULT_QUEUE, Spec};
use runvoy_ports::blob::BlobStore;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use self::read::{active, briefs, by_name, children, first_keys, outputs, page, phases, read, staged, standing};
use crate::dynamo::Dynamo;
use crate::fault::Fault;
use crate::item::{Item, Read, item, n, s};
use crate::table::Table;

/// More bytes than this lie in the blob store.
const MOST_INLINE: usize = 16 * 1024;

/// What is written of a task once.
#[derive(Debug, Deserialize)]
struct Fixed {
    name: String,
    #[serde(default)]
    depends_on: Vec<Name>,
    #[serde(default)]
    input: Option<Payload>,
    spec: Spec,
}

impl Fixed {
    fn lost(task: &Name) -> Self {
        let queue = Name::new(DEFAULT_QUEUE).expect("a constant name");
        Self { name: task.to_string(), depends_on: Vec::new(), input: None, spec: Spec::lost(queue, DEFAULT_PRIORITY) }
    }
}

fn lost_revision() -> Revision {
    let queue = Name::new(DEFAULT_QUEUE).expect("a constant name");
    Revision { generation: 0, spec: Spec::lost(queue, DEFAULT_PRIORITY) }
}

/// The same, where it lies.
#[derive(Debug, PartialEq, Serialize)]
struct FixedRef<'n> {
    name: &'n str,
    #[serde(skip_serializing_if = "<[Name]>::is_empty")]
    depends_on: &'n [Name],
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'n Payload>,
    spec: &'n Spec,
}

impl<'n> FixedRef<'n> {
    fn of(node: &'n Node) -> Self {
        Self { name: &node.name, depends_on: &node.depends_on, input: node.input.as_ref(), spec: &node.spec }
    }
}

/// What is small of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Brief {
    pub task: Name,
    pub place: u32,
    pub phase: Phase,
    pub open_parents: u32,
}

/// The key of a task.
pub(crate) fn key(job: JobId, task: &Name) -> Item {
    item([("job_id", s(job.to_string())), ("entry", s(format!("node#{task}")))])
}

/// The key of an edge.
pub(crate) fn edge_key(job: JobId, parent: &Name, child_place: u32) -> Item {
    item([("job_id", s(job.to_string())), ("entry", s(format!("edge#{parent}#{child_place:010}")))])
}

/// An edge: the child has not been told that its parent is done.
pub(crate) fn edge_item(job: JobId, parent: &Name, child: &Name, child_place: u32) -> Item {
    let mut edge = edge_key(job, parent, child_place);
    edge.insert("child".to_owned(), s(child.as_str()));
    edge
}

/// Keeps what is too large for an item, and was not kept `before`. Before the item is written, or it would name what is not there.
pub(crate) async fn store_large(node: &Node, before: Option<&Node>, blobs: &dyn BlobStore) -> Result<(), Fault> {
    let is_kept = before.is_some_and(|before| FixedRef::of(before) == FixedRef::of(node));
    let fixed = (!is_kept).then(|| text(&FixedRef::of(node)));
    let output = node.output.as_ref().filter(|output| before.and_then(|before| before.output.as_ref()) != Some(output)).map(text);
    let revision = node.revision.as_ref().filter(|revision| before.and_then(|before| before.revision.as_ref()) != Some(revision)).map(text);
    for large in [fixed, output, revision].into_iter().flatten().filter(|text| text.len() > MOST_INLINE) {
        blobs.put(&digest(&large), large.into_bytes()).await?;
    }
    Ok(())
}

/// The whole item.
pub(crate) fn to_item(node: &Node) -> Item {
    let mut item = key(node.job, &node.task);
    item.extend(crate::item::item([
        ("task", s(node.task.as_str())),
        ("place", n(node.place)),
        ("batch", n(node.batch)),
        ("phase", s(phase_word(node.phase))),
        ("looked", n(node.looked)),
        ("open_parents", n(node.open_parents)),
        ("marked", AttributeValue::Bool(node.marked)),
        ("generation", n(node.generation)),
    ]));
    let fixed = Some(large("fixed", "fixed_blob", text(&FixedRef::of(node))));
    let output = node.output.as_ref().map(|output| large("output", "output_blob", text(output)));
    let revision = node.revision.as_ref().map(|revision| large("revision", "revision_blob", text(revision)));
    let execution = node.execution.map(|id| ("execution_id", s(id.to_string())));
    let stand = stand(node).map(|stand| ("task_stand", s(stand)));
    item.extend([fixed, output, revision, execution, stand].into_iter().flatten().map(|(name, value)| (name.to_owned(), value)));
    item
}

/// Of a task of which something is lost, what could not be read stays as it is: it is not what was read that is written.
pub(crate) async fn keep_lost(dynamo: &Dynamo, node: &Node, item: &mut Item) -> Result<(), Fault> {
    let is_revision_lost = node.revision.as_ref().is_some_and(|revision| revision.spec.is_lost());
    if !node.spec.is_lost() && !is_revision_lost {
        return Ok(());
    }
    let Some(mut found) = dynamo.get(Table::Jobs, key(node.job, &node.task)).await? else { return Ok(()) };
    for (is_lost, inline, blob) in [(node.spec.is_lost(), "fixed", "fixed_blob"), (is_revision_lost, "revision", "revision_blob")] {
        if let Some(kept) = found.remove(blob).filter(|_| is_lost) {
            item.remove(inline);
            item.insert(blob.to_owned(), kept);
        }
    }
    Ok(())
}

/// Reads an item back. Where its blob is gone nobody can run it, but its job goes on: it is a task whose spec is lost.
pub(crate) async fn from_item(item: &Item, blobs: &dyn BlobStore) -> Result<Node, Fault> {
    let Brief { task, place, phase, open_parents } = brief(item)?;
    let job: JobId = item.text("job_id")?.parse().map_err(|error| Fault::Damaged(format!("task {task}: its job's id is {error}")))?;
    let bad = |what: &str| Fault::Damaged(format!("{what} of task {task} of job {job} is missing"));
    let fixed = match opened(item, "fixed", "fixed_blob", blobs).await {
        Err(Fault::Damaged(_)) if item.contains_key("fixed_blob") => Fixed::lost(&task),
        fixed => fixed?.ok_or_else(|| bad("what is written once"))?,
    };
    let Fixed { name, depends_on, input, spec } = fixed;
    let revision = match opened(item, "revision", "revision_blob", blobs).await {
        Err(Fault::Damaged(_)) if item.contains_key("revision_blob") => Some(lost_revision()),
        revision => revision?,
    };
    let execution = item.text_if("execution_id").map(str::parse).transpose();
    let marked = item.get("marked").and_then(|marked| marked.as_bool().ok());
    Ok(Node {
        job,
        place,
        batch: item.number("batch")?,
        phase,
        looked: item.number("looked")?,
        open_parents,
        marked: *marked.ok_or_else(|| bad("the mark"))?,
        generation: item.number("generation")?,
        execution: execution.map_err(|error| Fault::Damaged(format!("the execution of task {task} of job {job} is {error}")))?,
        output: opened(item, "output", "output_blob", blobs).await?,
        name,
        depends_on,
        input,
        spec,
        revision: revision.map(Box::new),
        task,
    })
}

/// Reads what is small of an item.
pub(crate) fn brief(item: &Item) -> Result<Brief, Fault> {
    Ok(Brief { task: task_of(item)?, place: item.number("place")?, phase: phase_of(item)?, open_parents: item.number("open_parents")? })
}

fn task_of(item: &Item) -> Result<Name, Fault> {
    name_of(item, "task")
}

fn name_of(item: &Item, attribute: &str) -> Result<Name, Fault> {
    let text = item.text(attribute)?;
    Name::new(text).map_err(|_| Fault::Damaged(format!("a task is called {text:?}")))
}

fn phase_of(item: &Item) -> Result<Phase, Fault> {
    let word = item.text("phase")?;
    let phase = Phase::ALL.into_iter().find(|phase| phase_word(*phase) == word);
    phase.ok_or_else(|| Fault::Damaged(format!("a task is in phase {word:?}")))
}

/// The word of a phase in the store. Part of the format.
const fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Staged => "staged",
        Phase::Waiting => "waiting",
        Phase::Ready => "ready",
        Phase::Active => "active",
        Phase::Completed => "completed",
        Phase::Failed => "failed",
    }
}

/// How a task stands for those who look for what there is to do. It stands in one way at a time: only what is done is marked.
fn stand(node: &Node) -> Option<String> {
    match node.phase {
        Phase::Staged => Some(format!("{}{:010}", staged_stand(node.batch), node.place)),
        Phase::Ready => Some(format!("ready#{:010}", node.place)),
        Phase::Failed => Some(failed_stand(node.place)),
        Phase::Waiting | Phase::Active | Phase::Completed => node.marked.then(|| format!("marked#{:010}", node.place)),
    }
}

fn staged_stand(batch: u64) -> String {
    format!("staged#{batch:020}#")
}

fn failed_stand(place: u32) -> String {
    format!("failed#{place:010}")
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("model types are JSON")
}

fn digest(text: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(text).into();
    hex(&digest)
}

/// A text where it is: in the item, or in the blob store.
fn large(inline: &'static str, blob: &'static str, text: String) -> (&'static str, AttributeValue) {
    if text.len() > MOST_INLINE { (blob, s(digest(&text))) } else { (inline, s(text)) }
}

async fn opened<T: DeserializeOwned>(item: &Item, inline: &str, blob: &str, blobs: &dyn BlobStore) -> Result<Option<T>, Fault> {
    if item.contains_key(inline) {
        return item.json(inline).map(Some);
    }
    let Some(key) = item.text_if(blob) else { return Ok(None) };
    let bytes = blobs
        .get(key)
        .await?
        .ok_or_else(|| Fault::Damaged(format!("{blob} {key} of {} is gone", item.text("entry").unwrap_or("a task"))))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| Fault::unread(&format!("{blob} {key}"), &error))
}

#[cfg(test)]
mod tests;
