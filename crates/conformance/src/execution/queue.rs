//! What queues promise: their numbers are those of what they hold, a dead letter is found until it runs again, and it runs again once.

use runvoy_model::command::{Answer, Command, SubmitKey};
use runvoy_model::event::EventType;
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::redrive::{Fate, Letter, MOST_REDRIVEN, Redrive, Redriven};
use runvoy_model::spec::Spec;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::{DeadQuery, QueueCounts};
use runvoy_ports::store::ListQuery;

use crate::harness::Executions;
use crate::stage::{BEGINNING, PASSING_FAILURE, Stage, exit, in_line, locked, name, refusal};

/// What waits is counted by user and queue: for a worker, for a lock and for the next attempt, and nothing else.
pub async fn what_waits_is_counted_by_user_and_queue(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let counted = async |stage: &Stage<'_>| {
        let mut backlogs = stage.store().backlogs().await.expect("backlogs");
        backlogs.sort();
        backlogs.into_iter().map(|backlog| (backlog.user, backlog.queue.to_string(), backlog.count)).collect::<Vec<_>>()
    };
    assert_eq!(counted(&stage).await, []);
    let done = stage.running(|_| ()).await;
    stage.end(done, exit(0)).await;
    let holder = stage.running(|spec| spec.lock = Some(name("prod"))).await;
    for (user, queue, lock) in [("ann@x", "default", None), ("bob@x", "other", None), ("ann@x", "default", Some("prod"))] {
        let mut submit = stage.new_submit(in_line);
        submit.spec.lock = lock.map(name);
        submit.spec.queue = name(queue);
        submit.created_by = user.into();
        stage.play(Command::Submit(submit)).await;
    }
    let killed = stage.submit(|_| ()).await;
    stage.kill(killed).await;
    let (ann, bob) = (("ann@x".to_owned(), "default".to_owned(), 2), ("bob@x".to_owned(), "other".to_owned(), 1));
    assert_eq!(counted(&stage).await, [ann.clone(), bob.clone()]);
    stage.end(holder, exit(0)).await;
    assert_eq!(counted(&stage).await, [ann, bob], "who got the lock still waits for a worker");
}

/// Submits one that is given up after two attempts.
async fn given_up(stage: &mut Stage<'_>, change: impl FnOnce(&mut Spec)) -> ExecutionId {
    let first = stage
        .running(|spec| {
            spec.retries = 1;
            change(spec);
        })
        .await;
    stage.end(first, exit(PASSING_FAILURE)).await;
    stage.pass_ms(600_000);
    let second = stage.begun().await;
    assert_eq!((second.execution, second.attempt), (first.execution, 2));
    stage.end(second, exit(PASSING_FAILURE)).await;
    first.execution
}

async fn dead(stage: &Stage<'_>, query: impl FnOnce(&mut DeadQuery)) -> Vec<ExecutionId> {
    let mut asked = DeadQuery { queue: name("default"), owner: None, oldest_first: false, after: None, until: None, limit: 1_000 };
    query(&mut asked);
    stage.store().dead(asked).await.expect("dead letters").into_iter().map(|execution| execution.id).collect()
}

fn redrive_of(stage: &mut Stage<'_>, executions: &[ExecutionId]) -> Redrive {
    let letter = |execution: &ExecutionId| Letter { execution: *execution, again: ExecutionId::from_bytes(stage.fresh()) };
    Redrive { letters: executions.iter().map(letter).collect(), settled: Vec::new(), key: None }
}

fn fates(answer: Answer) -> Vec<Fate> {
    match answer {
        Answer::Redriven { letters, .. } => letters.into_iter().map(|letter| letter.fate).collect(),
        other => panic!("not redriven: {other:?}"),
    }
}

