//! Task tokens while the keys that sign them change: what is held goes on, and a key whose time is over proves nothing new.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use runvoy_memory::MemorySigningKeys;
use runvoy_model::id::Id;
use runvoy_model::signing::SigningKey;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::signing::{SigningKeys, SigningKeysError};
use runvoy_rpc::connectrpc::{ErrorCode, Protocol};
use runvoy_rpc::job::v1::{CompleteJobRequest, DequeueJobRequest, JobResult, JobState, UpdateJobRequest};
use sha2::Sha256;

use super::{Jobs, admin, caller, enqueue, job, jobs, lease, over_both, refusal, state, worker_key};
use crate::app::{StillClock, TestApp};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Ids that carry the time, as real ones do.
struct TimedIds {
    clock: Arc<StillClock>,
    count: AtomicU32,
}

impl IdSource for TimedIds {
    fn next_id(&self) -> Id {
        let mut bytes = [0x70; 16];
        bytes[..6].copy_from_slice(&self.clock.now().0.to_be_bytes()[2..]);
        bytes[12..].copy_from_slice(&self.count.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Id::from_bytes(bytes)
    }

    fn random(&self) -> [u8; 32] {
        [7; 32]
    }
}

/// A ring that counts the looks at it, and may be away.
struct Watched {
    keys: MemorySigningKeys,
    looks: AtomicUsize,
    is_away: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl SigningKeys for Watched {
    async fn all(&self) -> Result<Vec<SigningKey>, SigningKeysError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        if self.is_away.load(Ordering::Relaxed) {
            return Err(SigningKeysError("it is away".into()));
        }
        self.keys.all().await
    }

