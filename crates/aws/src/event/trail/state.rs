//! Everything that is kept beside the events against the events themselves: executions, jobs with their tasks, locks, records. There is no snapshot over several
//! items; but each has a version, so that what did not change while its events were read belongs together, and what did is read again.

use runvoy_model::digest::DigestsSince;
use runvoy_model::event::Entity;
use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::fold::{Comparison, ExecutionFold, JobCheck, Mismatch, compare_lock};
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::{Job, JobStatus, Node};
use runvoy_model::lock::Lock;
use runvoy_ports::job::JobQuery;
use runvoy_ports::store::{EventQuery, ListQuery, LockLine, StoreError, StoredEvent};

use super::{Trail, record};
use crate::dynamo::pause;
use crate::fault::Fault;

/// A page of executions, jobs or tasks.
const PAGE: usize = 200;
/// So often something that changes all the time is looked at. What never holds still is not compared, and nothing wrong is said of it.
pub(super) const TRIES: u32 = 12;

/// Compares all there is.
pub(super) async fn compare(trail: &Trail) -> Result<Comparison, StoreError> {
    let mut found = Comparison::default();
    let digests = digests_since(trail).await?;
    executions(trail, digests, &mut found).await?;
    jobs(trail, digests, &mut found).await?;
    for LockLine { lock, .. } in trail.executions.locks().await? {
        if let Some(compared) = held(trail, lock, digests).await? {
            found.add(compared);
        }
    }
    record::compare(trail, &mut found).await?;
    Ok(found)
}

/// Since when the events of the log hold digests: with its first event, unless an older version
/// made it. Pages grow, because the first one tells as a rule, and events behind it may be damaged.
/// After a damaged place every event must hold digests, so that removing one helps no attacker.
async fn digests_since(trail: &Trail) -> Result<DigestsSince, StoreError> {
    let (mut after, mut limit) = (None, 1);
    loop {
        let page = match trail.log.events(EventQuery { after, limit, ..EventQuery::default() }).await {
            Err(Fault::Damaged(_)) => return Ok(DigestsSince::new(Some(after.unwrap_or_default()))),
            page => page?,
        };
        limit = PAGE.min(limit * 2);
        let found = DigestsSince::among(page.iter().map(|stored| (stored.place, &stored.event.properties)));
        if found != DigestsSince::default() {
            return Ok(found);
        }
        match page.last() {
            Some(last) => after = Some(last.place),
            None => return Ok(DigestsSince::default()),
        }
    }
}

async fn executions(trail: &Trail, digests: DigestsSince, found: &mut Comparison) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = trail.executions.list(ListQuery { after, limit: PAGE, ..ListQuery::default() }).await?;
        let Some(last) = page.last().map(|execution| execution.id) else { return Ok(()) };
        for execution in page {
            if let Some((_, compared)) = execution_alone(trail, execution.id, digests).await? {
                found.unverifiable += u64::from(compared.as_ref().is_ok_and(ExecutionFold::is_unverifiable));
                found.add(compared.map(drop));
            }
        }
        after = Some(last);
    }
}

type Folded = (Execution, Result<ExecutionFold, Mismatch>);

/// An execution, what its events say, and whether that is the same; `None` where it is not there, or never held still.
async fn execution_alone(trail: &Trail, id: ExecutionId, digests: DigestsSince) -> Result<Option<Folded>, StoreError> {
    for attempt in 1..=TRIES {
        let Some(before) = trail.executions.get(id).await? else { return Ok(None) };
        let lock = lock_of(trail, &before).await?;
        let about = Entity::task(id);
        let mut fold = ExecutionFold::default();
        let events = events_of(trail, about.clone()).await?;
        let folded = events.iter().try_for_each(|stored| fold.next(stored.place, &stored.event));
        let folded = folded.map_err(|impossible| Mismatch::of(&about, "events", impossible.to_string()));
        let compared = folded.and_then(|()| fold.compare(&before, lock.as_ref(), digests));
        let is_still = trail.executions.get(id).await?.is_some_and(|now| now.version == before.version);
        if is_still {
            return Ok(Some((before, compared.map(|()| fold))));
        }
        pause(attempt).await;
    }
    Ok(None)
}

