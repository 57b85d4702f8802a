//! Accounts of workers from the engine's side: who a key or a token stands for, until when, and which workers are there.

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use runvoy_engine::{Caller, Config, Credential, Engine, EngineError, FOREIGN_RUNNER, Reaper, RollCall, WorkerRequest};
use runvoy_model::base58;
use runvoy_model::credential::PublicKey;
use runvoy_model::hex::unhex;
use runvoy_model::id::{ExecutionId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::role::{Action, Role};
use runvoy_model::worker::Presence;
use runvoy_ports::clock::Clock as _;
use runvoy_ports::lease::{Slot, Slots};
use runvoy_ports::roster::Roster as _;
use serde_json::{Value, json};

use crate::stage::{Stage, command, worker};

fn request(name: &str, queues: &[&str]) -> WorkerRequest {
    WorkerRequest { name: name.into(), queues: queues.iter().map(|queue| (*queue).to_owned()).collect(), ..WorkerRequest::default() }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

async fn admitted(stage: &Stage, key: &str) -> Result<Caller, EngineError> {
    stage.engine.authenticate(Credential::Key(key.into()), "10.0.0.9".into(), "r".into()).await
}

#[tokio::test]
async fn the_key_of_a_worker_leases_and_does_nothing_else() {
    let stage = Stage::new(Config::default());
    let admin = stage.admitted("root@x", Role::Admin).await;
    let made = stage.engine.create_worker(&admin, &request("gpu-1", &["gpu"])).await.expect("made");
    let caller = admitted(&stage, made.api_key.as_deref().expect("a key")).await.expect("it is known");
    assert_eq!((caller.role, caller.email.as_str(), caller.worker_account()), (Role::Worker, "worker:gpu-1", Some("gpu-1")));
    assert!(caller.may_serve(&name("gpu")) && !caller.may_serve(&name("default")));
    assert!(caller.may(Action::Lease).is_ok() && caller.may(Action::KnowSelf).is_ok());
    assert!(caller.may(Action::Run).is_err() && caller.may(Action::Read).is_err() && caller.may(Action::ReadQueues).is_err());
    let refused = stage.engine.run(&caller, &command("true")).await;
    assert!(matches!(refused, Err(EngineError::Forbidden { role: "worker" })), "{refused:?}");
    for who in [&caller, &stage.admitted("op@x", Role::Operator).await] {
        assert!(stage.engine.create_worker(who, &request("two", &[])).await.is_err());
        assert!(stage.engine.list_worker_accounts(who).await.is_err());
    }
}

#[tokio::test]
async fn another_key_or_a_revocation_ends_a_key_at_once() {
    let stage = Stage::new(Config::default());
    let admin = stage.admitted("root@x", Role::Admin).await;
    let first = stage.engine.create_worker(&admin, &request("one", &[])).await.expect("made").api_key.expect("a key");
    let caller = admitted(&stage, &first).await.expect("it is known");
    let again = async |caller: &Caller| {
        let origin = runvoy_engine::Origin { from: caller.from.clone(), request_id: caller.request_id.clone() };
        stage.engine.admit_again(&caller.email, caller.key_hash, None, origin).await
    };
    assert_eq!(again(&caller).await.expect("it still is"), caller);
    let second = stage.engine.rotate_worker(&admin, "one", None).await.expect("another").api_key.expect("a key");
    assert!(matches!(admitted(&stage, &first).await, Err(EngineError::RevokedKey)));
    assert!(matches!(again(&caller).await, Err(EngineError::RevokedKey)), "also where it is in use");
    let caller = admitted(&stage, &second).await.expect("the new one is known");
    stage.engine.revoke_worker(&admin, "one").await.expect("revoked");
    assert!(matches!(admitted(&stage, &second).await, Err(EngineError::RevokedKey)));
    assert!(matches!(again(&caller).await, Err(EngineError::RevokedKey)));
    assert!(matches!(stage.engine.revoke_worker(&admin, "one").await, Err(EngineError::NotFound { .. })));
    assert!(matches!(stage.engine.rotate_worker(&admin, "no such", None).await, Err(EngineError::NotFound { .. })));
    let accounts = stage.engine.list_worker_accounts(&admin).await.expect("a list");
    assert_eq!((accounts.len(), accounts[0].account.revoked_at.is_some()), (1, true));
}

/// Whoever has a private key.
struct Signer {
    pair: EcdsaKeyPair,
    key: PublicKey,
}

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).expect("the key");
        let mut spki = unhex::<26>("3059301306072a8648ce3d020106082a8648ce3d030107034200").expect("digits").to_vec();
        spki.extend(pair.public_key().as_ref());
        Self { pair, key: PublicKey::new(&spki).expect("a P-256 key") }
    }

    fn token(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "ES256", "kid": base58::encode(self.key.fingerprint())});
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

