//! Dead letters run again. Each becomes a new execution of the same work, for the same owner, and loses its mark in the same step; a task of a job
//! becomes ready in its job, which makes the execution when its turn comes. What cannot run again is said for each, and keeps nobody else waiting.
//!
//! What holds of it: a dead letter runs again at most once, because the mark goes with it; what was run again before is answered with what it became;
//! other failed tasks of the same job stay as they are; nothing runs for an owner who could not run it; and what can never run again loses its mark.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::json;

use super::end::LOST;
use super::submit::{claim_lock, new_execution};
use super::{Decision, audit_change, incident, properties, refuse};
use crate::change::Made;
use crate::command::{Answer, Refusal, Submit};
use crate::event::{Entity, EventType};
use crate::execution::Execution;
use crate::id::{ExecutionId, JobId};
use crate::incident::{IncidentKind, name_for};
use crate::job::{Job, JobStatus, Phase, TaskRef};
use crate::name::Name;
use crate::record::{Body, Kind, owner_record};
use crate::redrive::{Fate, Letter, Redrive, Redriven, RedrivenAs};
use crate::role::{Action, Reach, reach};
use crate::step::Step;
use crate::view::{View, Writes};

pub(super) fn redrive<V: View>(view: &mut V, step: &Step, redrive: &Redrive) -> Decision<V::Error> {
    if let Some(key) = &redrive.key
        && let Some((made, fingerprint)) = view.submitted(&key.user, &key.key)?
    {
        return match made {
            Made::Redrive(letters) if fingerprint == key.fingerprint => {
                Ok((Writes::default(), Answer::Redriven { letters, repeated: true }))
            }
            made => refuse(Refusal::KeyReused(made)),
        };
    }
    let most = view.limits().letters;
    if redrive.letters.len() > most {
        return refuse(Refusal::TooMany(format!("{most} dead letters run again in one step, not {}", redrive.letters.len())));
    }
    let mut round = Round { view, step, writes: Writes::default(), jobs: BTreeMap::new(), letters: Vec::new() };
    for letter in &redrive.letters {
        round.take(*letter)?;
    }
    let (mut writes, mut letters) = round.close();
    letters.extend(redrive.settled.iter().cloned());
    writes.key = redrive.key.clone().map(|key| (key, Made::Redrive(letters.clone())));
    Ok((writes, Answer::Redriven { letters, repeated: false }))
}

/// Takes the mark off an execution whose work goes on elsewhere.
pub(super) fn goes_on<V: View>(
    view: &mut V,
    step: &Step,
    execution: &mut Execution,
    again: RedrivenAs,
    writes: &mut Writes,
) -> Result<(), V::Error> {
    execution.redriven = Some(again);
    unmark(view, step, execution, &format!("{} had it run again", step.actor.name()), writes)
}

/// Writes an execution without its mark whose work never goes on, or went on without it.
pub(super) fn drop_letter<V: View>(
    view: &mut V,
    step: &Step,
    mut execution: Execution,
    why: &str,
    writes: &mut Writes,
) -> Result<(), V::Error> {
    unmark(view, step, &mut execution, why, writes)?;
    writes.put(execution, step);
    Ok(())
}

fn unmark<V: View>(view: &mut V, step: &Step, execution: &mut Execution, why: &str, writes: &mut Writes) -> Result<(), V::Error> {
    execution.dead = false;
    incident::end(view, step, &name_for(IncidentKind::Dead, execution.id), why, writes)
}

/// Why an owner may not have work run, where that is so. It takes what a new run takes: somebody who is there, with a role that runs.
fn barred<V: View>(view: &mut V, owner: &str) -> Result<Option<String>, V::Error> {
    // Whoever submitted something has a record; it stays when they are revoked.
    let (kind, name) = owner_record(owner);
    let Some(record) = view.record(kind, name)? else { return Ok(None) };
    let standing = match &record.body {
        Some(Body::User(user)) if user.revoked_at.is_none() => Some((user.role, reach(user.role, Action::Run))),
        Some(Body::Worker(account)) if account.revoked_at.is_none() => Some((account.role, account.reach(Action::Run))),
        _ => None,
    };
    Ok(match standing {
        None => Some(format!("its owner {owner} was revoked")),
        Some((role, Reach::None)) => Some(format!("its owner {owner} is {} and may no longer run it", role.as_str())),
        Some(_) => None,
    })
}

/// The dead letters of one step.
struct Round<'v, V: View> {
    view: &'v mut V,
    step: &'v Step,
    writes: Writes,
    /// The jobs that were looked at, each with the tasks of it that run again.
    jobs: BTreeMap<JobId, (Job, Vec<Name>)>,
    letters: Vec<Redriven>,
}