    async fn make(&self, at: UnixMs) -> Result<SigningKey, SigningKeysError> {
        self.keys.make(at).await
    }
}

/// A server whose leases tell when they were made, and its ring.
fn timed(app: &TestApp) -> (TestApp, Arc<Watched>) {
    let ring = Watched { keys: MemorySigningKeys::new([5; 32]), looks: AtomicUsize::new(0), is_away: false.into() };
    let ring = Arc::new(ring);
    let timed = app.rewired(|ports| {
        ports.ids = Arc::new(TimedIds { clock: Arc::clone(&app.clock), count: AtomicU32::new(1) });
        ports.signing_keys = Arc::clone(&ring) as _;
    });
    (timed, ring)
}

async fn rotate(app: &TestApp) {
    let answer = app.post("/api/v1/signing-key/rotate").admin().send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// A lease that lasts for as long as one may, and its job.
async fn leased(client: &Jobs) -> (String, String) {
    let id = enqueue(client, job("true")).await;
    let long = DequeueJobRequest { visibility_timeout_seconds: 12 * 3600, ..DequeueJobRequest::default() };
    (id, lease(client, long).await.task_token)
}

fn extend(token: &str) -> UpdateJobRequest {
    UpdateJobRequest { task_token: token.to_owned(), visibility_timeout_seconds: 12 * 3600, ..UpdateJobRequest::default() }
}

fn over(token: &str) -> CompleteJobRequest {
    let result = JobResult { success: true, ..JobResult::default() };
    CompleteJobRequest { task_token: token.to_owned(), job_result: result.into(), ..CompleteJobRequest::default() }
}

/// The moment in the name of the key of a token.
fn key_of_token(token: &str) -> i64 {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).expect("a token");
    i64::from_be_bytes(*bytes[1..].first_chunk().expect("a name"))
}

/// The same token, named after another key and signed with it.
fn signed_by(token: &str, key: &SigningKey) -> String {
    let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(token).expect("a token");
    bytes.truncate(bytes.len() - 32);
    bytes[1..9].copy_from_slice(&key.made_at().0.to_be_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(key.bytes()).expect("a key");
    mac.update(&bytes);
    bytes.extend_from_slice(&mac.finalize().into_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

#[tokio::test]
async fn a_lease_is_kept_and_ended_after_rotations_and_a_restart() {
    over_both(|app, protocol| async move {
        let (app, _) = timed(&app);
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let (first, token) = leased(&client).await;
        let (second, other) = leased(&client).await;
        for _ in 0..3 {
            rotate(&app).await;
            app.clock.advance(2 * HOUR_MS);
            client.update_job(extend(&token)).await.expect("it is held");
            client.update_job(extend(&other)).await.expect("it is held");
        }
        client.complete_job(over(&token)).await.expect("it is held");
        let restarted = app.restarted(|_| {});
        let served = restarted.listen().await;
        let client = admin(&served, protocol);
        client.update_job(extend(&other)).await.expect("it is held");
        client.complete_job(over(&other)).await.expect("it is held");
        assert_eq!((state(&client, &first).await, state(&client, &second).await), (JobState::Completed, JobState::Completed));
    })
    .await;
}

#[tokio::test]
async fn a_key_that_got_out_is_worth_nothing_for_leases_after_a_rotation() {
    let (app, ring) = timed(&TestApp::new().await);
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let (_, before) = leased(&client).await;
    let leaked = ring.all().await.expect("a ring").remove(0);
    assert_eq!(key_of_token(&before), leaked.made_at().0);
    rotate(&app).await;
    let (_, at_once) = leased(&client).await;
    assert_eq!(key_of_token(&at_once), leaked.made_at().0, "other servers have a minute to learn of the new one");
    app.clock.advance(2 * HOUR_MS);
    let (_, after) = leased(&client).await;
    assert!(key_of_token(&after) > leaked.made_at().0);
    let (code, why) = refusal(client.update_job(extend(&signed_by(&after, &leaked))).await);
    assert_eq!((code, why.as_str()), (ErrorCode::PermissionDenied, "task_token: is not one of this server's"));
    for good in [&before, &at_once, &after, &signed_by(&before, &leaked)] {
        client.update_job(extend(good)).await.expect("it is held");
    }
}

#[tokio::test]
async fn a_server_finds_the_key_that_another_made_and_looks_for_no_other_more_than_once_in_seconds() {
    let (app, ring) = timed(&TestApp::new().await);
    let served = app.listen().await;
    let other = app.restarted(|_| {});
    let (here, there) = (admin(&served, Protocol::Grpc), other.listen().await);
    let there = admin(&there, Protocol::Grpc);
    let (_, before) = leased(&here).await;
    there.update_job(extend(&before)).await.expect("one ring");
    rotate(&app).await;
    app.clock.advance(2 * HOUR_MS);
    let (_, after) = leased(&here).await;
    there.update_job(extend(&after)).await.expect("it looks for the key");

    app.clock.advance(6_000);
    let looks = ring.looks.load(Ordering::Relaxed);
    for made_at in 0..20 {
        let forged = signed_by(&after, &SigningKey::new(UnixMs(made_at), [3; 32]));
        assert_eq!(refusal(there.update_job(extend(&forged)).await).0, ErrorCode::PermissionDenied);
    }
    assert_eq!(ring.looks.load(Ordering::Relaxed), looks + 1);

    // Whether it is forged cannot be known: the same call may do later, and no lease is given up for that.
    app.clock.advance(6_000);
    ring.is_away.store(true, Ordering::Relaxed);
    let unknown = signed_by(&after, &SigningKey::new(UnixMs(7), [3; 32]));
    for _ in 0..3 {
        assert_eq!(refusal(there.update_job(extend(&unknown)).await).0, ErrorCode::Unavailable);
    }
    assert_eq!(ring.looks.load(Ordering::Relaxed), looks + 2);
    there.update_job(extend(&after)).await.expect("what is known is enough");
}

#[tokio::test]
async fn a_token_signed_before_there_was_a_ring_proves_leases_of_that_time_alone() {
    let (app, _) = timed(&TestApp::new().await);
    let served = app.listen().await;
    let client = admin(&served, Protocol::Connect);
    let (_, early) = leased(&client).await;
    client.update_job(extend(&of_day(&early))).await.expect("an upgrade ends no lease");
    app.clock.advance(DAY_MS);
    let (_, late) = leased(&client).await;
    assert_eq!(refusal(client.update_job(extend(&of_day(&late))).await).0, ErrorCode::PermissionDenied);
}

/// The same token as servers made it before: of a day, by a key made for that day from the store's own, which is that of the test app.
fn of_day(token: &str) -> String {
    let said = BASE64_URL_SAFE_NO_PAD.decode(token).expect("a token");
    let day = 20_000_u32.to_be_bytes();
    let bytes: Vec<u8> = [1].into_iter().chain(day).chain(said[25..said.len() - 32].iter().copied()).collect();
    let mac = |key: &[u8], parts: &[&[u8]]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes()
    };
    let signature = mac(&mac(&[5; 32], &[b"runvoy task token\0", &day]), &[&bytes]);
    BASE64_URL_SAFE_NO_PAD.encode([&bytes[..], &signature].concat())
}

#[tokio::test]
async fn security_05_a_task_token_is_bound_to_the_account_that_leased() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let (one, two) = (worker_key(&app, "one", &[]).await, worker_key(&app, "two", &[]).await);
        let (one, two) = (jobs(&served, protocol, &one), jobs(&served, protocol, &two));
        enqueue(&admin(&served, protocol), job("true")).await;
        let token = lease(&one, DequeueJobRequest::default()).await.task_token;
        for other in [&two, &admin(&served, protocol)] {
            assert_eq!(refusal(other.update_job(extend(&token)).await).0, ErrorCode::PermissionDenied);
            assert_eq!(refusal(other.complete_job(over(&token)).await).0, ErrorCode::PermissionDenied);
        }
        one.update_job(extend(&token)).await.expect("it is its own");
        app.engine.revoke_worker(&caller(&app).await, "one").await.expect("revoked");
        assert_eq!(refusal(one.update_job(extend(&token)).await).0, ErrorCode::Unauthenticated, "it ends with its account");
        let namesake = jobs(&served, protocol, &worker_key(&app, "one", &[]).await);
        assert_eq!(
            refusal(namesake.update_job(extend(&token)).await).0,
            ErrorCode::PermissionDenied,
            "an account that took its name is another"
        );
        assert_eq!(refusal(namesake.complete_job(over(&token)).await).0, ErrorCode::PermissionDenied);
        assert_eq!(refusal(two.update_job(extend(&token)).await).0, ErrorCode::PermissionDenied);
    })
    .await;
}