#[tokio::test]
async fn a_token_stands_for_the_account_of_its_key_whatever_it_claims() {
    let stage = Stage::new(Config::default());
    let admin = stage.admitted("root@x", Role::Admin).await;
    let (known, stranger) = (Signer::new(), Signer::new());
    let exp = stage.clock.now().seconds() + 3_600;
    let claims = json!({"aud": "runvoy", "exp": exp, "roles": ["admin"], "iss": "anybody", "org": "x"});
    assert!(matches!(admitted(&stage, &known.token(&claims)).await, Err(EngineError::InvalidKey)), "not registered yet");
    let made = stage.engine.import_worker(&admin, &request("ci", &["gpu"]), &known.key.pem()).await.expect("imported");
    assert_eq!(made.api_key, None);
    let caller = admitted(&stage, &known.token(&claims)).await.expect("it is known");
    assert_eq!((caller.role, caller.email.as_str()), (Role::Worker, "worker:ci"));
    assert_eq!(caller.queues, Some(vec![name("gpu")]));
    assert!(matches!(admitted(&stage, &stranger.token(&claims)).await, Err(EngineError::InvalidKey)));
    for bad in [json!({"aud": "other", "exp": exp}), json!({"aud": "runvoy"}), json!({"aud": "runvoy", "exp": exp - 10_000})] {
        assert!(admitted(&stage, &known.token(&bad)).await.is_err(), "{bad}");
    }
    let twice = stage.engine.import_worker(&admin, &request("again", &[]), &known.key.pem()).await;
    assert!(matches!(twice, Err(EngineError::Conflict { .. })), "one key is one account's");
    stage.engine.revoke_worker(&admin, "ci").await.expect("revoked");
    assert!(matches!(admitted(&stage, &known.token(&claims)).await, Err(EngineError::RevokedKey)));
}

#[tokio::test]
async fn tokens_are_judged_by_the_machine_clock_as_soon_as_it_is_set() {
    let stage = Stage::new(Config::default());
    let admin = stage.admitted("root@x", Role::Admin).await;
    let known = Signer::new();
    stage.engine.import_worker(&admin, &request("ci", &["gpu"]), &known.key.pem()).await.expect("imported");
    for hours in [0, 1, -1] {
        stage.clock.set_machine(hours * 3_600_000);
        let now = stage.clock.machine_now().seconds();
        let token = known.token(&json!({"aud": "runvoy", "nbf": now, "exp": now + 120}));
        admitted(&stage, &token).await.unwrap_or_else(|error| panic!("{hours} h: {error:?}"));
        stage.clock.set_machine(-hours * 3_600_000);
    }
}

