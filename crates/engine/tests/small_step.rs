//! An engine over a store whose steps are small: what is more than one step may hold becomes several, and the caller sees one answer.

mod stage;

use runvoy_engine::{Config, JobRequest, LocalLeases, RunRequest, TaskRequest, Wanted};
use runvoy_model::job::JobStatus;
use runvoy_model::limit::StepLimits;
use runvoy_model::redrive::Fate;
use runvoy_model::role::Role;
use runvoy_ports::lease::Leases as _;
use runvoy_ports::queue::DeadQuery;
use runvoy_ports::store::ExecutionStore as _;

use self::stage::{Stage, command, worker};

const SMALL: StepLimits = StepLimits { rows: 12, tasks: 3, bytes: 1 << 20, leases: 4, letters: 2, moves: 2, forgotten: 3 };

fn small() -> Stage {
    let stage = Stage::new(Config::default());
    // A clone shares the state.
    drop(stage.store.as_ref().clone().with_limits(SMALL));
    stage
}

#[tokio::test]
async fn a_request_redrives_more_than_one_step_takes() {
    let stage = small();
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    let mut dead = Vec::new();
    for _ in 0..5 {
        stage.run(RunRequest { retries: Some(1), ..command("false") }).await;
        for attempt in 0..2 {
            let execution = stage.lease(&worker(9, false), 30_000).await.expect("it waits");
            let ended = stage.finish(&worker(9, false), &execution, 69).await.expect("it ends");
            stage.clock.pass(600_000);
            assert_eq!(ended.dead, attempt == 1, "{ended:?}");
            dead.extend(ended.dead.then_some(ended));
        }
    }
    let ids: Vec<_> = dead.iter().map(|execution| execution.id.to_string()).collect();
    let report = stage.engine.redrive(&ada, "default", Wanted::Named(&ids), Some("once".into())).await.expect("redriven");
    assert_eq!((report.letters.len(), report.left), (5, 0));
    assert!(report.letters.iter().all(|letter| matches!(letter.fate, Fate::Execution(_))), "{report:?}");
    let again = stage.engine.redrive(&ada, "default", Wanted::Named(&ids), Some("once".into())).await.expect("redriven");
    assert_eq!(again, report, "the key stands for all of them");
    let (mut known, mut asked): (Vec<_>, Vec<_>) =
        (report.letters.iter().map(|letter| letter.execution).collect(), dead.iter().map(|execution| execution.id).collect());
    known.sort_unstable();
    asked.sort_unstable();
    assert_eq!(known, asked);
    let query = DeadQuery {
        queue: runvoy_model::name::Name::new("default").expect("a name"),
        owner: None,
        oldest_first: true,
        after: None,
        until: None,
        limit: 10,
    };
    assert!(stage.store.dead(query).await.expect("a look").is_empty());
}

#[tokio::test]
async fn a_job_is_written_in_as_many_steps_as_it_takes_and_leased_in_parts() {
    let stage = small();
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    let task = |number: usize| TaskRequest { task_id: format!("t{number}"), run: command("true"), ..TaskRequest::default() };
    let request = JobRequest { tasks: (0..10).map(task).collect(), ..JobRequest::default() };
    let job = stage.engine.submit_job(&ada, request).await.expect("it is taken").job;
    assert_eq!((job.status, job.counts.total), (JobStatus::Running, 10));
    let mut job = job;
    while job.attention {
        let step = runvoy_model::step::Step { audit: None, ..stage.step(&worker(1, true)) };
        job = stage.store.advance_job(step, job.id).await.expect("it goes on");
    }
    assert_eq!(job.counts.active, 10);
    let leases = LocalLeases::new(stage.engine.clone());
    assert_eq!(leases.lease(9).await.expect("work").len(), 4);
}