impl<V: View> Round<'_, V> {
    fn take(&mut self, letter: Letter) -> Result<(), V::Error> {
        let fate = self.fate(letter)?;
        self.letters.push(Redriven { execution: letter.execution, fate });
        Ok(())
    }

    fn fate(&mut self, letter: Letter) -> Result<Fate, V::Error> {
        let known = self.letters.iter().find(|known| known.execution == letter.execution);
        if let Some(known) = known {
            return Ok(known.fate.clone());
        }
        let Some(execution) = self.view.execution(letter.execution)? else {
            return Ok(refused(&Refusal::NotFound));
        };
        match (&execution.redriven, &execution.spec.task) {
            (Some(RedrivenAs { execution: Some(again), .. }), _) => Ok(Fate::Execution(*again)),
            (Some(_), Some(task)) => Ok(Fate::Job(task.job)),
            _ if !execution.dead => Ok(refused(&Refusal::NotDead(execution.id, execution.status))),
            (_, Some(task)) => {
                let task = task.clone();
                self.resume_task(execution, task)
            }
            (_, None) if execution.spec.is_lost() => self.drop_letter(execution, LOST.to_owned()),
            (_, None) => self.run_again(execution, letter),
        }
    }

    fn again(&self, execution: Option<ExecutionId>) -> RedrivenAs {
        RedrivenAs { at: self.step.at, by: self.step.actor.name(), execution }
    }

    fn run_again(&mut self, mut old: Execution, letter: Letter) -> Result<Fate, V::Error> {
        if let Some(why) = barred(self.view, &old.created_by)? {
            return Ok(Fate::Refused(why));
        }
        if self.view.execution(letter.again)?.is_some() {
            return Ok(refused(&Refusal::Exists(letter.again)));
        }
        let submit = Submit { id: letter.again, spec: old.spec.clone(), created_by: old.created_by.clone(), key: None, lease_to: None };
        let mut new = Execution { owned_by: old.owned_by.clone(), ..new_execution(self.step, &submit) };
        match claim_lock(self.view, self.step, &new, &self.writes)? {
            Err(held) => return Ok(refused(&Refusal::LockHeld(Box::new(held)))),
            Ok((claim, lock)) => {
                new.lock = claim;
                self.writes.locks.extend(lock);
            }
        }
        let again = self.again(Some(new.id));
        goes_on(self.view, self.step, &mut old, again, &mut self.writes)?;
        audit_change(&mut self.writes, self.step, &old, Some(json!({"redrivenAs": new.id})));
        let pending = json!({"name": "run", "attempt": 1, "queue": new.spec.queue, "redriveOf": old.id});
        self.writes.event(self.step, new.id, EventType::TaskPending, properties(&new, pending));
        let fate = Fate::Execution(new.id);
        self.writes.put(old, self.step);
        self.writes.put(new, self.step);
        Ok(fate)
    }

    /// What can never run again, so that it need not wait for anybody.
    fn drop_letter(&mut self, old: Execution, why: String) -> Result<Fate, V::Error> {
        audit_change(&mut self.writes, self.step, &old, Some(json!({"dropped": why})));
        drop_letter(self.view, self.step, old, &why, &mut self.writes)?;
        Ok(Fate::Dropped(why))
    }

    fn resume_task(&mut self, mut old: Execution, task: TaskRef) -> Result<Fate, V::Error> {
        let again = self.again(None);
        let (job, tasks) = match self.jobs.entry(task.job) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => match self.view.job(task.job)? {
                Some(job) => place.insert((job, Vec::new())),
                None => return self.drop_letter(old, Refusal::Missing(Kind::Job, task.job.to_string()).to_string()),
            },
        };
        if !job.status.is_open() {
            let why = Refusal::JobClosed(job.id, job.status).to_string();
            return self.drop_letter(old, why);
        }
        if job.resuming {
            return Ok(refused(&Refusal::Stale(Kind::Job, job.id.to_string())));
        }
        if let Some(why) = barred(self.view, &job.created_by)? {
            return Ok(Fate::Refused(why));
        }
        let node = self.view.node(task.job, task.task.as_str())?;
        let Some(mut node) = node.filter(|node| node.execution == Some(old.id) && node.phase == Phase::Failed) else {
            return self.drop_letter(old, format!("task {} of job {} has gone on without it", task.task, task.job));
        };
        if node.runs().is_lost() {
            return self.drop_letter(old, LOST.to_owned());
        }
        if tasks.is_empty() {
            // A resume, though of these tasks alone: a generation of its own, in which a failure is told once more.
            job.generation += 1;
            (job.status, job.failure_told, job.failed_task, job.attention) = (JobStatus::Running, false, None, true);
        }
        job.counts.failed -= 1;
        job.counts.ready += 1;
        (node.phase, node.generation) = (Phase::Ready, job.generation);
        self.writes.nodes.push(node);
        tasks.push(task.task);
        goes_on(self.view, self.step, &mut old, again, &mut self.writes)?;
        self.writes.put(old, self.step);
        Ok(Fate::Job(task.job))
    }

    fn close(mut self) -> (Writes, Vec<Redriven>) {
        for (job, tasks) in std::mem::take(&mut self.jobs).into_values().filter(|(_, tasks)| !tasks.is_empty()) {
            // Whoever asked for it: no other event tells of the job's new generation.
            let (action, from) =
                self.step.audit.as_ref().map_or(("queues.redrive", ""), |audit| (audit.action.as_str(), audit.from.as_str()));
            let properties = json!({
                "jobId": job.id,
                "user": self.step.actor.name(),
                "action": action,
                "from": from,
                "result": "ok",
                "apiRequestId": self.step.request_id,
                "change": {"redriven": tasks, "generation": job.generation},
            });
            self.writes.event_about(self.step, Entity::job(job.id), EventType::Audit, properties);
            self.writes.put_job(job, self.step);
        }
        (self.writes, self.letters)
    }
}

fn refused(refusal: &Refusal) -> Fate {
    Fate::Refused(refusal.to_string())
}