/// The lock that an execution says it holds.
async fn lock_of(trail: &Trail, execution: &Execution) -> Result<Option<Lock>, StoreError> {
    let (LockClaim::Held { .. }, Some(name)) = (&execution.lock, &execution.spec.lock) else { return Ok(None) };
    Ok(trail.executions.locks().await?.into_iter().map(|line| line.lock).find(|lock| lock.name == *name))
}

async fn held(trail: &Trail, mut lock: Lock, digests: DigestsSince) -> Result<Option<Result<(), Mismatch>>, StoreError> {
    for attempt in 1..=TRIES {
        let Some(holder) = lock.holder.as_ref().map(|holder| holder.execution) else { return Ok(None) };
        let execution = execution_alone(trail, holder, digests).await?;
        let compared = match &execution {
            Some((execution, Ok(fold))) => compare_lock(&lock, Some((execution, fold))),
            // That its own record does not fit was said already.
            Some((_, Err(_))) => Ok(()),
            None => compare_lock(&lock, None),
        };
        let now = trail.executions.locks().await?.into_iter().map(|line| line.lock).find(|now| now.name == lock.name);
        match now {
            Some(now) if now == lock => return Ok(Some(compared)),
            Some(now) => lock = now,
            None => return Ok(None),
        }
        pause(attempt).await;
    }
    Ok(None)
}

async fn jobs(trail: &Trail, digests: DigestsSince, found: &mut Comparison) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let query = JobQuery { statuses: JobStatus::ALL.to_vec(), after, limit: PAGE, ..JobQuery::default() };
        let page = trail.jobs.jobs(query).await?;
        let Some(last) = page.last().map(|job| job.id) else { return Ok(()) };
        for job in page {
            if let Some(compared) = one_job(trail, job.id, digests).await? {
                found.join(compared);
            }
        }
        after = Some(last);
    }
}

async fn one_job(trail: &Trail, id: JobId, digests: DigestsSince) -> Result<Option<Comparison>, StoreError> {
    let mut compared = None;
    for attempt in 1..=TRIES {
        let Some(before) = trail.jobs.job(id).await? else { return Ok(None) };
        let version = before.version;
        compared = compare_job(trail, before, digests).await?;
        let is_still = trail.jobs.job(id).await?.is_some_and(|now| now.version == version);
        // Its executions are found by an index that may lag: what does not fit is looked at once more.
        if is_still && compared.as_ref().is_some_and(|compared| compared.agrees() || attempt > TRIES / 2) {
            return Ok(compared);
        }
        pause(attempt).await;
    }
    Ok(compared.filter(Comparison::agrees))
}

/// A job as it was read; `None` where one of its executions never held still.
async fn compare_job(trail: &Trail, job: Job, digests: DigestsSince) -> Result<Option<Comparison>, StoreError> {
    let id = job.id;
    let mut check = JobCheck::new(job, digests);
    let mut executions = Vec::new();
    let mut after = None;
    loop {
        let page = trail.executions.list(ListQuery { job: Some(id), after, limit: PAGE, ..ListQuery::default() }).await?;
        let Some(last) = page.last().map(|execution| execution.id) else { break };
        executions.extend(page.into_iter().map(|execution| execution.id));
        after = Some(last);
    }
    for stored in events_of(trail, Entity::job(id)).await? {
        check.event(stored.place, &stored.event);
    }
    for id in executions.into_iter().rev() {
        match execution_alone(trail, id, digests).await? {
            Some((execution, Ok(fold))) => check.execution(&execution, &fold),
            // That was said of the execution itself.
            Some((_, Err(_))) => {}
            None => return Ok(None),
        }
    }
    let nodes = nodes(trail, id).await?;
    nodes.iter().for_each(|node| check.node(node));
    nodes.iter().for_each(|node| check.parents(node));
    Ok(Some(check.finish()))
}

async fn nodes(trail: &Trail, job: JobId) -> Result<Vec<Node>, StoreError> {
    let mut nodes: Vec<Node> = Vec::new();
    loop {
        let page = trail.jobs.nodes(job, nodes.last().map(|last| last.place), PAGE).await?;
        if page.is_empty() {
            return Ok(nodes);
        }
        nodes.extend(page);
    }
}

pub(super) async fn events_of(trail: &Trail, entity: Entity) -> Result<Vec<StoredEvent>, StoreError> {
    Ok(trail.log.events(EventQuery { entity: Some(entity), limit: usize::MAX, ..EventQuery::default() }).await?)
}
