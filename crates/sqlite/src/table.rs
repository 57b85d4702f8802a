//! The jobs and tasks that one step looks at and writes: where their rows are and how they were, so that a write touches only what changed.

use std::collections::HashMap;

use runvoy_model::id::JobId;
use runvoy_model::job::{Job, Node, Phase};
use runvoy_model::limit::StepLimits;
use runvoy_model::name::Name;
use runvoy_model::view::{Standing, Writes};
use rusqlite::Connection;

use crate::fault::Fault;
use crate::job::{self, Columns};
use crate::node;

/// What a step has seen.
#[derive(Debug, Default)]
pub(crate) struct Table {
    jobs: Vec<SeenJob>,
    /// By the place of the job and the name of the task.
    tasks: HashMap<(i64, Name), SeenTask>,
}

#[derive(Debug)]
struct SeenJob {
    id: JobId,
    seq: i64,
    /// Absent where only its place was asked for.
    columns: Option<Columns>,
}

#[derive(Debug, Clone, Copy)]
struct SeenTask {
    place: u32,
    /// Absent where only its phase was asked for.
    whole: Option<Whole>,
}

/// What tells whether the part of a task that is written once has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Whole {
    batch: u64,
    /// The generation that it was last changed in.
    revised: Option<u32>,
    has_output: bool,
}

impl Whole {
    fn of(node: &Node) -> Self {
        let revised = node.revision.as_ref().map(|revision| revision.generation);
        Self { batch: node.batch, revised, has_output: node.output.is_some() }
    }
}

impl Table {
    pub(crate) fn job(&mut self, conn: &Connection, id: JobId) -> Result<Option<Job>, Fault> {
        let Some(found) = job::by_id(conn, id)? else { return Ok(None) };
        self.saw_job(id, found.seq, Columns::of(&found.job));
        Ok(Some(found.job))
    }

    fn saw_job(&mut self, id: JobId, seq: i64, columns: Columns) {
        let columns = Some(columns);
        match self.jobs.iter_mut().find(|seen| seen.id == id) {
            Some(seen) => seen.columns = columns,
            None => self.jobs.push(SeenJob { id, seq, columns }),
        }
    }

    /// The place of a job, if it is there.
    fn find(&mut self, conn: &Connection, id: JobId) -> Result<Option<i64>, Fault> {
        if let Some(seen) = self.jobs.iter().find(|seen| seen.id == id) {
            return Ok(Some(seen.seq));
        }
        let found = job::seq_of(conn, id)?;
        self.jobs.extend(found.map(|seq| SeenJob { id, seq, columns: None }));
        Ok(found)
    }

    /// The place of a job that something refers to.
    pub(crate) fn seq(&mut self, conn: &Connection, id: JobId) -> Result<i64, Fault> {
        self.find(conn, id)?.ok_or_else(|| Fault::Damaged(format!("job {id} is referred to and not there")))
    }

    pub(crate) fn node(&mut self, conn: &Connection, id: JobId, task: &str) -> Result<Option<Node>, Fault> {
        let Some(seq) = self.find(conn, id)? else { return Ok(None) };
        let found = node::by_task(conn, (seq, id), task)?;
        found.iter().for_each(|node| self.saw(seq, node));
        Ok(found)
    }

    pub(crate) fn phase(&mut self, conn: &Connection, id: JobId, task: &str) -> Result<Option<Phase>, Fault> {
        let Some(seq) = self.find(conn, id)? else { return Ok(None) };
        let Some((place, phase)) = node::phase(conn, seq, task)? else { return Ok(None) };
        if let Ok(task) = Name::new(task) {
            self.tasks.entry((seq, task)).or_insert(SeenTask { place, whole: None });
        }
        Ok(Some(phase))
    }

    pub(crate) fn staged(&mut self, conn: &Connection, id: JobId, batch: u64) -> Result<u32, Fault> {
        match self.find(conn, id)? {
            Some(seq) => node::staged(conn, seq, batch),
            None => Ok(0),
        }
    }

    pub(crate) fn open_parents(&mut self, conn: &Connection, id: JobId, task: &str) -> Result<Option<u32>, Fault> {
        match self.find(conn, id)? {
            Some(seq) => node::open_parents(conn, seq, task),
            None => Ok(None),
        }
    }

