//! Locks and the lines before them. A lock is one item; whoever waits has a ticket beside it, in the order of their coming. The lock's guard
//! rises with every change of the lock or of its line, so that nobody can be overlooked between a look at the line and a hand-over.

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::lock::{Holder, Lock};
use runvoy_model::name::Name;
use runvoy_ports::store::LockLine;

use crate::desk::SeenLock;
use crate::dynamo::{Dynamo, Query};
use crate::fault::Fault;
use crate::item::{Item, Read, item, json, n, s};
use crate::table::Table;
use crate::timestamp::iso;

/// The entry of the lock itself.
const LOCK: &str = "lock";
/// Before the entry of every ticket.
const TICKET: &str = "wait#";

/// A lock as it is now.
pub(crate) async fn read(dynamo: &Dynamo, name: &Name) -> Result<Option<SeenLock>, Fault> {
    dynamo.get(Table::Locks, key(name)).await?.map(|found| decode(&found)).transpose()
}

/// The first in line, as it is now.
pub(crate) async fn first_waiter(dynamo: &Dynamo, name: &Name) -> Result<Option<ExecutionId>, Fault> {
    let first = dynamo.query(line(name).limit(1)).await?;
    first.first().map(waiter).transpose()
}

/// Every lock that is held, with its line.
pub(crate) async fn held(dynamo: &Dynamo, recent: Vec<Name>) -> Result<Vec<LockLine>, Fault> {
    let named = dynamo.query(Query::of(Table::Locks, "held", s("held")).index("held-index")).await?;
    let mut names = recent;
    for found in &named {
        let text = found.text("lock_name")?;
        names.push(Name::new(text).map_err(|_| Fault::Damaged(format!("{text:?} is no name of a lock")))?);
    }
    names.sort_unstable();
    names.dedup();
    let mut lines = Vec::with_capacity(names.len());
    for name in names {
        let Some(seen) = read(dynamo, &name).await?.filter(|seen| seen.lock.holder.is_some()) else { continue };
        let waiters = dynamo.query(line(&name)).await?.iter().map(waiter).collect::<Result<_, _>>()?;
        lines.push(LockLine { lock: seen.lock, waiters });
    }
    Ok(lines)
}

/// The lock as an item.
pub(crate) fn encode(lock: &Lock, guard: u64) -> Item {
    let mut encoded = key(&lock.name);
    encoded.extend(item([("fence", n(lock.fence)), ("guard", n(guard))]));
    if let Some(holder) = &lock.holder {
        encoded.extend(item([
            ("holder", json(holder)),
            ("held", s("held")),
            ("execution_id", s(holder.execution.to_string())),
            ("user_email", s(&holder.held_by)),
            ("acquired_at", s(iso(holder.since))),
        ]));
    }
    encoded
}

/// A ticket as an item.
pub(crate) fn ticket_item(name: &Name, ticket: &str, execution: &Execution) -> Item {
    let mut encoded = ticket_key(name, ticket);
    encoded.extend(item([("execution_id", s(execution.id.to_string())), ("user_email", s(&execution.created_by))]));
    encoded
}

/// The ticket of the `index`th newcomer of the step that raises the guard to this.
pub(crate) fn ticket(guard: u64, index: usize) -> String {
    format!("{TICKET}{guard:020}#{index:04}")
}

/// The key of a ticket.
pub(crate) fn ticket_key(name: &Name, ticket: &str) -> Item {
    item([("lock_name", s(name.as_str())), ("entry", s(ticket))])
}

/// The key of a lock.
pub(crate) fn key(name: &Name) -> Item {
    item([("lock_name", s(name.as_str())), ("entry", s(LOCK))])
}

fn line(name: &Name) -> Query {
    Query::of(Table::Locks, "lock_name", s(name.as_str())).range("entry", "begins_with(#r, :r)", vec![(":r", s(TICKET))])
}

fn waiter(ticket: &Item) -> Result<ExecutionId, Fault> {
    let text = ticket.text("execution_id")?;
    text.parse().map_err(|_| Fault::Damaged(format!("a ticket is of no execution: {text}")))
}

fn decode(found: &Item) -> Result<SeenLock, Fault> {
    let text = found.text("lock_name")?;
    let name = Name::new(text).map_err(|_| Fault::Damaged(format!("{text:?} is no name of a lock")))?;
    let holder: Option<Holder> = found.contains_key("holder").then(|| found.json("holder")).transpose()?;
    Ok(SeenLock { lock: Lock { name, holder, fence: found.number("fence")? }, guard: found.number("guard")? })
}
