//! What must not be lost, and what must not be waited for without end: records that come last, records that a server takes and forgets or does not take at all,
//! ends.

use std::sync::atomic::AtomicBool;

use super::*;

/// A server that can be made to fail, and to lose its power.
#[derive(Default)]
struct Store {
    lines: Mutex<Vec<String>>,
    /// So many of them are on stable storage.
    settled: AtomicUsize,
    /// What whoever brings records is told.
    refuses_records: Mutex<Option<Fault>>,
    /// What whoever brings an end is told.
    refuses_ends: Option<Fault>,
    /// It takes no more than so many lines of output.
    most: Option<usize>,
    /// The next answer to records is lost.
    loses_answer: AtomicBool,
    /// So often it cannot say what is on stable storage.
    unsettled: AtomicUsize,
    told: Mutex<Vec<String>>,
}

impl Store {
    fn lose_power(&self) {
        self.lines.lock().truncate(self.settled.load(Ordering::SeqCst));
    }

    fn told(&self) -> String {
        self.told.lock().join("\n")
    }
}

#[async_trait]
impl Desk for Store {
    async fn append(&self, _: &str, first_seq: u64, block: Block) -> Result<Appended, Fault> {
        if let Some(fault) = self.refuses_records.lock().clone() {
            return Err(fault);
        }
        let mut lines = self.lines.lock();
        let have = lines.len() as u64;
        if first_seq > have + 1 {
            return Ok(Appended::Gap { expected: have + 1 });
        }
        let new = block.skip(u32::try_from(have + 1 - first_seq).expect("a small number"));
        if self.most.is_some_and(|most| new.raw_len > 0 && lines.len() + new.count as usize > most) {
            return Ok(Appended::Full { limit_bytes: 7 });
        }
        lines.extend(new.records().map(|record| String::from_utf8_lossy(record.expect("whole").bytes).into_owned()));
        match self.loses_answer.swap(false, Ordering::SeqCst) {
            true => Err(Fault::Away("the answer was lost".to_owned())),
            false => Ok(Appended::Stored { through: lines.len() as u64 }),
        }
    }

    async fn settle(&self, _: &str) -> Result<u64, Fault> {
        if self.unsettled.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err(Fault::Away("the disk is slow".to_owned()));
        }
        let have = self.lines.lock().len();
        self.settled.store(have, Ordering::SeqCst);
        Ok(have as u64)
    }

    async fn complete(&self, _: &str, end: Bytes) -> Result<Bytes, Fault> {
        if let Some(fault) = self.refuses_ends.clone() {
            return Err(fault);
        }
        self.told.lock().push(String::from_utf8_lossy(&end).into_owned());
        Ok(Bytes::from_static(b"{}"))
    }

    async fn release(&self, _: &str) -> Result<(), Fault> {
        self.told.lock().push("released".to_owned());
        Ok(())
    }
}

const PATIENCE: Patience = Patience { lease_ttl: Duration::from_secs(30), lost_after: Duration::from_secs(600) };

/// A stage and a server that can fail.
fn scene(store: Store) -> (Stage, Arc<Store>) {
    (Stage::new(Shelf::default()), Arc::new(store))
}

fn send(stage: &Stage, store: &Arc<Store>) -> tokio::task::JoinHandle<()> {
    let courier = Courier::new(Arc::clone(store), Arc::clone(&stage.outbox), Arc::new(Still)).patient(PATIENCE);
    tokio::spawn(courier.run())
}

/// Whoever keeps the lease hears that it is held.
fn keep_lease(stage: &Stage) -> tokio::task::JoinHandle<()> {
    let outbox = Arc::clone(&stage.outbox);
    tokio::spawn(async move {
        loop {
            outbox.note_heard();
            sleep(Duration::from_secs(10)).await;
        }
    })
}

fn end() -> Vec<u8> {
    let fence = Fence { execution: ExecutionId::from_bytes([1; 16]), attempt: 1, lease: LeaseId::from_bytes([2; 16]) };
    serde_json::to_vec(&EndAttempt::of(fence, Outcome::Exited { code: 3, after_kill: false })).expect("plain data")
}

fn names(stage: &Stage) -> Vec<String> {
    let entries = std::fs::read_dir(stage.dir.path()).expect("the directory").map(|entry| entry.expect("readable").path());
    entries.filter_map(|path| Some(path.extension()?.to_str()?.to_owned())).collect()
}