#[tokio::test]
async fn a_registered_key_that_runs_counts_as_a_user_and_is_given_what_its_role_may_have() {
    let stage = Stage::new(Config { shares_uid: true, ..Config::default() });
    let admin = stage.admitted("root@x", Role::Admin).await;
    assert!(!stage.engine.has_many_users().await.expect("an answer"));
    let signer = Signer::new();
    let asked = WorkerRequest { role: Some("operator".into()), ..request("ci", &[]) };
    let unasked = stage.engine.import_worker(&admin, &asked, &signer.key.pem()).await;
    let Err(EngineError::Unconfirmed { remedy, .. }) = unasked else { panic!("nobody was asked") };
    assert!(remedy.contains("--run-as-uids"), "{remedy}");
    let asked = WorkerRequest { confirm: true, ..asked };
    stage.engine.import_worker(&admin, &asked, &signer.key.pem()).await.expect("imported");
    assert!(stage.engine.has_many_users().await.expect("an answer"));
    let token = signer.token(&json!({"aud": "runvoy", "exp": stage.clock.now().seconds() + 600}));
    let caller = admitted(&stage, &token).await.expect("it is known");
    assert_eq!((caller.role, caller.queues.as_ref()), (Role::Operator, None));
    let refused = stage.engine.run(&caller, &command("true")).await;
    assert!(matches!(refused, Err(EngineError::Conflict { .. })), "commands of two share a user: {refused:?}");
    stage.engine.revoke_worker(&admin, "ci").await.expect("revoked");
    assert!(!stage.engine.has_many_users().await.expect("an answer"));
}

#[tokio::test]
async fn a_key_that_runs_nothing_needs_no_confirmation() {
    let stage = Stage::new(Config { shares_uid: true, ..Config::default() });
    let admin = stage.admitted("root@x", Role::Admin).await;
    stage.engine.create_worker(&admin, &request("one", &[])).await.expect("made");
    for (name, role) in [("two", None), ("three", Some("viewer".to_owned()))] {
        let asked = WorkerRequest { role, ..request(name, &[]) };
        stage.engine.import_worker(&admin, &asked, &Signer::new().key.pem()).await.expect("imported");
    }
}

#[tokio::test]
async fn a_registered_worker_that_may_submit_counts_as_a_user() {
    let stage = Stage::new(Config { shares_uid: true, ..Config::default() });
    let admin = stage.admitted("root@x", Role::Admin).await;
    let asked = WorkerRequest { may: vec!["submit".into()], confirm: true, ..request("ci", &[]) };
    stage.engine.import_worker(&admin, &asked, &Signer::new().key.pem()).await.expect("imported");
    assert!(stage.engine.has_many_users().await.expect("an answer"));
}

#[tokio::test]
async fn only_a_worker_with_a_public_key_may_be_let_submit() {
    let stage = Stage::new(Config::default());
    let admin = stage.admitted("root@x", Role::Admin).await;
    let of = |may: &[&str], role: Option<&str>| WorkerRequest {
        may: may.iter().map(|word| (*word).to_owned()).collect(),
        role: role.map(str::to_owned),
        confirm: true,
        ..request("ci", &[])
    };
    let key = Signer::new().key.pem();
    for bad in [of(&["read"], None), of(&["submit", "kill"], None), of(&["submit"], Some("developer"))] {
        let refused = stage.engine.import_worker(&admin, &bad, &key).await.err();
        assert!(matches!(&refused, Some(EngineError::Invalid { field, .. }) if field == "may"), "{bad:?}: {refused:?}");
    }
    let refused = stage.engine.create_worker(&admin, &of(&["submit"], None)).await.err();
    assert!(matches!(&refused, Some(EngineError::Invalid { field, .. }) if field == "may"), "{refused:?}");
    let made = stage.engine.import_worker(&admin, &of(&["submit"], Some("worker")), &key).await.expect("imported");
    assert!(made.account.may_submit && made.account.role == Role::Worker);
}

#[tokio::test]
async fn a_token_may_be_for_the_address_under_which_the_server_is_known() {
    let config = Config { own_url: "http://10.0.0.1:8080".into(), public_url: "https://run.example.com".into(), ..Config::default() };
    let stage = Stage::new(config);
    let admin = stage.admitted("root@x", Role::Admin).await;
    let signer = Signer::new();
    stage.engine.import_worker(&admin, &request("ci", &[]), &signer.key.pem()).await.expect("imported");
    let exp = stage.clock.now().seconds() + 600;
    for (aud, is_ours) in [
        ("https://run.example.com", true),
        ("https://run.example.com/", true),
        ("http://10.0.0.1:8080", true),
        ("https://run.example.com.evil.com", false),
    ] {
        assert_eq!(admitted(&stage, &signer.token(&json!({"aud": aud, "exp": exp}))).await.is_ok(), is_ours, "{aud}");
    }
}

