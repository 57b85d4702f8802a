//! What a worker elsewhere makes of what the server says, where nobody has to be asked.

use std::sync::atomic::AtomicU64;

use runvoy_model::id::ExecutionId;
use tempfile::TempDir;

use super::*;

#[derive(Default)]
struct Sleeper(AtomicU64);

impl Clock for Sleeper {
    fn now(&self) -> UnixMs {
        UnixMs(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn asleep(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

const FENCE: Fence = Fence { execution: ExecutionId::from_bytes([1; 16]), attempt: 1, lease: LeaseId::from_bytes([2; 16]) };

/// A worker that holds one lease.
fn holder(dir: &TempDir, clock: Arc<Sleeper>) -> (RemoteLeases, Arc<Outbox>) {
    let address = "http://server".parse().expect("an address");
    let config = Config {
        endpoint: Endpoint { address, key: "key".to_owned(), tls: None },
        worker: WorkerInfo::default(),
        queues: Vec::new(),
        lease_ttl: Duration::from_secs(30),
        lost_after: Duration::from_secs(600),
        dir: dir.path().to_owned(),
    };
    let opening = Opening { endpoint: "http://server".to_owned(), token: "token".to_owned(), fence: FENCE };
    let outbox = Outbox::new(Wal::create(dir.path(), opening).expect("a log"));
    let since = Since::now(&*clock);
    let leases = RemoteLeases::new(config, clock);
    let held = Held { token: "token".to_owned(), since, outbox: Arc::clone(&outbox), over: None };
    leases.held.lock().insert(FENCE.lease, held);
    (leases, outbox)
}

#[tokio::test]
async fn a_lease_that_the_server_ended_is_not_told_as_a_cut() {
    let lost = || Err::<(), _>(Fault::Lost("killed by ana".to_owned()));
    let away = || Err::<(), _>(Fault::Away("no answer".to_owned()));
    for (answer, is_key_refused, said) in
        [(lost(), false, "killed by ana"), (lost(), true, "killed by ana"), (away(), false, CUT_OFF), (away(), true, DENIED)]
    {
        let dir = TempDir::new().expect("a directory");
        let (leases, outbox) = holder(&dir, Arc::default());
        leases.is_key_refused.store(is_key_refused, Ordering::Relaxed);
        assert!(leases.answered(FENCE, answer).is_err());
        leases.leave(FENCE);
        let left = outbox.progress.borrow().left.clone().expect("it is left");
        assert!(left.ends_with(said), "{left}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_passes_ends_no_worker_and_one_that_lasts_does() {
    let dir = TempDir::new().expect("a directory");
    let (leases, _outbox) = holder(&dir, Arc::default());
    let refused = || Fault::Refused("forbidden".to_owned());
    let began = tokio::time::Instant::now();
    let mut times = 0;
    while tokio::time::timeout(Duration::from_secs(60), leases.rest(refused())).await.is_ok() {
        times += 1;
        assert!(leases.denied.borrow().is_none() && began.elapsed() < Duration::from_secs(120), "after {times}");
    }
    assert!(times > 5, "it asked only {times} times");
    assert_eq!(leases.denied().await, refused());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_not_taken_is_not_tried_again() {
    let dir = TempDir::new().expect("a directory");
    let (leases, _outbox) = holder(&dir, Arc::default());
    let key = Fault::Key("revoked".to_owned());
    assert!(tokio::time::timeout(Duration::from_secs(600), leases.rest(key.clone())).await.is_err());
    assert_eq!(leases.denied().await, key);
}

#[tokio::test]
async fn a_lease_is_as_old_as_the_machine_slept_since_it_was_offered() {
    let (dir, clock) = (TempDir::new().expect("a directory"), Arc::new(Sleeper::default()));
    let (leases, _outbox) = holder(&dir, Arc::clone(&clock));
    let before = leases.held_since(FENCE).expect("it is held");
    clock.0.store(20, Ordering::SeqCst);
    assert_eq!(before.duration_since(leases.held_since(FENCE).expect("it is held")), Duration::from_secs(20));
}
