//! Tasks of jobs as rows: what moves of a task in one table, what is written once in another, and the edges between them by place.

use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::{Node, Payload, Phase, Revision};
use runvoy_model::name::Name;
use runvoy_model::spec::Spec;
use runvoy_model::view::Standing;
use runvoy_ports::job::PAGE_BYTES;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::record::text;

/// What is written of a task once, and again when a resume changes what it runs.
#[derive(Debug, Deserialize)]
struct Body {
    name: String,
    #[serde(default)]
    depends_on: Vec<Name>,
    #[serde(default)]
    input: Option<Payload>,
    spec: Spec,
    #[serde(default)]
    revision: Option<Box<Revision>>,
}

/// The same, where it lies.
#[derive(Debug, Serialize)]
struct BodyRef<'n> {
    name: &'n str,
    #[serde(skip_serializing_if = "<[Name]>::is_empty")]
    depends_on: &'n [Name],
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'n Payload>,
    spec: &'n Spec,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'n Revision>,
}

/// The number of a phase in the store. Part of the format.
const fn phase_code(phase: Phase) -> i64 {
    match phase {
        Phase::Staged => 0,
        Phase::Waiting => 1,
        Phase::Ready => 2,
        Phase::Active => 3,
        Phase::Completed => 4,
        Phase::Failed => 5,
    }
}

fn phase_of(code: i64) -> Result<Phase, Fault> {
    let phase = Phase::ALL.into_iter().find(|phase| phase_code(*phase) == code);
    phase.ok_or_else(|| Fault::Damaged(format!("a task is in phase {code}")))
}

/// Where what is written once of the task at this place of a job lies.
const fn body_id(job: i64, place: u32) -> i64 {
    (job << 32) | place as i64
}

macro_rules! select {
    ($source:literal, $rest:literal) => {
        concat!(
            "SELECT n.place, n.task, n.batch, n.phase, n.marked, n.generation, n.looked, n.open_parents, n.execution, t.body, t.output ",
            "FROM nodes AS n ",
            $source,
            " CROSS JOIN tasks AS t ON t.id = (n.job << 32) | n.place WHERE n.job = ?1 AND ",
            $rest
        )
    };
}

const BY_TASK: &str = select!("INDEXED BY nodes_task", "n.task = ?2");
const STAGED: &str = select!("INDEXED BY nodes_staged", "n.phase = 0 AND n.batch = ?3 ORDER BY n.place LIMIT ?2");
const READY: &str = select!("INDEXED BY nodes_ready", "n.phase = 2 ORDER BY n.place LIMIT ?2");
const FAILED_BEFORE: &str = select!("INDEXED BY nodes_failed", "n.phase = 5 AND n.generation < ?3 ORDER BY n.place LIMIT ?2");
const FAILED_FROM: &str = select!("INDEXED BY nodes_failed", "n.phase = 5 AND n.place >= ?3 ORDER BY n.place LIMIT ?2");
const MARKED: &str = select!("INDEXED BY nodes_marked", "n.marked = 1 ORDER BY n.place LIMIT ?2");
const PAGE: &str = select!("NOT INDEXED", "n.place > ?3 AND (n.phase > 0 OR n.batch = ?4) ORDER BY n.place LIMIT ?2");

/// One task of a job.
pub(crate) fn by_task(conn: &Connection, job: (i64, JobId), task: &str) -> Result<Option<Node>, Fault> {
    let mut statement = conn.prepare_cached(BY_TASK)?;
    statement.query_row(params![job.0, task], |row| Ok(decode(row, job.1))).optional()?.transpose()
}

/// What a task of a job gave.
pub(crate) fn output(conn: &Connection, job: i64, task: &Name) -> Result<Option<Payload>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT t.output FROM nodes AS n INDEXED BY nodes_task CROSS JOIN tasks AS t ON t.id = (n.job << 32) | n.place \
         WHERE n.job = ?1 AND n.task = ?2 AND t.output IS NOT NULL",
    )?;
    let bad = |error: serde_json::Error| Fault::Damaged(format!("what task {task} gave cannot be read: {error}"));
    let read = |row: &Row<'_>| -> Result<Payload, Fault> { serde_json::from_slice(text(row, 0)?).map_err(bad) };
    statement.query_row(params![job, task.as_str()], |row| Ok(read(row))).optional()?.transpose()
}

