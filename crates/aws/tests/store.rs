//! The store on AWS keeps every promise: on two emulators that know nothing of each other, through lost answers and repeats of its callers,
//! and through a layer that fails as AWS does, with indexes that lag. It agrees with the reference over random histories.

mod emulator;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emulator::fault::Faults;
use emulator::{Emulator, clients, clients_through};
use runvoy_aws::{Clients, Config, DynamoStore, set_up};
use runvoy_conformance::fault::{Patient, ThroughFaults};
use runvoy_conformance::harness::{AUDIT_KEY, Opener, TransactionalStore};
use runvoy_ports::store::ExecutionStore;

async fn installed(emulator: &Emulator) -> Config {
    let config = emulator.config();
    set_up(&clients(emulator).await, &config).await.expect("an installation");
    config
}

async fn executions(emulator: &'static Emulator) -> Opener<dyn ExecutionStore> {
    let (config, clients) = (Arc::new(installed(emulator).await), clients(emulator).await);
    Opener::new(move || {
        let opened: Arc<dyn ExecutionStore> = Arc::new(open(&clients, &config));
        async { opened }
    })
    .await
}

async fn records(emulator: &'static Emulator) -> Opener<dyn TransactionalStore> {
    let (config, clients) = (Arc::new(installed(emulator).await), clients(emulator).await);
    Opener::new(move || {
        let opened: Arc<dyn TransactionalStore> = Arc::new(open(&clients, &config));
        async { opened }
    })
    .await
}

/// The same where everything goes wrong now and then between the store and AWS. A store that is opened again remembers nothing of what it wrote;
/// by then the indexes have caught up.
async fn failing_executions(emulator: &'static Emulator, seed: u64) -> Opener<dyn ExecutionStore> {
    let config = Arc::new(installed(emulator).await);
    let clients = clients_through(emulator, &Faults::everything(seed)).await;
    let opened_before = AtomicBool::new(false);
    Opener::new(move || {
        let opened: Arc<dyn ExecutionStore> = Arc::new(open(&clients, &config));
        let again = opened_before.swap(true, Ordering::Relaxed);
        async move {
            catch_up(again).await;
            opened
        }
    })
    .await
}

async fn failing(emulator: &'static Emulator, seed: u64) -> Opener<dyn TransactionalStore> {
    let config = Arc::new(installed(emulator).await);
    let clients = clients_through(emulator, &Faults::everything(seed)).await;
    let opened_before = AtomicBool::new(false);
    Opener::new(move || {
        let opened: Arc<dyn TransactionalStore> = Arc::new(open(&clients, &config));
        let again = opened_before.swap(true, Ordering::Relaxed);
        async move {
            catch_up(again).await;
            opened
        }
    })
    .await
}

async fn catch_up(again: bool) {
    if again {
        tokio::time::sleep(emulator::longest_lag()).await;
    }
}

fn open(clients: &Clients, config: &Arc<Config>) -> DynamoStore {
    DynamoStore::new(clients, Arc::clone(config), AUDIT_KEY)
}

mod ministack {
    use super::{Emulator, executions, records};

    runvoy_conformance::execution_store_conformance!(executions(Emulator::ministack()).await);
    runvoy_conformance::record_store_conformance!(records(Emulator::ministack()).await);
    runvoy_conformance::roster_conformance!(records(Emulator::ministack()).await);
    runvoy_conformance::cost_store_conformance!(records(Emulator::ministack()).await);
    runvoy_conformance::job_store_conformance!(records(Emulator::ministack()).await);
}

mod moto {
    use super::{Emulator, executions, records};

    runvoy_conformance::execution_store_conformance!(executions(Emulator::moto()).await);
    runvoy_conformance::record_store_conformance!(records(Emulator::moto()).await);
    runvoy_conformance::roster_conformance!(records(Emulator::moto()).await);
    runvoy_conformance::cost_store_conformance!(records(Emulator::moto()).await);
    runvoy_conformance::job_store_conformance!(records(Emulator::moto()).await);
}

/// Callers lose answers and repeat their steps.
mod repeated {
    use super::{Emulator, ThroughFaults, executions, records};

