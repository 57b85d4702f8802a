//! A courier and a server that is reached only sometimes.

mod loss;
mod pace;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_model::command::Fence;
use runvoy_model::id::{ExecutionId, LeaseId};
use runvoy_model::log::{Block, BlockBuilder, Record, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::lease::LeaseError;
use tempfile::TempDir;

use super::*;
use crate::leftover;
use crate::wal::{Opening, Wal};

const URL: &str = "http://server";

/// A server's log of one attempt.
#[derive(Default)]
struct Shelf {
    lines: Mutex<Vec<String>>,
    told: Mutex<Vec<String>>,
    calls: AtomicUsize,
    /// Of so many calls one is lost on the way there, and one on the way back.
    loses: Option<usize>,
    /// It takes no more than so many lines of output.
    most: Option<usize>,
    /// It takes no lines of the platform alone.
    refuses_platform: bool,
    /// At this call it has forgotten all but so many lines.
    forgets: Option<(usize, usize)>,
    /// It, or something in front of it, refuses so many calls.
    refuses: usize,
    /// It wants to hear nothing.
    is_over: bool,
    /// So long it takes to answer.
    takes: Duration,
    /// What came, and when.
    requests: Mutex<Vec<Request>>,
}

/// Records as they came to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    at: Instant,
    first_seq: u64,
    count: u32,
    bytes: usize,
}

impl Shelf {
    fn arrive(&self) -> Result<bool, Fault> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if let Some((at, keep)) = self.forgets.filter(|(at, _)| *at == call) {
            assert_eq!(at, call);
            self.lines.lock().truncate(keep);
        }
        if call < self.refuses {
            return Err(Fault::Refused("forbidden".to_owned()));
        }
        match self.loses {
            Some(loses) if call % loses == 1 => Err(Fault::Away("lost on the way".to_owned())),
            Some(loses) => Ok(call % loses == 2),
            None => Ok(false),
        }
    }
}

#[async_trait]
impl Desk for Shelf {
    async fn append(&self, token: &str, first_seq: u64, block: Block) -> Result<Appended, Fault> {
        assert_eq!(token, "token");
        self.requests.lock().push(Request { at: Instant::now(), first_seq, count: block.count, bytes: block.data.len() });
        if !self.takes.is_zero() {
            sleep(self.takes).await;
        }
        if self.is_over {
            return Err(Fault::Lost("it has ended".to_owned()));
        }
        let answer_is_lost = self.arrive()?;
        let mut lines = self.lines.lock();
        let have = lines.len() as u64;
        if first_seq > have + 1 {
            return Ok(Appended::Gap { expected: have + 1 });
        }
        let new = block.skip(u32::try_from(have + 1 - first_seq).expect("a small number"));
        if let Some(most) = self.most
            && new.raw_len > 0
            && lines.len() + new.count as usize > most
        {
            return Ok(Appended::Full { limit_bytes: 7 });
        }
        if self.refuses_platform && new.raw_len == 0 && new.count > 0 {
            return Ok(Appended::Full { limit_bytes: 7 });
        }
        lines.extend(new.records().map(|record| String::from_utf8_lossy(record.expect("whole").bytes).into_owned()));
        if answer_is_lost {
            return Err(Fault::Away("the answer was lost".to_owned()));
        }
        Ok(Appended::Stored { through: lines.len() as u64 })
    }

    async fn settle(&self, _: &str) -> Result<u64, Fault> {
        Ok(self.lines.lock().len() as u64)
    }

    async fn complete(&self, _: &str, end: Bytes) -> Result<Bytes, Fault> {
        let answer_is_lost = self.arrive()?;
        let mut told = self.told.lock();
        let end = String::from_utf8_lossy(&end).into_owned();
        if !told.contains(&end) {
            told.push(end);
        }
        if answer_is_lost { Err(Fault::Away("the answer was lost".to_owned())) } else { Ok(Bytes::from_static(b"{}")) }
    }