/// The place of a task of a job, and where it stands.
pub(crate) fn phase(conn: &Connection, job: i64, task: &str) -> Result<Option<(u32, Phase)>, Fault> {
    let mut statement = conn.prepare_cached("SELECT place, phase FROM nodes INDEXED BY nodes_task WHERE job = ?1 AND task = ?2")?;
    let found = statement.query_row(params![job, task], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    found.map(|(place, code)| Ok((place, phase_of(code)?))).transpose()
}

/// How many tasks were written with a batch and not looked at yet.
pub(crate) fn staged(conn: &Connection, job: i64, batch: u64) -> Result<u32, Fault> {
    let mut statement =
        conn.prepare_cached("SELECT count(*) FROM nodes INDEXED BY nodes_staged WHERE phase = 0 AND job = ?1 AND batch = ?2")?;
    Ok(statement.query_row(params![job, batch.cast_signed()], |row| row.get(0))?)
}

/// How many parents of a task are not done.
pub(crate) fn open_parents(conn: &Connection, job: i64, task: &str) -> Result<Option<u32>, Fault> {
    let mut statement = conn.prepare_cached("SELECT open_parents FROM nodes INDEXED BY nodes_task WHERE job = ?1 AND task = ?2")?;
    Ok(statement.query_row(params![job, task], |row| row.get(0)).optional()?)
}

/// Tasks of a job that stand like this, by place.
pub(crate) fn standing(conn: &Connection, job: (i64, JobId), standing: Standing, max: usize) -> Result<Vec<Node>, Fault> {
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let rows = |sql: &str, of: Option<i64>| -> Result<Vec<Node>, Fault> {
        let mut statement = conn.prepare_cached(sql)?;
        match of {
            Some(of) => read(statement.query(params![job.0, limit, of])?, job.1),
            None => read(statement.query(params![job.0, limit])?, job.1),
        }
    };
    match standing {
        Standing::Staged(batch) => rows(STAGED, Some(batch.cast_signed())),
        Standing::Ready => rows(READY, None),
        Standing::FailedBefore(generation) => rows(FAILED_BEFORE, Some(generation.into())),
        Standing::FailedFrom(place) => rows(FAILED_FROM, Some(place.into())),
        Standing::Marked => rows(MARKED, None),
    }
}

/// A page of a job's tasks by place: those of its graph, and those of the batch that is being opened.
pub(crate) fn page(conn: &Connection, job: (i64, JobId), opening: Option<u64>, after: Option<u32>, max: usize) -> Result<Vec<Node>, Fault> {
    let mut statement = conn.prepare_cached(PAGE)?;
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![job.0, limit, after.map_or(-1, i64::from), opening.map(u64::cast_signed)])?;
    let (mut nodes, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        bytes += held(row, 9) + held(row, 10);
        nodes.push(decode(row, job.1)?);
    }
    Ok(nodes)
}

/// How many bytes of text a column holds.
fn held(row: &Row<'_>, index: usize) -> usize {
    match row.get_ref(index) {
        Ok(ValueRef::Text(text)) => text.len(),
        _ => 0,
    }
}

fn read(mut rows: rusqlite::Rows<'_>, job: JobId) -> Result<Vec<Node>, Fault> {
    let mut nodes = Vec::new();
    while let Some(row) = rows.next()? {
        nodes.push(decode(row, job)?);
    }
    Ok(nodes)
}

/// Tasks that are executions, by place. What moves of a task is small: all of a job's is read through.
pub(crate) fn active(conn: &Connection, job: i64, after: Option<u32>, max: usize) -> Result<Vec<(u32, ExecutionId)>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT place, execution FROM nodes NOT INDEXED \
         WHERE job = ?1 AND place > ?2 AND phase = 3 AND execution IS NOT NULL ORDER BY place LIMIT ?3",
    )?;
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let rows =
        statement.query_map(params![job, after.map_or(-1, i64::from), limit], |row| Ok((row.get(0)?, row.get::<_, [u8; 16]>(1)?)))?;
    rows.map(|row| row.map(|(place, id)| (place, ExecutionId::from_bytes(id))).map_err(Fault::from)).collect()
}

/// Where every task that is part of a job's graph stands, by place.
pub(crate) fn phases(conn: &Connection, job: i64) -> Result<Vec<(Name, Phase)>, Fault> {
    let mut statement = conn.prepare_cached("SELECT task, phase FROM nodes NOT INDEXED WHERE job = ?1 AND phase > 0 ORDER BY place")?;
    let mut rows = statement.query([job])?;
    let mut phases = Vec::new();
    while let Some(row) = rows.next()? {
        phases.push((name(row, 0)?, phase_of(row.get(1)?)?));
    }
    Ok(phases)
}

/// The children of the task at a place that have not been told that it is done, by place.
pub(crate) fn children(conn: &Connection, job: i64, parent: u32, max: usize) -> Result<Vec<Name>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT n.task FROM edges AS e CROSS JOIN nodes AS n NOT INDEXED ON n.job = e.job AND n.place = e.child \
         WHERE e.job = ?1 AND e.parent = ?2 ORDER BY e.child LIMIT ?3",
    )?;
    let mut rows = statement.query(params![job, parent, i64::try_from(max).unwrap_or(i64::MAX)])?;
    let mut children = Vec::new();
    while let Some(row) = rows.next()? {
        children.push(name(row, 0)?);
    }
    Ok(children)
}

