//! What is left of an execution whose item cannot be read whole: its spec is not in the blob store any more, or the item was damaged. It can be
//! shown, killed and given up by what the item and its events still say; never run. What cannot be read stays in the item for whoever looks.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runvoy_model::chain::ChainHead;
use runvoy_model::event::Entity;
use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::fold::ExecutionFold;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::spec::{DEFAULT_PRIORITY, DEFAULT_QUEUE, LOCAL_IMAGE, Needs, Spec};
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventQuery, StoredEvent};

use crate::fault::Fault;
use crate::item::{Item, Read, item, n, s};
use crate::stand::{Line, ready_place};
use crate::store::DynamoStore;

/// What a write leaves as it is, because nobody could read it.
const KEPT: [&str; 5] = ["spec", "spec_blob", "command", "outline", "damaged_state"];
/// What an execution needs, as a word. Part of the format.
const PROCESS: &str = "process";
const IMAGE: &str = "image";
/// So many events are read at once.
const PAGE: usize = 500;
/// So often a lease must have met one that cannot be read before it is given up.
const TRIES: u32 = 5;
/// So many are remembered that were told of.
const MOST_TOLD: usize = 10_000;
/// What nobody has met for so long is not in the line any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// Why an execution cannot be read whole, and what of its item is kept.
#[derive(Debug, Clone)]
pub(crate) struct Lost {
    pub why: String,
    /// It is gone, whoever looks; else another server or another time may read it, and it is only passed by.
    pub is_final: bool,
    /// Not only the spec, but where it stands.
    pub is_state_lost: bool,
    kept: Item,
}

impl Lost {
    pub fn of(item: &Item, fault: &Fault, is_state_lost: bool) -> Self {
        let mut kept: Item = KEPT.iter().filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone()))).collect();
        if is_state_lost && let Some(state) = item.get("state") {
            kept.insert("damaged_state".to_owned(), state.clone());
        }
        Self { why: fault.to_string(), is_final: matches!(fault, Fault::Damaged(_)), is_state_lost, kept }
    }

    /// Makes an item of what is left: what is known beside what could not be read.
    pub fn keep(&self, item: &mut Item) {
        if let Some(outline) = item.remove("spec") {
            item.insert("outline".to_owned(), outline);
        }
        item.extend(self.kept.clone());
    }
}

/// What is known of a spec without it: enough to say where its execution stands, and to end it.
pub(crate) fn outline(item: &Item) -> Result<Spec, Fault> {
    if let Ok(outline) = item.json::<Spec>("outline") {
        return Ok(outline);
    }
    let (line, queue) = match item.text_if("stand").map(Line::of_partition) {
        Some(Some((line, queue))) => (Some(line), queue),
        Some(None) => return Err(Fault::Damaged(format!("where execution {} stands cannot be read", item.text("execution_id")?))),
        None => (None, Name::new(DEFAULT_QUEUE).expect("a constant name")),
    };
    let place = item.text_if("stand_sort").filter(|_| matches!(line, Some(Line::Ready(_)))).and_then(ready_place);
    let priority = place.map(|place| place.priority).or(item.number_if("priority")?);
    let mut spec = Spec::lost(queue, priority.unwrap_or(DEFAULT_PRIORITY));
    if line == Some(Line::Ready(Needs::Process)) || item.text_if("needs") == Some(PROCESS) {
        LOCAL_IMAGE.clone_into(&mut spec.image);
    }
    spec.lock = item.text_if("lock_name").and_then(|name| Name::new(name).ok());
    spec.task = item.text_if("job_id").map(|_| item.json("task")).transpose()?;
    Ok(spec)
}

