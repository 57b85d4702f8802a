//! Costs: of lost attempts, and summed up. Every execution that has ended is in the counters once, whatever failed in between.

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;

use runvoy_conformance::chance::Chance;
use runvoy_conformance::fault::Faulty;
use runvoy_engine::{Config, CostBy, CostReport, Engine, Holder, LeaseAsk, Reaper, RunRequest};
use runvoy_model::change::{Change, NewImage};
use runvoy_model::command::{EndAttempt, Extend, Outcome};
use runvoy_model::cost::Rates;
use runvoy_model::id::StepId;
use runvoy_model::image::{ImageSettings, Reference};
use runvoy_model::name::Name;
use runvoy_model::role::Role;
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_ports::clock::{Clock as _, IdSource as _};
use runvoy_ports::cost::CostStore;
use runvoy_ports::store::{ExecutionStore as _, ListQuery};

use self::stage::{Stage, command, fence, worker};

const TTL_MS: u64 = 2_000;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// A second of a vCPU costs a thousandth of a dollar.
fn config() -> Config {
    let rates = Rates { vcpu_hour_usd: 3.6, gb_hour_usd: 0.0 };
    Config { reap_margin_ms: 1_000, rates, allow_shared_uid: true, ..Config::default() }
}

async fn costs(engine: &Engine, stage: &Stage, email: &str, role: Role, by: CostBy) -> CostReport {
    let caller = stage.admitted(email, role).await;
    engine.costs(&caller, by, None, 1_000).await.expect("a report")
}

fn rows(report: &CostReport) -> BTreeMap<String, (u64, u64)> {
    report.rows.iter().map(|row| (row.name.clone(), (row.cost.executions, row.cost.micro_usd))).collect()
}

#[tokio::test]
async fn a_lost_attempt_is_charged_until_its_worker_was_last_heard_of() {
    let stage = Stage::new(config());
    let mut reaper = Reaper::new(Arc::clone(&stage.engine));
    let lost = worker(2, false);
    let id = stage.run(RunRequest { retries: Some(1), ..command("true") }).await.id;
    for (attempt, heard_for_ms) in [(1, 7_000), (2, 4_000)] {
        let leased = stage.lease(&lost, TTL_MS).await.expect("it can be leased");
        assert_eq!((leased.id, leased.attempt), (id, attempt));
        for _ in 0..heard_for_ms / 1_000 {
            stage.clock.pass(1_000);
            let extend = Extend {
                fence: fence(&leased),
                ttl_ms: TTL_MS,
                process_id: None,
                rss_bytes: None,
                last_output_at: None,
                activity: None,
                preparing: None,
            };
            stage.store.extend(stage.step(&lost), extend).await.expect("extended");
        }
        // Nobody hears of it from here on.
        for _ in 0..20 {
            stage.clock.pass(1_000);
            reaper.look().await.expect("the store answers");
        }
    }
    let execution = stage.store.get(id).await.expect("store").expect("there");
    assert!(execution.status.is_terminal(), "{execution:?}");
    assert_eq!(execution.cost_micro_usd, Some(11_000));
    let report = costs(&stage.engine, &stage, "ada@example.com", Role::Admin, CostBy::Queue).await;
    assert_eq!(rows(&report), BTreeMap::from([("default".to_owned(), (1, 11_000))]));
}

