//! The keys of task tokens get successors by themselves.

mod stage;

use runvoy_engine::{Config, Keymaker};
use runvoy_model::time::UnixMs;
use stage::Stage;

const DAY_MS: u64 = 24 * 3600 * 1000;

async fn made(stage: &Stage) -> Vec<UnixMs> {
    let keys = stage.engine.ports().signing_keys.all().await.expect("a ring");
    keys.iter().map(runvoy_model::signing::SigningKey::made_at).collect()
}

#[tokio::test]
async fn a_ring_begins_with_a_key_and_an_old_key_gets_a_successor() {
    let stage = Stage::new(Config { token_key_days: 30, ..Config::default() });
    let keymaker = Keymaker::new(std::sync::Arc::clone(&stage.engine));
    let began = stage.engine.now();
    for _ in 0..2 {
        keymaker.turn().await.expect("it is looked after");
    }
    stage.clock.pass(30 * DAY_MS - 1);
    keymaker.turn().await.expect("it is looked after");
    assert_eq!(made(&stage).await, [began]);
    stage.clock.pass(1);
    for _ in 0..2 {
        keymaker.turn().await.expect("it is looked after");
    }
    assert_eq!(made(&stage).await, [began, stage.engine.now()]);
    assert_eq!(stage.engine.signing_ring().await.expect("a ring").newest().made_at(), stage.engine.now());
}

#[tokio::test]
async fn without_a_number_of_days_only_people_make_keys() {
    let stage = Stage::new(Config { token_key_days: 0, ..Config::default() });
    let keymaker = Keymaker::new(std::sync::Arc::clone(&stage.engine));
    keymaker.turn().await.expect("it is looked after");
    stage.clock.pass(1_000 * DAY_MS);
    keymaker.turn().await.expect("it is looked after");
    assert_eq!(made(&stage).await.len(), 1);
}

#[tokio::test]
async fn of_servers_on_one_store_the_second_finds_the_key_of_the_first() {
    let stage = Stage::new(Config::default());
    let other = stage.beside(2, &[], |_| {});
    stage.engine.signing_ring().await.expect("a ring");
    other.signing_ring().await.expect("a ring");
    stage.clock.pass(31 * DAY_MS);
    for engine in [&stage.engine, &other] {
        Keymaker::new(std::sync::Arc::clone(engine)).turn().await.expect("it is looked after");
    }
    assert_eq!(made(&stage).await.len(), 2);
    let newest = |ring: &runvoy_model::signing::SigningRing| ring.newest().made_at();
    let (one, two) = (stage.engine.signing_ring().await.expect("a ring"), other.signing_ring().await.expect("a ring"));
    assert_eq!(newest(&one), newest(&two));
}
