//! Many short commands leave nothing behind: no zombie, no cgroup, no descriptor, no directory. A process of its own, because it
//! counts the descriptors of the whole process.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in a test an error is a failure")]

#[path = "process/stage.rs"]
#[expect(dead_code, reason = "shared with the other tests of this crate")]
mod stage;

use std::fs;

use runvoy_ports::runner::{ExitStatus, Runner};
use stage::{Stage, cgroups_with, zombies_of};

const COMMANDS: usize = 2000;
const AT_ONCE: usize = 8;

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

async fn run_batch(stage: &Stage) {
    let mut batch = Vec::new();
    for _ in 0..AT_ONCE {
        let start = stage.shell("true");
        batch.push((start.execution, stage.runner.start(start).await.expect("it starts")));
    }
    for (execution, started) in batch {
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(0));
        stage.runner.clean_up(execution, 1).await;
    }
}

#[tokio::test]
async fn two_thousand_short_commands_leave_nothing() {
    let instance = stage::unique();
    let name = instance.clone();
    let stage = Stage::with(|config| config.instance = name).await;
    let spawner = stage.runner.spawner_pid();
    run_batch(&stage).await;
    let before = (descriptors(std::process::id()), descriptors(spawner));
    for _ in 0..COMMANDS / AT_ONCE {
        run_batch(&stage).await;
    }
    assert_eq!((descriptors(std::process::id()), descriptors(spawner)), before);
    assert_eq!(zombies_of(spawner), [0u32; 0]);
    assert_eq!(cgroups_with(&instance).len(), 1, "only the directory that holds them");
    assert_eq!(fs::read_dir(stage.work_root()).unwrap().count(), 1, "only the journal");
}
