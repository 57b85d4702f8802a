//! Whose commands may run as the server's own user, while the store fails and servers die.

mod stage;
mod torn;

use std::sync::Arc;

use runvoy_engine::{Config, LocalLeases, RunRequest};
use runvoy_model::command::Submit;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::role::Role;
use runvoy_model::spec::{DEFAULT_PRIORITY, LOCAL_IMAGE, Spec};
use runvoy_model::status::Status;
use runvoy_ports::clock::IdSource as _;
use runvoy_ports::lease::Leases as _;
use runvoy_ports::store::ExecutionStore as _;

use self::stage::{Stage, command, worker};
use self::torn::Torn;

const ADA: &str = "ada@example.com";

async fn submit(stage: &Stage, created_by: &str) -> ExecutionId {
    let id = ExecutionId(stage.ids.next_id());
    let spec = Spec::lost(Name::new("default").expect("a name"), DEFAULT_PRIORITY);
    let spec = Spec { command: "true".into(), image: LOCAL_IMAGE.into(), ..spec };
    let submit = Submit { id, spec, created_by: created_by.into(), key: None, lease_to: None };
    stage.store.submit(stage.step(&worker(1, true)), submit).await.expect("submitted");
    id
}

#[tokio::test]
async fn one_that_cannot_be_turned_away_keeps_no_other_from_starting() {
    let stage = Stage::new(Config { shares_uid: true, ..Config::default() });
    stage.admitted(ADA, Role::Admin).await;
    let store = Torn::over(Arc::clone(&stage.store));
    let engine = stage.started(2, |ports| ports.store = Arc::clone(&store) as _);
    let leases = LocalLeases::new(engine);
    let (own, stuck, gone) = (submit(&stage, ADA).await, submit(&stage, "eve@example.com").await, submit(&stage, "eve@example.com").await);
    store.stuck.lock().insert(stuck);
    let leased = leases.lease(3).await.expect("what may start is given");
    assert_eq!(leased.iter().map(|execution| execution.id).collect::<Vec<_>>(), [own]);
    let status = async |id| stage.store.get(id).await.expect("an answer").expect("it is there").status;
    assert_eq!((status(own).await, status(stuck).await, status(gone).await), (Status::Running, Status::Running, Status::Failed));
}

#[tokio::test]
async fn an_execution_whose_attempts_end_with_the_server_is_not_retried_without_end() {
    let mut stage = Stage::new(Config::default());
    let id = stage.run(RunRequest { retries: Some(50), ..command("true") }).await.id;
    for death in 1..=3 {
        stage.clock.pass(3_600_000);
        stage.lease(&worker(death, true), 2_000).await.expect("it can be leased");
        stage.restart(death + 1);
        assert_eq!(stage.engine.recover().await.expect("the store answers"), 1);
        let status = stage.store.get(id).await.expect("an answer").expect("it is there").status;
        assert_eq!(status, if death < 3 { Status::Pending } else { Status::Failed }, "{death}");
    }
}