    runvoy_conformance::execution_store_conformance!(ThroughFaults::new(executions(Emulator::ministack()).await, 0xfa17));
    runvoy_conformance::record_store_conformance!(ThroughFaults::new(records(Emulator::ministack()).await, 0xfa17));
    runvoy_conformance::roster_conformance!(ThroughFaults::new(records(Emulator::ministack()).await, 0xfa17));
    runvoy_conformance::cost_store_conformance!(ThroughFaults::new(records(Emulator::ministack()).await, 0xfa17));
    runvoy_conformance::job_store_conformance!(ThroughFaults::new(records(Emulator::ministack()).await, 0xfa17));
}

/// AWS loses answers, is busy, meets itself, and its indexes lag; callers repeat what was not answered.
mod failing {
    use super::{Emulator, Patient, failing, failing_executions};

    runvoy_conformance::execution_store_conformance!(Patient::new(failing_executions(Emulator::ministack(), 0xfa17).await));
    runvoy_conformance::record_store_conformance!(Patient::new(failing(Emulator::ministack(), 0xfa17).await));
    runvoy_conformance::roster_conformance!(Patient::new(failing(Emulator::ministack(), 0xfa17).await));
    runvoy_conformance::cost_store_conformance!(Patient::new(failing(Emulator::ministack(), 0xfa17).await));
    runvoy_conformance::job_store_conformance!(Patient::new(failing(Emulator::ministack(), 0xfa17).await));
}

/// Promises of the whole system that the store answers for, counted. `RUNVOY_PROVE` asks for the full counts.
mod proofs {
    use runvoy_conformance::dag::ends_as_it_must;
    use runvoy_conformance::execution::gate::nobody_starves_behind;
    use runvoy_conformance::history::{agree_through_losses, agree_with_reference};
    use runvoy_conformance::race;
    use runvoy_memory::MemoryStore;

    use super::{AUDIT_KEY, DynamoStore, Emulator, Patient, executions, failing, records};

    /// The reference, with steps as large as they are here.
    fn reference() -> MemoryStore {
        MemoryStore::new(AUDIT_KEY).with_limits(DynamoStore::STEP_LIMITS)
    }

    fn count(little: usize, full: usize) -> usize {
        if std::env::var_os("RUNVOY_PROVE").is_some() { full } else { little }
    }

    #[tokio::test]
    async fn promise_30_random_histories_agree_with_the_reference() {
        let histories = count(4, 50);
        for seed in 0..histories as u64 {
            agree_with_reference(seed, 60, &reference(), &records(Emulator::ministack()).await).await;
        }
        println!("PROMISE 30 | random histories on DynamoDB agree with the reference | {histories} histories of 60 steps | ok");
    }

    #[tokio::test]
    async fn promise_30_random_histories_agree_though_aws_fails() {
        let histories = count(2, 25);
        for seed in 0..histories as u64 {
            let harness = Patient::new(failing(Emulator::ministack(), seed).await);
            agree_through_losses(seed, 60, &reference(), &harness).await;
        }
        println!(
            "PROMISE 30 | random histories agree though AWS throttles, conflicts, loses answers and its indexes lag | {histories} histories of 60 steps | ok"
        );
    }

    #[tokio::test]
    async fn promise_30_no_double_finish_in_any_interleaving() {
        let interleavings = count(20, 1_000);
        race::no_double_finish(3, interleavings, &executions(Emulator::ministack()).await).await;
        println!("PROMISE 30 | no double finish on DynamoDB | {interleavings} interleavings | ok");
    }

    #[tokio::test]
    async fn promise_30_two_thousand_that_cannot_be_taken_starve_nobody() {
        nobody_starves_behind(2_000, &executions(Emulator::ministack()).await).await;
        println!("PROMISE 30 | what cannot be taken starves nobody on DynamoDB | 2,000 in front | ok");
    }

    #[tokio::test]
    async fn promise_30_every_dag_ends_as_it_must() {
        let dags = count(2, 100);
        let (mut crashes, mut compared) = (0, 0);
        for seed in 0..dags as u64 {
            let played = ends_as_it_must(seed, 40, &records(Emulator::ministack()).await).await;
            (crashes, compared) = (crashes + played.crashes, compared + played.compared);
        }
        println!(
            "PROMISE 30 | every random DAG ends as it must on DynamoDB | {dags} DAGs of up to 40 tasks, {crashes} crashes | ok, {compared} states follow from the events"
        );
    }
}