/// Waiting, in line for a lock, in backoff, with a worker and given up are counted by queue, also after a reopen.
pub async fn queues_are_counted(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    assert_eq!(stage.store().queues().await.expect("queues"), []);
    given_up(&mut stage, |_| ()).await;
    let done = stage.running(|_| ()).await;
    stage.end(done, exit(0)).await;
    let (retried, at) = (stage.running(|spec| spec.retries = 1).await, stage.now);
    stage.end(retried, exit(PASSING_FAILURE)).await;
    stage.running(locked).await;
    stage.pass_ms(5);
    stage.submit(in_line).await;
    stage.submit(|spec| spec.queue = name("other")).await;
    stage.pass_ms(-10);
    stage.submit(|spec| spec.queue = name("other")).await;
    stage.reopen().await;
    let default = QueueCounts { depth: 2, oldest: Some(at.plus_ms(5)), in_flight: 1, dead: 1, ..QueueCounts::empty(name("default")) };
    let other = QueueCounts { depth: 2, oldest: Some(at.plus_ms(-5)), ..QueueCounts::empty(name("other")) };
    assert_eq!(stage.store().queues().await.expect("queues"), [default, other]);
}

/// Dead letters come by when they were given up, whole and in order however they are paged, and only those of the queue and of the owner.
pub async fn dead_letters_are_listed_by_when_they_were_given_up(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut fence = stage.running(|spec| spec.retries = 1).await;
    let slow = fence.execution;
    let mut given = Vec::new();
    for _ in 0..3 {
        given.push(given_up(&mut stage, |_| ()).await);
    }
    stage.end(fence, exit(PASSING_FAILURE)).await;
    stage.pass_ms(600_000);
    fence = stage.begun().await;
    assert_eq!(fence.execution, slow);
    stage.end(fence, exit(PASSING_FAILURE)).await;
    stage.pass_ms(600_000);
    // The first that was submitted is the last that was given up.
    given.push(slow);
    stage.reopen().await;
    assert_eq!(dead(&stage, |query| query.oldest_first = true).await, given);
    let mut newest_first = given.clone();
    newest_first.reverse();
    assert_eq!(dead(&stage, |_| ()).await, newest_first);
    let mut paged = Vec::new();
    let mut after: Option<(UnixMs, ExecutionId)> = None;
    loop {
        let page = dead(&stage, |query| (query.after, query.limit) = (after, 2)).await;
        let Some(last) = page.last() else { break };
        after = stage.get(*last).await.dead_since().map(|since| (since, *last));
        paged.extend(page);
    }
    assert_eq!(paged, newest_first);
    assert!(dead(&stage, |query| query.queue = name("other")).await.is_empty());
    assert_eq!(dead(&stage, |query| query.owner = Some("ann@x".into())).await.len(), 4);
    assert!(dead(&stage, |query| query.owner = Some("bob@x".into())).await.is_empty());
    assert_eq!(dead(&stage, |query| (query.owner, query.oldest_first) = (Some("ann@x".into()), true)).await, given);
    let second = stage.get(given[1]).await.dead_since();
    assert_eq!(
        dead(&stage, |query| (query.until, query.oldest_first) = (second, true)).await,
        given[..2],
        "what was given up later is not asked for"
    );
    assert_eq!(dead(&stage, |query| query.until = second).await, newest_first[2..]);
}