#[tokio::test]
async fn a_key_that_names_no_public_key_cannot_be_signed_for() {
    let stage = Stage::new(Config::default());
    let admin = stage.admitted("root@x", Role::Admin).await;
    stage.engine.create_worker(&admin, &request("one", &[])).await.expect("made");
    let account = stage.engine.list_worker_accounts(&admin).await.expect("a list").remove(0).account;
    let signer = Signer::new();
    for kid in [base58::encode(account.key.hash()), base58::encode(&admin.key_hash.unwrap_or([1; 32]))] {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let exp = stage.clock.now().seconds() + 600;
        let signed = format!("{}.{}", part(&json!({"alg": "ES256", "kid": kid})), part(&json!({"aud": "runvoy", "exp": exp})));
        let signature = signer.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()));
        assert!(matches!(admitted(&stage, &token).await, Err(EngineError::InvalidKey)), "{kid}");
    }
}

#[tokio::test]
async fn a_key_is_shown_once() {
    let stage = Stage::new(Config::default());
    let admin = stage.admitted("root@x", Role::Admin).await;
    let asked = WorkerRequest { idempotency_key: Some("k".into()), ..request("one", &[]) };
    stage.engine.create_worker(&admin, &asked).await.expect("made");
    assert!(matches!(stage.engine.create_worker(&admin, &asked).await, Err(EngineError::ShownOnce(_))));
    assert!(matches!(stage.engine.create_worker(&admin, &request("one", &[])).await, Err(EngineError::Conflict { .. })));
    for (bad, queues) in [("", &[][..]), ("a b", &[]), ("two", &["a b"])] {
        assert!(matches!(stage.engine.create_worker(&admin, &request(bad, queues)).await, Err(EngineError::Invalid { .. })), "{bad}");
    }
}

fn presence(stage: &Stage, number: u8, queue: &str) -> Presence {
    Presence {
        worker: WorkerId::from_bytes([number; 16]),
        account: Some(name("one")),
        name: format!("w{number}"),
        host: "h".into(),
        version: "0".into(),
        runner: "process".into(),
        queues: vec![name(queue)],
        labels: BTreeMap::new(),
        concurrency: 1,
        running: 0,
        in_process: false,
        draining: false,
        since: stage.clock.now(),
        seen_at: stage.clock.now(),
        busy_until: None,
        place: None,
    }
}

/// A worker that runs three executions.
struct Busy;

impl Slots for Busy {
    fn reserve(&self) -> Option<Box<dyn Slot>> {
        None
    }

    fn nudge(&self, _: ExecutionId) {}

    fn running(&self) -> usize {
        3
    }

    fn is_draining(&self) -> bool {
        false
    }

    fn runs(&self, _: ExecutionId) -> bool {
        true
    }
}

#[tokio::test]
async fn what_waits_says_whether_any_worker_serves_its_queue() {
    let stage = Stage::new(Config::default());
    let mut asked = command("true");
    asked.queue = Some("gpu".into());
    let execution = stage.run(asked).await;
    let message = || stage.engine.waiting_for(&execution).expect("it waits").message;
    assert_eq!(message(), "a worker: no worker serves queue gpu");
    RollCall::new(Arc::clone(&stage.engine)).call(true).await.expect("a look");
    assert_eq!(message(), "a worker: no worker serves queue gpu");
    stage.engine.note_worker(presence(&stage, 9, "gpu")).await.expect("noted");
    assert!(!message().contains("no worker"), "{}", message());
    stage.engine.note_worker(Presence { draining: true, ..presence(&stage, 9, "gpu") }).await.expect("noted");
    assert!(message().contains("no worker serves"), "one that drains takes nothing");
    stage.engine.note_worker(presence(&stage, 9, "gpu")).await.expect("noted");
    stage.clock.pass(31_000);
    assert!(message().contains("no worker serves"), "nor one that was not heard of");
}