#[test]
fn what_is_written_between_a_look_at_the_log_and_its_end_is_brought() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (stage, store) = scene(Store::default());
        let courier = send(&stage, &store);
        tokio::task::yield_now().await;
        // The one thread that reads logs has read this one; the courier has not heard so, because nobody else runs while this does not wait.
        let (done, is_done) = std::sync::mpsc::channel();
        tokio::task::spawn_blocking(move || done.send(()));
        is_done.recv().expect("it is done");
        {
            let mut wal = stage.outbox.wal.lock();
            wal.append(1, &line(Stream::Stdout, "last words")).expect("taken");
            wal.set_end(b"end".to_vec()).expect("written");
        }
        stage.outbox.news.notify_one();
        courier.await.expect("it is done");
        assert_eq!((store.lines.lock().join(""), store.told()), ("last words".to_owned(), "end".to_owned()));
    });
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_being_written_is_what_is_told_although_the_attempt_is_left() {
    let (stage, store) = scene(Store::default());
    stage.write(1, 1).await;
    // A slow disk: the end is on its way to it when the worker stops waiting.
    stage.outbox.progress.send_modify(|progress| progress.is_ending = true);
    stage.outbox.leave("it was left");
    let courier = send(&stage, &store);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(store.told(), "");
    stage.outbox.wal.lock().set_end(b"end".to_vec()).expect("written");
    stage.outbox.news.notify_one();
    courier.await.expect("it is done");
    assert_eq!(store.told(), "end");
}

#[tokio::test]
async fn an_end_that_nobody_waits_for_any_more_is_told() {
    let (stage, store) = scene(Store::default());
    stage.write(1, 1).await;
    tokio::select! {
        biased;
        _ = stage.outbox.finish(b"end".to_vec()) => unreachable!("nobody brings it"),
        () = std::future::ready(()) => stage.outbox.leave("it was left"),
    }
    send(&stage, &store).await.expect("it is done");
    assert_eq!(store.told(), "end");
}

#[tokio::test]
async fn a_log_that_is_damaged_on_the_server_ends_the_command_and_its_end_is_told() {
    let (stage, store) = scene(Store::default());
    let courier = send(&stage, &store);
    stage.write(1, 2).await;
    while store.lines.lock().len() < 2 {
        sleep(Duration::from_millis(5)).await;
    }
    *store.refuses_records.lock() = Some(Fault::Damaged("the log is damaged after line 2".to_owned()));
    stage.outbox.append(3, line(Stream::Stdout, "more")).await.expect("taken here");
    stage.outbox.progress.subscribe().wait_for(|progress| progress.broken.is_some()).await.map(drop).expect("it is said");
    let refused = stage.outbox.append(4, line(Stream::Stdout, "more")).await;
    assert!(matches!(refused, Err(LeaseError::Refused(why)) if why.contains("damaged")));
    assert_eq!(stage.outbox.finish(end()).await, Verdict::Told(Bytes::from_static(b"{}")));
    courier.await.expect("it is done");
    let told: EndAttempt = serde_json::from_str(&store.told()).expect("an end");
    assert_eq!(told.outcome, Outcome::Exited { code: 3, after_kill: false });
    assert!(told.remark.as_ref().is_some_and(|remark| remark.contains("the last 1 record,") && remark.contains("damaged")), "{told:?}");
    assert_eq!(names(&stage), ["refused"]);
}