/// Dead letters are counted like a page of them is read, and no further than that page.
pub async fn dead_letters_are_counted_as_far_as_asked_for(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut given = Vec::new();
    for _ in 0..4 {
        given.push(given_up(&mut stage, |_| ()).await);
    }
    let place = |execution: &Execution| execution.dead_since().map(|since| (since, execution.id));
    let (first, second) = (place(&stage.get(given[0]).await), place(&stage.get(given[1]).await));
    let asked = DeadQuery { queue: name("default"), owner: None, oldest_first: true, after: None, until: None, limit: 100 };
    for (query, expected) in [
        (asked.clone(), 4),
        (DeadQuery { limit: 3, ..asked.clone() }, 3),
        (DeadQuery { after: first, ..asked.clone() }, 3),
        (DeadQuery { after: first, until: second.map(|(since, _)| since), ..asked.clone() }, 1),
        (DeadQuery { after: second, oldest_first: false, ..asked.clone() }, 1),
        (DeadQuery { queue: name("other"), ..asked.clone() }, 0),
        (DeadQuery { owner: Some("ann@x".into()), after: first, ..asked.clone() }, 3),
        (DeadQuery { owner: Some("bob@x".into()), ..asked.clone() }, 0),
    ] {
        let count = stage.store().dead_count(query.clone()).await.expect("a count");
        let read = stage.store().dead(query.clone()).await.expect("dead letters").len();
        assert_eq!((count, read), (expected, usize::try_from(expected).expect("few")), "{query:?}");
    }
}

/// Who goes on after a dead letter that ran again in between misses none and sees none twice.
pub async fn a_page_goes_on_after_one_that_ran_again(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut given = Vec::new();
    for _ in 0..3 {
        given.push(given_up(&mut stage, |_| ()).await);
    }
    let since = stage.get(given[1]).await.dead_since().expect("a dead letter");
    let redrive = redrive_of(&mut stage, &given[1..2]);
    stage.play(Command::Redrive(redrive)).await;
    assert_eq!(dead(&stage, |query| query.after = Some((since, given[1]))).await, given[..1]);
}

/// A dead letter runs again as a new execution of the same work and owner; the old one keeps its end, loses its mark and names the new one.
pub async fn a_dead_letter_runs_again_once(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let old = given_up(&mut stage, |spec| spec.labels = [("team".into(), "x".into())].into()).await;
    let before = stage.get(old).await;
    assert_eq!((before.dead, before.error_category.map(|category| category.as_str())), (true, Some("network")));
    let redrive = redrive_of(&mut stage, &[old]);
    let new = redrive.letters[0].again;
    assert_eq!(fates(stage.play(Command::Redrive(redrive)).await), [Fate::Execution(new)]);
    stage.reopen().await;
    let after = stage.get(old).await;
    assert_eq!((after.status, after.attempt, after.completed_at, after.dead), (Status::Failed, 2, before.completed_at, false));
    assert_eq!(after.redriven.as_ref().map(|again| (again.by.as_str(), again.execution)), Some(("ann@x", Some(new))));
    let again = stage.get(new).await;
    assert_eq!((again.status, again.attempt, &again.spec, &again.created_by), (Status::Pending, 0, &before.spec, &before.created_by));
    let pending = stage.events_of(new).await;
    assert_eq!((pending[0].kind, pending[0].properties["redriveOf"].as_str()), (EventType::TaskPending, Some(old.to_string().as_str())));
    assert!(dead(&stage, |_| ()).await.is_empty());
    let second = redrive_of(&mut stage, &[old]);
    assert_eq!(fates(stage.play(Command::Redrive(second)).await), [Fate::Execution(new)], "it goes on there already");
    assert_eq!(stage.list(ListQuery::default()).await.len(), 2);
    let fence = stage.begun().await;
    assert_eq!(fence.execution, new);
    stage.end(fence, exit(0)).await;
    assert_eq!(stage.get(new).await.status, Status::Succeeded);
    stage.verify_chain(old).await;
    stage.verify_chain(new).await;
}

/// The same step again makes nothing.
pub async fn a_repeated_redrive_is_one(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let old = [given_up(&mut stage, |_| ()).await, given_up(&mut stage, locked).await];
    let (step, command) = (stage.step(), Command::Redrive(redrive_of(&mut stage, &old)));
    let first = fates(stage.apply(&step, &command).await);
    stage.reopen().await;
    assert_eq!(fates(stage.apply(&step, &command).await), first);
    assert_eq!(stage.list(ListQuery::default()).await.len(), 4);
}

