//! Whatever dies, commands do not outlive it, and what even the spawner left is swept.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use runvoy_ports::runner::{Containment, ExitStatus, Runner, Start};
use runvoy_runners::{Config, ProcessRunner};

use crate::stage::{self, ALL, Stage, cgroups_with, living, sleeping, start_and_settle, unique, until};

const HOST_ROOT: &str = "RUNVOY_TEST_HOST_ROOT";
const HOST_INSTANCE: &str = "RUNVOY_TEST_HOST_INSTANCE";
const HOST_RUNG: &str = "RUNVOY_TEST_HOST_RUNG";
const SCRIPT: &str = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1001' & ( ( setsid sleep 1002 & ) & ); sleep 1003";
const SLEEPERS: usize = 3;

fn host_config(root: &Path, instance: &str, rung: usize) -> Config {
    Config { instance: instance.to_owned(), containment: Some(ALL[rung]), ..stage::config(root) }
}

/// A worker in a process of its own, so that a test can kill it: the tests below start this very program again with these variables set.
/// Without them there is nothing to be the worker of.
#[test]
fn host() {
    if std::env::var_os(HOST_ROOT).is_none() {
        return;
    }
    let variable = |name| std::env::var(name).expect("started by another test");
    let config = host_config(Path::new(&variable(HOST_ROOT)), &variable(HOST_INSTANCE), variable(HOST_RUNG).parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mark = config.instance.clone();
        let runner = ProcessRunner::new(config).await.unwrap();
        let started = runner.start(stage::marked(&mark, &["sh", "-c", SCRIPT])).await.unwrap();
        until("all processes run", || sleeping(&mark) >= SLEEPERS).await;
        println!("\nspawner {}", runner.spawner_pid());
        println!("ready");
        drop(started.exit.await);
    });
}

/// Starts a worker with a running command; returns it and its spawner's pid.
fn start_host(root: &Path, instance: &str, rung: usize) -> (Child, u32) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::host", "--nocapture"])
        .env(HOST_ROOT, root)
        .env(HOST_INSTANCE, instance)
        .env(HOST_RUNG, rung.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut spawner = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(pid) = line.strip_prefix("spawner ") {
            spawner = pid.parse().unwrap();
        }
        if line == "ready" {
            return (child, spawner);
        }
    }
    let status = child.wait().unwrap();
    panic!("the worker ended before it was ready: {status}");
}

fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap().success());
}

fn is_there(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn commands_die_with_a_killed_worker_on_every_rung() {
    for (rung, containment) in ALL.into_iter().enumerate() {
        let root = tempfile::tempdir().unwrap();
        let instance = unique();
        let (mut worker, spawner) = start_host(root.path(), &instance, rung);
        assert!(sleeping(&instance) >= SLEEPERS);
        worker.kill().unwrap();
        worker.wait().unwrap();
        until(&format!("{containment:?}: commands die with their worker"), || living(&instance).is_empty()).await;
        until("the spawner leaves", || !is_there(spawner)).await;
        assert!(cgroups_with(&instance).is_empty(), "{containment:?}");
    }
}

#[tokio::test]
async fn a_spawner_ignores_the_signals_of_a_terminal_and_of_a_polite_stop() {
    let stage = Stage::new().await;
    let spawner = stage.runner.spawner_pid();
    for name in ["INT", "TERM", "HUP", "QUIT", "USR1", "PIPE", "TSTP", "ALRM"] {
        signal(spawner, name);
    }
    assert_eq!(stage.run("echo alive").await.0, "alive\n");
    assert_eq!(stage.runner.spawner_pid(), spawner);
    let stat = fs::read_to_string(format!("/proc/{spawner}/stat")).unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, spawner.to_string(), "it has a session of its own");
}

#[tokio::test]
async fn a_lost_spawner_is_told_its_commands_are_killed_and_a_new_one_takes_over() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let started = start_and_settle(&stage, SCRIPT, SLEEPERS).await;
        let old = stage.runner.spawner_pid();
        signal(old, "KILL");
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Lost, "{containment:?}");
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}");
        assert_eq!(stage.run("echo again").await.0, "again\n", "{containment:?}");
        assert_ne!(stage.runner.spawner_pid(), old);
    }
}

#[tokio::test]
async fn a_start_right_after_the_spawner_died_still_works() {
    let stage = Stage::new().await;
    for _ in 0..10 {
        let old = stage.runner.spawner_pid();
        signal(old, "KILL");
        until("the kernel has ended it", || !is_there(old)).await;
        assert_eq!(stage.run("echo on").await.0, "on\n");
    }
}