/// Writes a whole task, whether it is there or not.
pub(crate) fn put(conn: &Connection, job: i64, node: &Node) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(
        "INSERT OR REPLACE INTO nodes (job, place, task, batch, phase, marked, generation, looked, open_parents, execution) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    statement.execute(params![
        job,
        node.place,
        node.task.as_str(),
        node.batch.cast_signed(),
        phase_code(node.phase),
        node.marked,
        node.generation,
        node.looked,
        node.open_parents,
        node.execution.as_ref().map(ExecutionId::as_bytes),
    ])?;
    let (input, revision) = (node.input.as_ref(), node.revision.as_deref());
    let body = BodyRef { name: &node.name, depends_on: &node.depends_on, input, spec: &node.spec, revision };
    let mut statement = conn.prepare_cached("INSERT OR REPLACE INTO tasks (id, body, output) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![body_id(job, node.place), json(&body), node.output.as_ref().map(json)])?;
    Ok(())
}

/// Writes what moved of a task.
pub(crate) fn update(conn: &Connection, job: i64, node: &Node) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(
        "UPDATE nodes SET phase = ?3, marked = ?4, generation = ?5, looked = ?6, open_parents = ?7, execution = ?8 \
         WHERE job = ?1 AND place = ?2",
    )?;
    let changed = statement.execute(params![
        job,
        node.place,
        phase_code(node.phase),
        node.marked,
        node.generation,
        node.looked,
        node.open_parents,
        node.execution.as_ref().map(ExecutionId::as_bytes),
    ])?;
    if changed == 1 { Ok(()) } else { Err(Fault::Damaged(format!("task {} of job {} is gone", node.task, node.job))) }
}

/// Writes how many parents of a task are not done.
pub(crate) fn lower(conn: &Connection, job: i64, task: &Name, open_parents: u32) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached("UPDATE nodes SET open_parents = ?3 WHERE job = ?1 AND task = ?2")?;
    let changed = statement.execute(params![job, task.as_str(), open_parents])?;
    if changed == 1 { Ok(()) } else { Err(Fault::Damaged(format!("task {task} is to be told of a parent and not there"))) }
}

/// Writes what a task gave.
pub(crate) fn put_output(conn: &Connection, job: i64, node: &Node) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached("UPDATE tasks SET output = ?2 WHERE id = ?1")?;
    statement.execute(params![body_id(job, node.place), node.output.as_ref().map(json)])?;
    Ok(())
}

/// Writes an edge.
pub(crate) fn put_edge(conn: &Connection, job: i64, parent: u32, child: u32) -> Result<(), Fault> {
    conn.prepare_cached("INSERT INTO edges (job, parent, child) VALUES (?1, ?2, ?3)")?.execute(params![job, parent, child])?;
    Ok(())
}

/// Removes an edge.
pub(crate) fn remove_edge(conn: &Connection, job: i64, parent: u32, child: u32) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached("DELETE FROM edges WHERE job = ?1 AND parent = ?2 AND child = ?3")?;
    statement.execute(params![job, parent, child])?;
    Ok(())
}

/// Forgets the first tasks of a job, `max` at most; tells whether none is left.
pub(crate) fn forget(conn: &Connection, job: i64, max: usize) -> Result<bool, Fault> {
    let mut places = conn.prepare_cached("SELECT place FROM nodes NOT INDEXED WHERE job = ?1 ORDER BY place LIMIT ?2")?;
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let first: Vec<u32> = places.query_map(params![job, limit], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for place in first {
        conn.prepare_cached("DELETE FROM nodes WHERE job = ?1 AND place = ?2")?.execute(params![job, place])?;
        conn.prepare_cached("DELETE FROM tasks WHERE id = ?1")?.execute([body_id(job, place)])?;
    }
    Ok(places.query_row(params![job, 1], |_| Ok(())).optional()?.is_none())
}

fn name(row: &Row<'_>, index: usize) -> Result<Name, Fault> {
    let task: String = row.get(index)?;
    Name::new(task.as_str()).map_err(|_| Fault::Damaged(format!("a task is called {task:?}")))
}

fn decode(row: &Row<'_>, job: JobId) -> Result<Node, Fault> {
    let task = name(row, 1)?;
    let bad = |error: serde_json::Error| Fault::Damaged(format!("task {task} of job {job} cannot be read: {error}"));
    let Body { name, depends_on, input, spec, revision } = serde_json::from_slice(text(row, 9)?).map_err(bad)?;
    let output: Option<String> = row.get(10)?;
    let execution: Option<[u8; 16]> = row.get(8)?;
    Ok(Node {
        job,
        place: row.get(0)?,
        batch: row.get::<_, i64>(2)?.cast_unsigned(),
        phase: phase_of(row.get(3)?)?,
        marked: row.get(4)?,
        generation: row.get(5)?,
        looked: row.get(6)?,
        open_parents: row.get(7)?,
        execution: execution.map(ExecutionId::from_bytes),
        output: output.map(|output| serde_json::from_str(&output)).transpose().map_err(bad)?,
        name,
        depends_on,
        input,
        spec,
        revision,
        task,
    })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("model types can be written as JSON")
}