    async fn release(&self, _: &str) -> Result<(), Fault> {
        self.told.lock().push("released".to_owned());
        Ok(())
    }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> UnixMs {
        UnixMs(1_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

struct Stage {
    dir: TempDir,
    outbox: Arc<Outbox>,
    shelf: Arc<Shelf>,
}

impl Stage {
    fn new(shelf: Shelf) -> Self {
        let dir = TempDir::new().expect("a directory");
        let fence = Fence { execution: ExecutionId::from_bytes([1; 16]), attempt: 1, lease: LeaseId::from_bytes([2; 16]) };
        let wal = Wal::create(dir.path(), Opening { endpoint: URL.to_owned(), token: "token".to_owned(), fence }).expect("a log");
        Self { dir, outbox: Outbox::new(wal), shelf: Arc::new(shelf) }
    }

    fn send(&self) -> tokio::task::JoinHandle<()> {
        tokio::spawn(Courier::new(Arc::clone(&self.shelf), Arc::clone(&self.outbox), Arc::new(Still)).run())
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.dir.path()).expect("the directory").count()
    }

    async fn write(&self, from: u64, to: u64) {
        for n in from..=to {
            assert_eq!(self.outbox.append(n, line(Stream::Stdout, &format!("line {n}"))).await.expect("taken"), n + 1);
        }
    }

    /// What a worker that starts anew finds.
    fn die(mut self) -> (Self, usize) {
        // The same server, written in another way.
        let mut found = found(self.dir.path(), "HTTP://Server:80/");
        let count = found.len();
        self.outbox = found.pop().expect("a log");
        (self, count)
    }
}

fn found(dir: &Path, url: &str) -> Vec<Arc<Outbox>> {
    leftover::find(dir, &url.parse().expect("an address"), &Still).expect("readable")
}

fn line(stream: Stream, text: &str) -> Block {
    let mut builder = BlockBuilder::default();
    builder.push(Record { at: UnixMs(1_000), stream, cont: false, eol: true, bytes: text.as_bytes() });
    builder.take()
}

fn lines(to: u64) -> Vec<String> {
    (1..=to).map(|n| format!("line {n}")).collect()
}

#[tokio::test]
async fn every_line_arrives_once_although_requests_and_answers_are_lost() {
    let stage = Stage::new(Shelf { loses: Some(4), ..Shelf::default() });
    let courier = stage.send();
    stage.write(1, 300).await;
    assert_eq!(stage.outbox.finish(b"end".to_vec()).await, Verdict::Told(Bytes::from_static(b"{}")));
    courier.await.expect("it is done");
    assert_eq!(*stage.shelf.lines.lock(), lines(300));
    assert_eq!(*stage.shelf.told.lock(), ["end"]);
    assert_eq!(stage.files(), 0);
    assert!(matches!(stage.outbox.append(301, line(Stream::Stdout, "late")).await, Err(LeaseError::Refused(_))));
}

#[tokio::test]
async fn a_server_that_lost_its_last_lines_gets_them_again() {
    let stage = Stage::new(Shelf { forgets: Some((1, 20)), ..Shelf::default() });
    stage.write(1, 50).await;
    let courier = stage.send();
    while stage.shelf.calls.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.write(51, 60).await;
    stage.outbox.finish(b"end".to_vec()).await;
    courier.await.expect("it is done");
    assert_eq!(*stage.shelf.lines.lock(), lines(60));
}

#[tokio::test]
async fn what_a_dead_worker_left_is_brought_and_its_attempt_is_lost() {
    let stage = Stage::new(Shelf::default());
    stage.write(1, 30).await;
    // The server has heard a part of it.
    stage.shelf.lines.lock().extend(lines(12));
    let (stage, count) = stage.die();
    assert_eq!(count, 1);
    stage.send().await.expect("it is done");
    assert_eq!(*stage.shelf.lines.lock(), lines(30));
    let told = stage.shelf.told.lock().join("");
    assert!(told.contains("the worker died") && told.contains("lost"), "{told}");
    assert_eq!(stage.files(), 0);
}

#[tokio::test]
async fn an_end_that_was_written_down_is_told_by_the_next_worker() {
    let stage = Stage::new(Shelf::default());
    stage.write(1, 3).await;
    tokio::select! {
        _ = stage.outbox.finish(b"end".to_vec()) => unreachable!("nobody tells it"),
        () = async { while stage.outbox.wal.lock().end().is_none() { tokio::task::yield_now().await } } => {}
    }
    let (stage, _) = stage.die();
    stage.send().await.expect("it is done");
    assert_eq!((stage.shelf.lines.lock().len(), stage.shelf.told.lock().join("")), (3, "end".to_owned()));
}

#[tokio::test]
async fn a_lease_that_nothing_was_done_with_is_handed_back() {
    let (stage, _) = Stage::new(Shelf::default()).die();
    stage.send().await.expect("it is done");
    assert_eq!(*stage.shelf.told.lock(), ["released"]);
    assert_eq!(stage.files(), 0);
}

#[tokio::test]
async fn what_is_for_another_server_is_left_alone_and_a_torn_tail_is_said() {
    let stage = Stage::new(Shelf::default());
    stage.write(1, 2).await;
    assert!(found(stage.dir.path(), "http://other").is_empty());
    assert_eq!(stage.files(), 1);
    let path = std::fs::read_dir(stage.dir.path()).expect("the directory").next().expect("a file").expect("readable").path();
    let bytes = std::fs::read(&path).expect("readable");
    std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("written");
    std::fs::write(stage.dir.path().join("empty.wal"), b"").expect("written");
    let (stage, count) = stage.die();
    assert_eq!(count, 1);
    stage.send().await.expect("it is done");
    let lines = stage.shelf.lines.lock().clone();
    assert_eq!((lines.len(), lines[0].as_str()), (2, "line 1"));
    assert!(lines[1].contains("could not be read"), "{lines:?}");
    assert_eq!(stage.files(), 0);
}

#[tokio::test]
async fn a_full_log_takes_the_platforms_lines_and_says_what_it_did_not_keep() {
    let stage = Stage::new(Shelf { most: Some(3), ..Shelf::default() });
    stage.write(1, 3).await;
    let courier = stage.send();
    while stage.shelf.lines.lock().len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.outbox.append(4, line(Stream::Stdout, "1234567")).await.expect("taken here");
    let full = loop {
        match stage.outbox.append(5, line(Stream::Stdout, "more")).await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, LeaseError::LogFull { limit_bytes: 7 }), "{full:?}");
    let next = stage.outbox.append(6, line(Stream::Platform, "exit code 0")).await;
    let next = match next {
        Err(LeaseError::Gap { expected }) => stage.outbox.append(expected, line(Stream::Platform, "exit code 0")).await.expect("taken"),
        next => next.expect("taken"),
    };
    assert!(next > 5);
    stage.outbox.finish(b"end".to_vec()).await;
    courier.await.expect("it is done");
    let lines = stage.shelf.lines.lock().clone();
    assert!(lines[3].contains("the log is full: ") && lines[3].contains(" bytes of output in transit"), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("exit code 0"));
}

#[tokio::test]
async fn a_log_that_takes_nothing_at_all_keeps_no_end_from_being_told() {
    let stage = Stage::new(Shelf { most: Some(0), refuses_platform: true, ..Shelf::default() });
    stage.write(1, 3).await;
    stage.outbox.append(4, line(Stream::Platform, "one too many")).await.expect("taken here");
    let courier = stage.send();
    let full = stage.outbox.progress.subscribe().wait_for(|progress| progress.takes_nothing).await.map(drop);
    assert!(full.is_ok());
    assert!(matches!(stage.outbox.append(5, line(Stream::Platform, "more")).await, Err(LeaseError::LogFull { limit_bytes: 7 })));
    assert_eq!(stage.outbox.finish(b"end".to_vec()).await, Verdict::Told(Bytes::from_static(b"{}")));
    courier.await.expect("it is done");
    assert_eq!((stage.shelf.lines.lock().len(), stage.shelf.told.lock().join(""), stage.files()), (0, "end".to_owned(), 0));
}

#[tokio::test]
async fn an_attempt_that_the_server_does_not_want_is_told_so_and_forgotten() {
    let stage = Stage::new(Shelf { is_over: true, ..Shelf::default() });
    stage.write(1, 1).await;
    stage.send().await.expect("it is done");
    assert!(matches!(stage.outbox.append(2, line(Stream::Stdout, "more")).await, Err(LeaseError::Lost(why)) if why == "it has ended"));
    assert_eq!(stage.outbox.finish(b"end".to_vec()).await, Verdict::Lost("it has ended".to_owned()));
    assert_eq!(stage.files(), 0);
}

#[tokio::test]
async fn a_refusal_that_passes_costs_neither_output_nor_the_end() {
    let stage = Stage::new(Shelf { refuses: 2, ..Shelf::default() });
    stage.write(1, 3).await;
    let courier = stage.send();
    assert_eq!(stage.outbox.finish(b"end".to_vec()).await, Verdict::Told(Bytes::from_static(b"{}")));
    courier.await.expect("it is done");
    assert_eq!((stage.shelf.lines.lock().clone(), stage.shelf.told.lock().join("")), (lines(3), "end".to_owned()));
    assert_eq!(stage.files(), 0);
}

#[tokio::test]
async fn output_that_cannot_be_read_again_stays_on_the_worker_although_the_end_is_told() {
    let stage = Stage::new(Shelf::default());
    stage.write(1, 2).await;
    let path = std::fs::read_dir(stage.dir.path()).expect("the directory").next().expect("a file").expect("readable").path();
    let mut bytes = std::fs::read(&path).expect("readable");
    *bytes.last_mut().expect("not empty") ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let courier = stage.send();
    assert_eq!(stage.outbox.finish(b"end".to_vec()).await, Verdict::Told(Bytes::from_static(b"{}")));
    courier.await.expect("it is done");
    assert!(!path.exists() && path.with_extension("refused").exists());
    assert!(found(stage.dir.path(), URL).is_empty(), "no start tries it again");
}