#[tokio::test]
async fn an_attempt_is_charged_for_the_resources_of_its_image() {
    let config = Config { rates: Rates { vcpu_hour_usd: 3.6, gb_hour_usd: 7.2 }, ..config() };
    let stage = Stage::new(config);
    let settings = ImageSettings { cpu: Some(512), memory: Some(2_048), ..ImageSettings::default() };
    let reference = Reference::parse("alpine:3.20").expect("a reference");
    let image = NewImage { image: "alpine:3.20".into(), reference, settings, is_default: false };
    let step = Step::system(StepId(stage.ids.next_id()), stage.clock.now(), "test");
    let image = stage.store.change(step, Change::RegisterImage(image), None).await.expect("registered").0.name;
    for (image, micro_usd) in [(image.as_str(), 45_000), ("local", 10_000)] {
        let id = stage.run(RunRequest { image: Some(image.to_owned()), ..command("true") }).await.id;
        let mut by = worker(2, false);
        by.serves.push(Needs::Image);
        let holder = Holder::trusted(by.id);
        let request = LeaseAsk {
            worker: by.clone(),
            queues: vec![Name::new("default").expect("a name")],
            max: 1,
            ttl_ms: TTL_MS,
            begin: true,
            lost_after_ms: None,
        };
        let leased = stage.engine.lease(&holder, request).await.expect("an answer").pop().expect("it can be leased");
        assert_eq!(leased.id, id);
        stage.clock.pass(10_000);
        // A worker that says more is not believed.
        let ended = EndAttempt { duration_ms: u64::MAX, ..EndAttempt::of(fence(&leased), Outcome::Exited { code: 0, after_kill: false }) };
        let ended = stage.engine.finish(&holder, ended).await.expect("it ends");
        assert_eq!(ended.cost_micro_usd, Some(micro_usd), "{image}");
    }
}

/// Random runs of several users, of which some are retried, lost or killed and report late; counted by engines that come and go and whose counters
/// fail before and after they have counted.
#[tokio::test]
async fn every_execution_that_has_ended_is_counted_once() {
    for seed in 0..20 {
        let mut chance = Chance::new(seed);
        let stage = Stage::new(config());
        let faulty = Arc::new(Faulty::<dyn CostStore>::new(Arc::clone(&stage.store) as _, seed));
        let mut reaper = Reaper::new(Arc::clone(&stage.engine));
        for round in 0..60 {
            let user = *chance.pick(&["ada@example.com", "bob@example.com", "eve@example.com"]).expect("a user");
            let caller = stage.admitted(user, Role::Developer).await;
            let request = RunRequest { retries: Some(1), ..command("true") };
            stage.engine.run(&caller, &request).await.expect("it is taken");
            let by = worker(3, false);
            if let Some(leased) = stage.lease(&by, TTL_MS).await {
                let is_lost = chance.percent(20);
                for _ in 0..if is_lost { 8 } else { 1 } {
                    stage.clock.pass(1_000);
                    reaper.look().await.expect("the store answers");
                }
                let code = if chance.percent(30) { 69 } else { 0 };
                let ended = EndAttempt {
                    cost_micro_usd: chance.below(5_000) as u64,
                    ..EndAttempt::of(fence(&leased), Outcome::Exited { code, after_kill: false })
                };
                // What was lost reports late.
                assert_eq!(stage.store.end_attempt(stage.step(&by), ended).await.is_err(), is_lost);
            }
            stage.clock.pass(if round % 10 == 9 { DAY_MS } else { 1_000 });
            // Another engine each time, and sometimes two at once.
            let engines = [4, 5].map(|number| stage.started(number, |ports| ports.costs = Arc::clone(&faulty) as _));
            let (one, other) = tokio::join!(engines[0].count_costs(2), engines[1].count_costs(1));
            drop((one, other));
        }
        let all = stage.store.list(ListQuery { limit: 1_000, ..ListQuery::default() }).await.expect("a list");
        let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for execution in all.iter().filter(|execution| execution.status.is_terminal()) {
            let sum = expected.entry(execution.created_by.clone()).or_default();
            *sum = (sum.0 + 1, sum.1 + execution.cost_micro_usd.expect("it has ended"));
        }
        let report = costs(&stage.engine, &stage, "root@example.com", Role::Admin, CostBy::User).await;
        assert!(report.is_complete);
        assert_eq!(rows(&report), expected, "seed {seed}");
        let total = expected.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
        assert_eq!((report.total.executions, report.total.micro_usd), total);
        for by in [CostBy::Image, CostBy::Queue, CostBy::Month] {
            let rows = rows(&costs(&stage.engine, &stage, "root@example.com", Role::Admin, by).await);
            assert_eq!(rows.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1)), total, "{by:?}");
        }
        let own = costs(&stage.engine, &stage, "ada@example.com", Role::Developer, CostBy::User).await;
        let ada = expected.get("ada@example.com").copied();
        assert_eq!(
            rows(&own).into_iter().collect::<Vec<_>>(),
            ada.map(|cost| ("ada@example.com".to_owned(), cost)).into_iter().collect::<Vec<_>>()
        );
    }
}