#[tokio::test]
async fn whoever_asks_again_and_again_is_noted_as_often_as_a_worker_that_reports() {
    let stage = Stage::new(Config::default());
    let noted = async || {
        stage.engine.note_asker(presence(&stage, 9, "gpu")).await.expect("noted");
        let seen = stage.store.present().await.expect("a roster").remove(0);
        (seen.since, seen.seen_at)
    };
    let first = stage.clock.now();
    assert_eq!(noted().await, (first, first));
    stage.clock.pass(4_999);
    assert_eq!(noted().await, (first, first), "not again so soon");
    stage.clock.pass(1);
    assert_eq!(noted().await, (first, stage.clock.now()), "it is the same as before");
    stage.clock.pass(31_000);
    assert_eq!(noted().await, (stage.clock.now(), stage.clock.now()), "it was gone");
}

/// A worker that says nothing of itself, and works on one execution for ten minutes at most.
async fn working(stage: &Stage) -> Presence {
    let foreign = Presence { runner: FOREIGN_RUNNER.into(), ..presence(stage, 9, "default") };
    stage.engine.note_asker(foreign.clone()).await.expect("noted");
    stage.run(command("sleep 900")).await;
    stage.lease(&worker(9, false), 600_000).await.expect("a lease");
    foreign
}

#[tokio::test]
async fn whoever_says_nothing_of_itself_is_noted_when_it_says_something_of_a_lease() {
    let stage = Stage::new(Config::default());
    let foreign = working(&stage).await;
    let heard = async |number: u8| {
        stage.engine.note_holder(WorkerId::from_bytes([number; 16])).await.expect("noted");
        stage.store.present().await.expect("a roster").into_iter().map(|seen| (seen.since, seen.seen_at)).collect::<Vec<_>>()
    };
    let first = stage.clock.now();
    stage.clock.pass(4_999);
    assert_eq!(heard(9).await, [(first, first)], "not again so soon");
    stage.clock.pass(1);
    assert_eq!(heard(9).await, [(first, stage.clock.now())]);
    stage.clock.pass(120_000);
    Reaper::new(Arc::clone(&stage.engine)).look().await.expect("a look");
    let again = Presence { since: stage.clock.now(), seen_at: stage.clock.now(), ..foreign };
    stage.engine.note_asker(again).await.expect("noted");
    let noted = [(first, stage.clock.now())];
    assert_eq!(heard(9).await, noted, "it was there all the while");
    assert_eq!(heard(8).await, noted, "who was never seen is not made up");
    let own = presence(&stage, 7, "gpu");
    stage.engine.note_worker(own.clone()).await.expect("noted");
    stage.clock.pass(10_000);
    assert!(heard(7).await.contains(&(own.since, own.seen_at)), "one that reports says by itself that it is there");
}

#[tokio::test]
async fn whoever_works_and_says_nothing_is_there_after_a_restart_and_for_every_server() {
    let mut stage = Stage::new(Config { concurrency: 0, shares_uid: false, ..Config::default() });
    let viewer = stage.admitted("v@x", Role::Viewer).await;
    let foreign = working(&stage).await;
    stage.clock.pass(300_000);
    let waiting = stage.run(command("true")).await;
    stage.restart(2);
    for engine in [Arc::clone(&stage.engine), stage.beside(3, &[], |_| ())] {
        let seen = async |engine: &Engine| {
            let workers = engine.workers(&viewer).await.expect("workers");
            let seen = workers.iter().find(|seen| seen.worker == foreign.worker).expect("it is known");
            (seen.is_live(stage.clock.now()), seen.running, seen.since)
        };
        RollCall::new(Arc::clone(&engine)).call(true).await.expect("a look");
        let message = engine.waiting_for(&waiting).expect("it waits").message;
        assert_eq!(message, "a free worker of queue default");
        assert_eq!(seen(&engine).await, (true, 1, foreign.since));
    }
}