#[tokio::test]
async fn a_sweep_ends_what_worker_and_spawner_left_and_nothing_else() {
    for (rung, containment) in ALL.into_iter().enumerate() {
        let root = tempfile::tempdir().unwrap();
        let instance = unique();
        let (mut worker, spawner) = start_host(root.path(), &instance, rung);
        let bystander = Stage::of(containment).await;
        let other = start_and_settle(&bystander, "setsid sleep 1001 & sleep 1002", 2).await;
        // Stopped first, so that the spawner cannot do its duty before it is killed itself.
        signal(spawner, "STOP");
        worker.kill().unwrap();
        worker.wait().unwrap();
        signal(spawner, "KILL");
        let runner = ProcessRunner::new(host_config(root.path(), &instance, rung)).await.unwrap();
        let found = runner.sweep().await.unwrap();
        until(&format!("{containment:?}: leftovers are gone"), || living(&instance).is_empty()).await;
        if matches!(containment, Containment::CgroupV2 | Containment::CgroupV1) {
            assert_eq!(found, 1, "{containment:?}");
        }
        let left: Vec<_> = fs::read_dir(root.path().join("work")).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, [".spawners"], "{containment:?}: stale work directories are gone");
        assert_eq!(living(&bystander.mark).len(), 3, "{containment:?}: another server is not touched");
        other.control.kill();
        other.exit.await.unwrap();
        assert_eq!(runner.sweep().await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_sweep_outwaits_a_spawner_that_is_stuck() {
    let root = tempfile::tempdir().unwrap();
    let instance = unique();
    let (mut worker, spawner) = start_host(root.path(), &instance, 0);
    signal(spawner, "STOP");
    worker.kill().unwrap();
    worker.wait().unwrap();
    let runner = ProcessRunner::new(host_config(root.path(), &instance, 0)).await.unwrap();
    runner.sweep().await.unwrap();
    assert!(!is_there(spawner), "a frozen spawner could start commands when it thaws");
    assert_eq!(living(&instance), [0u32; 0]);
}

#[tokio::test]
async fn a_sweep_leaves_running_commands_of_this_runner_alone() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let started = start_and_settle(&stage, "setsid sleep 1001 & sleep 1002", 2).await;
        assert_eq!(stage.runner.sweep().await.unwrap(), 0, "{containment:?}");
        assert_eq!(living(&stage.mark).len(), 3, "{containment:?}");
        assert!(started.work_dir.exists());
        started.control.kill();
        started.exit.await.unwrap();
    }
}

#[tokio::test]
async fn dropping_the_runner_ends_everything() {
    let stage = Stage::new().await;
    let started = start_and_settle(&stage, SCRIPT, SLEEPERS).await;
    let Stage { runner, mark, root } = stage;
    drop(runner);
    assert_eq!(started.exit.await.unwrap().status, ExitStatus::Lost);
    assert_eq!(living(&mark), [0u32; 0]);
    drop(root);
}

#[tokio::test]
async fn a_command_is_killed_when_its_time_is_over_though_its_worker_is_frozen() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let mut started = start_and_settle(&stage, SCRIPT, SLEEPERS).await;
        started.control.live_for(Duration::from_secs(600));
        started.control.live_for(Duration::from_millis(1));
        until(&format!("{containment:?}: nothing of it is left"), || living(&stage.mark).is_empty()).await;
        let exit = (&mut started.exit).await.unwrap();
        assert_eq!(exit.status, ExitStatus::Signal(9), "{containment:?}");
        assert_eq!(stage.run("echo alive").await.0, "alive\n", "what nobody limited runs on");
    }
}

#[tokio::test]
async fn a_command_has_its_time_from_its_start_on() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let start = Start { live_for: Some(Duration::from_millis(300)), ..stage.shell("sleep 1000") };
        let started = stage.runner.start(start).await.unwrap();
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Signal(9), "{containment:?}");
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}");
    }
}

#[tokio::test]
async fn a_command_that_is_given_more_time_lives_on() {
    let stage = Stage::new().await;
    let mut start = stage.runner.start(stage.shell("sleep 1000")).await.unwrap();
    start.control.live_for(Duration::from_millis(300));
    start.control.live_for(Duration::from_secs(600));
    // Longer than the first of them: what is shown is that nothing happens.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(start.exit.try_recv().is_err(), "it was killed");
    start.control.kill();
}