/// What is known of an execution that waits without its state; its events know the rest.
pub(crate) fn waiting(item: &Item) -> Result<Execution, Fault> {
    let id = item.text("execution_id")?;
    let unknown = || Fault::Damaged(format!("the state of execution {id} cannot be read"));
    let is_ready = item.text_if("stand").and_then(Line::of_partition).is_some_and(|(line, _)| matches!(line, Line::Ready(_)));
    if item.text_if("status").and_then(Status::parse) != Some(Status::Pending) || !is_ready {
        return Err(unknown());
    }
    let ready_at = item.text_if("stand_sort").and_then(ready_place).ok_or_else(unknown)?.ready_at;
    let submitted: jiff::Timestamp = item.text("created_at")?.parse().map_err(|_| unknown())?;
    let created_by = item.text("user_email")?.to_owned();
    let owners = item.get("owners").and_then(|owners| owners.as_l().ok()).into_iter().flatten();
    let owned_by = owners.filter_map(|owner| owner.as_s().ok()).cloned().collect();
    let spec = outline(item)?;
    Ok(Execution {
        id: id.parse().map_err(|_| unknown())?,
        // Whoever can be leased holds the lock that it asked for; which hand-over that was is not looked at when it ends.
        lock: spec.lock.as_ref().map_or(LockClaim::None, |_| LockClaim::Held { fence: 0 }),
        spec,
        created_by,
        owned_by,
        created_by_request_id: item.text("request_id")?.to_owned(),
        modified_by_request_id: item.text("request_id")?.to_owned(),
        submitted_at: UnixMs(submitted.as_millisecond()),
        status: Status::Pending,
        attempt: 0,
        ready_at,
        started_at: None,
        attempt_started_at: None,
        completed_at: None,
        exit_code: None,
        end_reason: None,
        lease: None,
        ran_on: None,
        kill: None,
        log_end: None,
        cost_micro_usd: None,
        dead: false,
        error_category: None,
        server_deaths: 0,
        redriven: None,
        chain: ChainHead::default(),
        version: item.number("version")?,
    })
}

impl DynamoStore {
    /// Adds what only the events of an execution know: how often it was begun, and where its chain ends.
    pub(crate) async fn recall(&self, execution: &mut Execution) -> Result<(), Fault> {
        let (mut after, mut fold) = (None, ExecutionFold::default());
        loop {
            let entity = Some(Entity::task(execution.id));
            let events = self.events.events(EventQuery { entity, after, limit: PAGE, ..EventQuery::default() }).await?;
            for StoredEvent { place, event } in &events {
                after = Some(*place);
                if event.kind.is_chained() {
                    execution.chain = ChainHead { count: event.number, mac: event.mac };
                }
                // What cannot follow what is there changes nothing; `audit verify` tells of it.
                let _ = fold.next(*place, event);
            }
            if events.len() < PAGE {
                (execution.attempt, execution.started_at, execution.attempt_started_at) = fold.attempts();
                return Ok(());
            }
        }
    }
}

/// Executions that could be leased and could not be read, as the leases of this process met them. What a message says counts for nothing here.
#[derive(Debug)]
pub(crate) struct Unreadable {
    patience: Duration,
    met: Mutex<HashMap<ExecutionId, Met>>,
}

#[derive(Debug)]
struct Met {
    tries: u32,
    first: Instant,
    last: Instant,
    why: String,
}

impl Unreadable {
    /// Nothing is given up before it was known for so long.
    pub fn new(patience: Duration) -> Self {
        Self { patience, met: Mutex::default() }
    }

    /// A lease met one, and passed it by.
    pub fn meet(&self, id: ExecutionId, lost: &Lost) {
        let now = Instant::now();
        let mut all = self.met.lock();
        let met = all.entry(id).or_insert_with(|| {
            tracing::error!(execution = %id, why = %lost.why, "an execution that waits cannot be read");
            Met { tries: 0, first: now, last: now, why: String::new() }
        });
        met.last = now;
        met.why.clone_from(&lost.why);
        if lost.is_final {
            met.tries += 1;
        } else {
            (met.tries, met.first) = (0, now);
        }
    }