/// A client's own key stands for one redrive, with all that became of it.
pub async fn one_key_is_one_redrive(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let key = |fingerprint| Some(SubmitKey { user: "ann@x".into(), key: "k".into(), fingerprint: [fingerprint; 32] });
    let old = given_up(&mut stage, |_| ()).await;
    let denied = Redriven { execution: ExecutionId::from_bytes([9; 16]), fate: Fate::Refused("a rule".into()) };
    let first = Redrive { settled: vec![denied], key: key(1), ..redrive_of(&mut stage, &[old]) };
    let Answer::Redriven { letters, .. } = stage.play(Command::Redrive(first)).await else { panic!("not redriven") };
    assert_eq!(letters.len(), 2);
    stage.reopen().await;
    // More has died since: the key stands for what it did.
    let later = given_up_past(&mut stage).await;
    let again = Redrive { key: key(1), ..redrive_of(&mut stage, &[later]) };
    let answer = stage.play(Command::Redrive(again)).await;
    assert_eq!(answer, Answer::Redriven { letters, repeated: true });
    assert!(stage.get(later).await.dead);
    let other = Redrive { key: key(2), ..redrive_of(&mut stage, &[later]) };
    refusal(stage.play(Command::Redrive(other)).await);
    let submit = stage.submit_keyed("ann@x", "k", 1).await;
    refusal(submit);
}

/// The same where something else stands before it in the queue: that is done first.
async fn given_up_past(stage: &mut Stage<'_>) -> ExecutionId {
    while let [fence, ..] = stage.lease(1).await[..] {
        stage.play(Command::Begin(fence)).await;
        stage.end(fence, exit(0)).await;
    }
    given_up(stage, |_| ()).await
}

/// What cannot run again is said for each and keeps the others from nothing.
pub async fn what_cannot_run_again_is_said(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let (one, two) = (given_up(&mut stage, locked).await, given_up(&mut stage, locked).await);
    let plain = given_up(&mut stage, |_| ()).await;
    let done = stage.running(|_| ()).await;
    stage.end(done, exit(3)).await;
    let unknown = ExecutionId::from_bytes([7; 16]);
    let redrive = redrive_of(&mut stage, &[one, two, plain, done.execution, unknown, plain]);
    let new: Vec<_> = redrive.letters.iter().map(|letter| Fate::Execution(letter.again)).collect();
    let fates = fates(stage.play(Command::Redrive(redrive)).await);
    assert_eq!((&fates[0], &fates[2], &fates[5]), (&new[0], &new[2], &new[2]));
    for (fate, says) in [(&fates[1], "lock prod is held"), (&fates[3], "FAILED: it is not a dead letter"), (&fates[4], "not found")] {
        assert!(matches!(fate, Fate::Refused(why) if why.contains(says)), "{fate:?}");
    }
    assert_eq!(dead(&stage, |_| ()).await, [two], "its mark stays");
    let many = vec![two; MOST_REDRIVEN + 1];
    let many = redrive_of(&mut stage, &many);
    refusal(stage.play(Command::Redrive(many)).await);
    assert!(stage.get(two).await.dead);
}

/// Of many that redrive the same at the same time one does; the others hear what it became.
pub async fn of_many_redrives_one_counts(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let old = given_up(&mut stage, |_| ()).await;
    let mut sent = Vec::new();
    for _ in 0..20 {
        let (store, step, redrive) = (stage.store(), stage.step(), redrive_of(&mut stage, &[old]));
        sent.push(tokio::spawn(async move { store.redrive(step, redrive).await.expect("an answer").0 }));
    }
    let mut became = Vec::new();
    for answer in sent {
        became.extend(answer.await.expect("no panic"));
    }
    became.dedup();
    assert_eq!(became.len(), 1, "{became:?}");
    assert_eq!(stage.list(ListQuery::default()).await.len(), 2);
    assert!(stage.now > BEGINNING);
}