#[tokio::test(start_paused = true)]
async fn records_that_a_server_does_not_take_keep_no_attempt_open_whose_lease_it_keeps() {
    for fault in [Fault::Away("no space left".to_owned()), Fault::Refused("forbidden".to_owned())] {
        let (stage, store) = scene(Store { refuses_records: Mutex::new(Some(fault)), ..Store::default() });
        let (courier, keeper) = (send(&stage, &store), keep_lease(&stage));
        stage.write(1, 3).await;
        // While the command runs, nobody waits for its records.
        sleep(PATIENCE.lost_after * 3).await;
        stage.write(4, 4).await;
        let ended_at = Instant::now();
        assert_eq!(stage.outbox.finish(end()).await, Verdict::Told(Bytes::from_static(b"{}")));
        assert!(ended_at.elapsed() >= PATIENCE.lost_after && ended_at.elapsed() < PATIENCE.lost_after * 2, "{:?}", ended_at.elapsed());
        courier.await.expect("it is done");
        keeper.abort();
        let told: EndAttempt = serde_json::from_str(&store.told()).expect("an end");
        assert!(told.remark.is_some_and(|remark| remark.contains("the last 4 records,")));
        assert_eq!(names(&stage), ["refused"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_waited_for_without_end() {
    let (stage, store) = scene(Store { refuses_records: Mutex::new(Some(Fault::Away("no answer".to_owned()))), ..Store::default() });
    stage.outbox.note_heard();
    let courier = send(&stage, &store);
    stage.write(1, 3).await;
    let outbox = Arc::clone(&stage.outbox);
    let finishing = tokio::spawn(async move { outbox.finish(end()).await });
    sleep(PATIENCE.lost_after * 10).await;
    // It is back, and first of all busy.
    stage.outbox.note_heard();
    sleep(PATIENCE.lost_after / 2).await;
    *store.refuses_records.lock() = None;
    assert_eq!(finishing.await.expect("it is told"), Verdict::Told(Bytes::from_static(b"{}")));
    courier.await.expect("it is done");
    assert_eq!((store.lines.lock().len(), stage.files()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_a_server_does_not_take_is_put_aside_and_the_lease_is_left() {
    let (stage, store) = scene(Store { refuses_ends: Some(Fault::Refused("it is of another version".to_owned())), ..Store::default() });
    let (courier, keeper) = (send(&stage, &store), keep_lease(&stage));
    stage.write(1, 3).await;
    let verdict = stage.outbox.finish(end()).await;
    assert!(matches!(&verdict, Verdict::Lost(why) if why.contains("another version")), "{verdict:?}");
    courier.await.expect("it is done");
    keeper.abort();
    assert_eq!((store.lines.lock().len(), names(&stage)), (3, vec!["refused".to_owned()]));
}

#[tokio::test]
async fn what_the_server_could_still_lose_is_not_forgotten_until_it_cannot() {
    let (stage, store) = scene(Store { unsettled: AtomicUsize::new(2), ..Store::default() });
    let text = "x".repeat(60_000);
    let mut seq = 1;
    while !Outbox::is_large(&stage.outbox.wal.lock()) {
        seq = stage.outbox.wal.lock().append(seq, &line(Stream::Stdout, &text)).expect("taken");
    }
    let courier = send(&stage, &store);
    while Outbox::is_large(&stage.outbox.wal.lock()) {
        sleep(Duration::from_millis(5)).await;
    }
    store.lose_power();
    stage.outbox.append(seq, line(Stream::Stdout, "after")).await.expect("taken");
    assert_eq!(stage.outbox.finish(b"end".to_vec()).await, Verdict::Told(Bytes::from_static(b"{}")));
    courier.await.expect("it is done");
    let stored = store.lines.lock();
    assert_eq!((stored.len() as u64, stored.last().map(String::as_str)), (seq, Some("after")));
    assert_eq!(stage.files(), 0);
}

#[tokio::test]
async fn a_log_that_was_forgotten_is_no_lease_that_nothing_was_done_with() {
    let (stage, store) = scene(Store::default());
    stage.write(1, 3).await;
    store.lines.lock().extend(lines(3));
    stage.outbox.wal.lock().forget().expect("written");
    let (stage, _) = stage.die();
    send(&stage, &store).await.expect("it is done");
    assert!(store.told().contains("the worker died"), "{}", store.told());
}

#[tokio::test]
async fn a_full_log_whose_answer_was_lost_keeps_what_it_has_and_the_platforms_lines() {
    let (stage, store) = scene(Store { most: Some(3), loses_answer: AtomicBool::new(true), ..Store::default() });
    stage.write(1, 2).await;
    stage.outbox.append(3, line(Stream::Platform, "said")).await.expect("taken here");
    let courier = send(&stage, &store);
    while store.lines.lock().len() < 3 {
        tokio::task::yield_now().await;
    }
    // Before it is tried again there is more, which has no room.
    stage.outbox.append(4, line(Stream::Stdout, "1234567")).await.expect("taken here");
    stage.outbox.append(5, line(Stream::Platform, "exit code 0")).await.expect("taken here");
    stage.outbox.finish(b"end".to_vec()).await;
    courier.await.expect("it is done");
    let lines = store.lines.lock().clone();
    assert_eq!((lines.len(), &lines[..3]), (5, &["line 1".to_owned(), "line 2".to_owned(), "said".to_owned()][..]), "{lines:?}");
    assert!(lines[3].contains("the log is full: 8 bytes of output"), "{lines:?}");
    assert_eq!(lines[4], "exit code 0");
}

#[tokio::test]
async fn what_another_version_left_is_neither_brought_nor_removed() {
    let (stage, _) = scene(Store::default());
    stage.write(1, 1).await;
    let path = std::fs::read_dir(stage.dir.path()).expect("the directory").next().expect("a file").expect("readable").path();
    let mut bytes = std::fs::read(&path).expect("readable");
    bytes[7] += 1;
    std::fs::write(&path, &bytes).expect("written");
    assert!(found(stage.dir.path(), URL).is_empty());
    assert_eq!(std::fs::read(&path).expect("it is there"), bytes);
}