    /// Those that were met often and for long enough, `max` at most. Each is told once; it has to be met anew to be told again.
    pub fn take(&self, max: usize) -> Vec<(ExecutionId, String)> {
        let mut all = self.met.lock();
        // Here and not where one is met: there may be many, and each is met by every lease.
        all.retain(|_, met| met.last.elapsed() < FORGOTTEN_AFTER);
        let is_over = |met: &Met| met.tries >= TRIES && met.first.elapsed() >= self.patience;
        all.extract_if(|_, met| is_over(met)).take(max).map(|(id, met)| (id, met.why)).collect()
    }
}

/// Executions of which nothing can be shown. A look meets them every second: each is told once.
#[derive(Debug, Default)]
pub(crate) struct LeftOut(Mutex<HashSet<String>>);

impl LeftOut {
    /// Tells it; `false` where it was told before.
    pub fn say(&self, id: &str, fault: &Fault) -> bool {
        let mut told = self.0.lock();
        if told.len() >= MOST_TOLD {
            told.clear();
        }
        let is_news = told.insert(id.to_owned());
        if is_news {
            tracing::error!(execution = id, why = %fault, "an execution is left out of lists and counts: see `runvoy audit verify`");
        }
        is_news
    }
}

/// As attributes of an item whose spec lies elsewhere, in which line it stands when it has its lock: its place does not say so before.
pub(crate) fn line_attributes(spec: &Spec) -> Item {
    let needs = match spec.needs() {
        Needs::Process => PROCESS,
        Needs::Image => IMAGE,
    };
    item([("needs", s(needs)), ("priority", n(spec.priority))])
}

/// As an attribute of the item, what a task is: without its spec nobody would know.
pub(crate) fn task_attribute(spec: &Spec) -> Option<(&'static str, aws_sdk_dynamodb::types::AttributeValue)> {
    spec.task.as_ref().map(|task| ("task", s(serde_json::to_string(task).expect("names and numbers are JSON"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(unreadable: &Unreadable, id: u8, fault: &Fault) {
        let lost = Lost::of(&Item::new(), fault, false);
        for _ in 0..TRIES {
            unreadable.meet(ExecutionId::from_bytes([id; 16]), &lost);
        }
    }

    #[test]
    fn what_is_left_out_is_told_once_of_each() {
        let (left_out, fault) = (LeftOut::default(), Fault::Damaged("torn".to_owned()));
        let said = ["a", "b", "a", "a"].map(|id| left_out.say(id, &fault));
        assert_eq!(said, [true, true, false, false]);
    }

    #[test]
    fn what_waits_for_its_lock_is_still_known_to_be_of_its_line() {
        let spec = Spec { image: LOCAL_IMAGE.to_owned(), ..Spec::lost(Name::new("q").expect("a name"), 1) };
        let waiting = Line::Waiting.partition(&spec.queue, 0);
        let mut found = item([("execution_id", s("x")), ("stand", s(waiting))]);
        found.extend(line_attributes(&spec));
        let outline = outline(&found).expect("an outline");
        assert_eq!((outline.needs(), outline.priority, outline.queue), (Needs::Process, 1, spec.queue));
    }

    #[test]
    fn only_what_is_gone_for_good_is_given_up_and_no_more_than_asked_for() {
        let unreadable = Unreadable::new(Duration::ZERO);
        let gone = Fault::Damaged("gone".to_owned());
        met(&unreadable, 1, &Fault::Foreign("a newer one".to_owned()));
        met(&unreadable, 2, &Fault::Refused { service: "S3", code: "AccessDenied".to_owned(), message: String::new() });
        assert!(unreadable.take(10).is_empty());
        (3..8).for_each(|id| met(&unreadable, id, &gone));
        assert_eq!([unreadable.take(3).len(), unreadable.take(3).len(), unreadable.take(3).len()], [3, 2, 0]);
        // What was only passed by before begins anew.
        unreadable.meet(ExecutionId::from_bytes([1; 16]), &Lost::of(&Item::new(), &gone, false));
        assert!(unreadable.take(10).is_empty());
        met(&unreadable, 1, &gone);
        assert_eq!(unreadable.take(10), [(ExecutionId::from_bytes([1; 16]), "gone".to_owned())]);
    }
}