#[tokio::test]
async fn whoever_works_and_says_nothing_goes_with_its_key() {
    let stage = Stage::new(Config { shares_uid: false, ..Config::default() });
    let admin = stage.admitted("root@x", Role::Admin).await;
    stage.engine.create_worker(&admin, &request("one", &[])).await.expect("made");
    for end in ["rotated", "revoked"] {
        working(&stage).await;
        stage.engine.note_worker(presence(&stage, 7, "gpu")).await.expect("noted");
        match end {
            "rotated" => drop(stage.engine.rotate_worker(&admin, "one", None).await.expect("another key")),
            _ => drop(stage.engine.revoke_worker(&admin, "one").await.expect("revoked")),
        }
        let there = stage.engine.workers(&admin).await.expect("workers").into_iter().map(|seen| seen.name).collect::<Vec<_>>();
        assert_eq!(there, ["w7"], "{end}: one that reports is gone when it is not heard of");
    }
}

#[tokio::test]
async fn the_roll_has_the_own_worker_and_loses_who_is_long_gone() {
    let stage = Stage::new(Config::default());
    let viewer = stage.admitted("v@x", Role::Viewer).await;
    stage.engine.attach_worker(Arc::new(Busy));
    let (lost, earlier) = (presence(&stage, 8, "gpu"), Presence { in_process: true, ..presence(&stage, 7, "default") });
    stage.store.note(lost.clone()).await.expect("noted");
    let roll = RollCall::new(Arc::clone(&stage.engine));
    stage.store.note(earlier).await.expect("noted");
    roll.call(true).await.expect("a look");
    let names = async || stage.engine.workers(&viewer).await.expect("workers").into_iter().map(|worker| worker.worker).collect::<Vec<_>>();
    let found = stage.engine.workers(&viewer).await.expect("workers");
    let own = found.iter().find(|worker| worker.in_process).expect("the own one");
    assert_eq!((found.len(), own.running, own.account.clone()), (2, 3, None), "the one of an earlier start is gone");
    assert!(stage.engine.knows_queue(&name("gpu")).await.expect("known"), "while its worker is there");
    stage.clock.pass(25 * 3_600_000);
    roll.call(true).await.expect("a look");
    assert!(!names().await.contains(&lost.worker));
    stage.engine.leave_roster().await.expect("gone");
    assert_eq!(names().await, []);
}

#[tokio::test]
async fn a_queue_is_known_by_whoever_serves_it() {
    let stage = Stage::new(Config::default());
    let admin = stage.admitted("root@x", Role::Admin).await;
    let knows = async |text: &str| stage.engine.knows_queue(&name(text)).await.expect("an answer");
    assert!(knows("default").await && !knows("gpu").await && !knows("slow").await);
    stage.engine.create_worker(&admin, &request("one", &["gpu"])).await.expect("made");
    assert!(knows("gpu").await);
    stage.engine.note_worker(presence(&stage, 3, "slow")).await.expect("noted");
    assert!(knows("slow").await);
    stage.clock.pass(31_000);
    assert!(knows("slow").await, "a worker that is silent for a while");
    stage.engine.revoke_worker(&admin, "one").await.expect("revoked");
    assert!(!knows("gpu").await);
}

#[tokio::test]
async fn an_account_has_so_many_workers_on_the_roster() {
    let stage = Stage::new(Config::default());
    let viewer = stage.admitted("v@x", Role::Viewer).await;
    let numbered = |number: u16| {
        let mut id = [7; 16];
        id[..2].copy_from_slice(&number.to_be_bytes());
        Presence { worker: WorkerId::from_bytes(id), ..presence(&stage, 7, "gpu") }
    };
    for number in 0..1_000 {
        stage.engine.note_worker(numbered(number)).await.expect("noted");
    }
    assert!(matches!(stage.engine.note_worker(numbered(1_000)).await, Err(EngineError::Overloaded)), "all of them are there");
    let other = Presence { account: Some(name("two")), ..numbered(2_000) };
    stage.engine.note_worker(other).await.expect("another account's");
    stage.clock.pass(31_000);
    stage.engine.note_worker(numbered(0)).await.expect("it is there still");
    stage.engine.note_worker(numbered(1_000)).await.expect("one that is gone makes room");
    let present = stage.engine.workers(&viewer).await.expect("workers");
    assert_eq!(present.iter().filter(|worker| worker.account == Some(name("one"))).count(), 1_000);
    assert!(present.iter().any(|worker| worker.worker == numbered(0).worker));
}
