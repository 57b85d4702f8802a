//! What one attempt has to tell: taken here, into its write-ahead log, and brought to the server by its [`Courier`]. Whoever gives something
//! waits for the server only where too much of it is on its way already.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use runvoy_model::log::Block;
use runvoy_ports::lease::LeaseError;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::wal::{Untaken, Wal};

/// So much may be on its way to a server that answers: its followers see everything soon.
const MOST_UNSENT: u64 = 8 << 20;
/// So large a log becomes while the server is away; a command that writes more waits.
const MOST_KEPT: u64 = 2 << 30;
/// A log of which the server has everything is begun anew at this size.
const LARGE: u64 = 64 << 20;

/// How far the courier is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Everything before this in the file is with the server.
    pub(crate) sent_to: u64,
    /// The server does not answer.
    pub(crate) is_away: bool,
    /// The server takes no more output.
    pub(crate) full_at: Option<u64>,
    /// Nor the platform's own lines.
    pub(crate) takes_nothing: bool,
    /// What is in the log cannot be brought to the server.
    pub(crate) broken: Option<String>,
    /// Nothing more is done.
    pub(crate) verdict: Option<Verdict>,
    /// Nobody will say how the attempt ended but this.
    pub(crate) left: Option<String>,
    /// How it ended is being written down: that is what will be said, whoever leaves meanwhile.
    pub(crate) is_ending: bool,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The server heard its end; the record of the execution as JSON.
    Told(Bytes),
    /// The server does not want to hear of it.
    Lost(String),
}

/// What one attempt has to tell.
pub(crate) struct Outbox {
    pub(crate) wal: Arc<Mutex<Wal>>,
    pub(crate) progress: watch::Sender<Progress>,
    /// There is more to bring.
    pub(crate) news: Arc<Notify>,
    /// When the server last said that the attempt holds its lease.
    heard: Mutex<Option<Instant>>,
}

impl Outbox {
    pub(crate) fn new(wal: Wal) -> Arc<Self> {
        let progress = Progress { sent_to: wal.first().offset, ..Progress::default() };
        let (wal, progress) = (Arc::new(Mutex::new(wal)), watch::Sender::new(progress));
        Arc::new(Self { wal, progress, news: Arc::default(), heard: Mutex::default() })
    }

    /// Takes records; answered when they are in the file.
    pub(crate) async fn append(&self, first_seq: u64, block: Block) -> Result<u64, LeaseError> {
        self.wait_for_room(block.raw_len > 0).await?;
        let taken = self.with_wal(move |wal| wal.append(first_seq, &block)).await;
        self.news.notify_one();
        taken.map_err(|untaken| match untaken {
            Untaken::Gap(expected) => LeaseError::Gap { expected },
            Untaken::Ended => LeaseError::Refused(untaken.to_string()),
            Untaken::Io(error) => LeaseError::Unavailable(Box::new(error)),
        })
    }

    /// Whether there is room shows only after a look at how far the courier is: it may have become full, or lost, meanwhile.
    async fn wait_for_room(&self, is_output: bool) -> Result<(), LeaseError> {
        let mut progress = self.progress.subscribe();
        loop {
            let now = progress.borrow_and_update().clone();
            match (now.verdict, now.broken, now.full_at) {
                (Some(Verdict::Lost(why)), ..) => return Err(LeaseError::Lost(why)),
                (Some(Verdict::Told(_)), ..) => return Err(LeaseError::Refused("the attempt has ended".to_owned())),
                (None, Some(why), _) => return Err(LeaseError::Refused(why)),
                (None, None, Some(limit_bytes)) if is_output || now.takes_nothing => return Err(LeaseError::LogFull { limit_bytes }),
                (None, None, _) => {}
            }
            let length = self.wal.lock().len();
            let most_unsent = if now.is_away { MOST_KEPT } else { MOST_UNSENT };
            if length - now.sent_to.min(length) < most_unsent && length < MOST_KEPT {
                return Ok(());
            }
            progress.changed().await.expect("the sender is here");
        }
    }

    /// A log that has grown too large is begun anew as soon as the server has everything.
    pub(crate) fn is_large(wal: &Wal) -> bool {
        wal.len() >= LARGE
    }

    /// Whoever writes to this log waits for the server.
    pub(crate) fn is_at_its_most(wal: &Wal) -> bool {
        wal.len() >= MOST_KEPT
    }

    /// The server said that the attempt holds its lease.
    pub(crate) fn note_heard(&self) {
        *self.heard.lock() = Some(Instant::now());
    }

    /// When it last did.
    pub(crate) fn heard(&self) -> Option<Instant> {
        *self.heard.lock()
    }

    /// Takes the end; answered when the server has everything and has heard it. Once it was begun the end is written down, whether anybody waits for
    /// that or not.
    pub(crate) async fn finish(&self, end: Vec<u8>) -> Verdict {
        self.progress.send_modify(|progress| progress.is_ending = true);
        let news = Arc::clone(&self.news);
        let writing = self.with_wal(move |wal| {
            let written = wal.set_end(end);
            news.notify_one();
            written
        });
        if let Err(error) = writing.await {
            tracing::warn!(%error, "the result of an attempt could not be written to disk: only this process knows it");
        }
        let mut progress = self.progress.subscribe();
        let settled = progress.wait_for(|progress| progress.verdict.is_some()).await.expect("the sender is here");
        settled.verdict.clone().expect("just seen")
    }

    /// Nobody says more of it: where its end was not told, this is what became of it.
    pub(crate) fn leave(&self, message: &str) {
        self.progress.send_modify(|progress| progress.left = Some(message.to_owned()));
        self.news.notify_one();
    }

    /// Does something with the log where no other task has to wait for the disk.
    pub(crate) async fn with_wal<T: Send + 'static>(&self, work: impl FnOnce(&mut Wal) -> T + Send + 'static) -> T {
        let wal = Arc::clone(&self.wal);
        tokio::task::spawn_blocking(move || work(&mut wal.lock())).await.expect("nothing in a log panics")
    }

    /// Takes the file away: the server knows everything that it holds, or does not want to.
    pub(crate) async fn remove(&self) {
        match self.with_wal(|wal| wal.remove()).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => tracing::warn!(%error, "a write-ahead log could not be removed"),
            _ => {}
        }
    }

    /// Keeps the file for people: it holds what the server does not have, and nobody can bring it there.
    pub(crate) async fn set_aside(&self) {
        match self.with_wal(|wal| wal.set_aside()).await {
            Ok(path) => tracing::error!(path = %path.display(), "output that could not be delivered to the server is kept in a file"),
            Err(error) => tracing::warn!(%error, "a write-ahead log could not be put aside"),
        }
    }
}