    pub(crate) fn nodes(&mut self, conn: &Connection, id: JobId, standing: Standing, max: usize) -> Result<Vec<Node>, Fault> {
        let Some(seq) = self.find(conn, id)? else { return Ok(Vec::new()) };
        let found = node::standing(conn, (seq, id), standing, max)?;
        found.iter().for_each(|node| self.saw(seq, node));
        Ok(found)
    }

    pub(crate) fn children(&mut self, conn: &Connection, id: JobId, parent: &str, max: usize) -> Result<Vec<Name>, Fault> {
        let Some(seq) = self.find(conn, id)? else { return Ok(Vec::new()) };
        match node::phase(conn, seq, parent)? {
            Some((place, _)) => node::children(conn, seq, place, max),
            None => Ok(Vec::new()),
        }
    }

    pub(crate) fn phases(&mut self, conn: &Connection, id: JobId) -> Result<Vec<(Name, Phase)>, Fault> {
        match self.find(conn, id)? {
            Some(seq) => node::phases(conn, seq),
            None => Ok(Vec::new()),
        }
    }

    fn saw(&mut self, seq: i64, node: &Node) {
        self.tasks.insert((seq, node.task.clone()), SeenTask { place: node.place, whole: Some(Whole::of(node)) });
    }

    pub(crate) fn put_job(&mut self, conn: &Connection, job: &Job) -> Result<(), Fault> {
        let seen = self.jobs.iter().find(|seen| seen.id == job.id);
        let seq = match seen {
            Some(SeenJob { seq, columns: Some(columns), .. }) => {
                job::update(conn, *seq, *columns, job)?;
                *seq
            }
            None if job.version == 1 => job::insert(conn, job)?,
            _ => return Err(Fault::Damaged(format!("job {} was changed without being read first", job.id))),
        };
        self.saw_job(job.id, seq, Columns::of(job));
        Ok(())
    }

    /// Writes everything of jobs but the jobs themselves.
    pub(crate) fn write(&mut self, conn: &Connection, writes: &Writes) -> Result<(), Fault> {
        for node in &writes.nodes {
            self.put_node(conn, node)?;
        }
        for (job, task, open_parents) in &writes.lowered {
            let seq = self.seq(conn, *job)?;
            node::lower(conn, seq, task, *open_parents)?;
        }
        for (job, parent, child) in &writes.edges {
            let (seq, parent, child) = self.edge(conn, *job, parent, child)?;
            node::put_edge(conn, seq, parent, child)?;
        }
        for (job, parent, child) in &writes.told_edges {
            let (seq, parent, child) = self.edge(conn, *job, parent, child)?;
            node::remove_edge(conn, seq, parent, child)?;
        }
        for job in &writes.forgotten {
            let seq = self.seq(conn, *job)?;
            if node::forget(conn, seq, StepLimits::ONE_WRITER.forgotten)? {
                job::delete(conn, seq)?;
            }
        }
        Ok(())
    }

    fn put_node(&mut self, conn: &Connection, node: &Node) -> Result<(), Fault> {
        let seq = self.seq(conn, node.job)?;
        let seen = self.tasks.get(&(seq, node.task.clone())).and_then(|seen| seen.whole);
        match seen {
            Some(seen) if (seen.batch, seen.revised) == (node.batch, Whole::of(node).revised) => {
                node::update(conn, seq, node)?;
                if seen.has_output != node.output.is_some() {
                    node::put_output(conn, seq, node)?;
                }
            }
            _ => node::put(conn, seq, node)?,
        }
        self.saw(seq, node);
        Ok(())
    }

    fn edge(&mut self, conn: &Connection, id: JobId, parent: &Name, child: &Name) -> Result<(i64, u32, u32), Fault> {
        let seq = self.seq(conn, id)?;
        Ok((seq, self.place(conn, seq, parent)?, self.place(conn, seq, child)?))
    }

    fn place(&self, conn: &Connection, seq: i64, task: &Name) -> Result<u32, Fault> {
        if let Some(seen) = self.tasks.get(&(seq, task.clone())) {
            return Ok(seen.place);
        }
        let found = node::phase(conn, seq, task.as_str())?;
        found.map(|(place, _)| place).ok_or_else(|| Fault::Damaged(format!("task {task} is referred to and not there")))
    }
}
