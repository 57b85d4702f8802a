//! After a kill, or the end of its main process, nothing of a command is left.

use std::fs;

use runvoy_ports::runner::{Containment, ExitStatus, Runner};

use crate::stage::{ALL, Stage, cgroups_with, living, sleeping, start_and_settle, until, zombies_of};

/// Everything that a command does to get away: sessions, double forks, ignored signals, `nohup`, stopped processes, closed output.
const HOSTILE: &str = r#"
trap '' TERM HUP INT
setsid sh -c 'trap "" TERM HUP; nohup sleep 1001 >/dev/null 2>&1 & sleep 1002' &
( ( trap '' TERM; setsid sleep 1003 >/dev/null 2>&1 </dev/null & ) & )
perl -e 'use POSIX; $SIG{TERM}="IGNORE"; fork and exit; setsid(); fork and exit; close STDOUT; close STDERR;
         kill STOP => $$ if fork; sleep 1 while 1' &
sleep 1004
"#;
const HOSTILE_SLEEPERS: usize = 4;

/// Goes on only when what it started in other sessions runs.
const LEFTOVERS: &str = r#"
setsid sh -c 'trap "" TERM; touch a; sleep 1001 >/dev/null 2>&1' &
( ( setsid sh -c 'touch b; sleep 1002 >/dev/null 2>&1' & ) & )
while ! [ -e a ] || ! [ -e b ]; do sleep 0.01; done
"#;

#[tokio::test]
async fn a_kill_leaves_nothing_on_every_rung() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let started = start_and_settle(&stage, HOSTILE, HOSTILE_SLEEPERS).await;
        started.control.terminate();
        started.control.kill();
        let exit = started.exit.await.unwrap();
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}: everything is gone when the end is told");
        assert_eq!(exit.status, ExitStatus::Signal(9), "{containment:?}");
        assert_eq!(cgroups_with(&stage.mark), [""; 0].map(Into::<std::path::PathBuf>::into));
        let spawner = stage.runner.spawner_pid();
        until("orphans are reaped", || zombies_of(spawner).is_empty()).await;
    }
}

#[tokio::test]
async fn what_outlives_the_main_process_is_killed_on_every_rung() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let (_, exit) = stage.run(&format!("{LEFTOVERS} exit 5")).await;
        assert_eq!(exit.status, ExitStatus::Code(5), "{containment:?}");
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}");
    }
}

#[tokio::test]
async fn a_command_that_forks_without_end_dies_on_every_rung() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        // Every process lives briefly and leaves an orphan child: the classic way to outrun a kill by list.
        let script = "f() { sleep 0.01; f & }; f & f & f & sleep 1000";
        let started = start_and_settle(&stage, script, 2).await;
        started.control.kill();
        started.exit.await.unwrap();
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}");
    }
}

#[tokio::test]
async fn one_command_is_killed_and_its_neighbours_live_on() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let first = start_and_settle(&stage, "setsid sleep 1001 & sleep 1002", 2).await;
        let mut other = stage.shell("setsid sleep 1003 & sleep 1004");
        let other_mark = format!("{}-other", stage.mark);
        other.env.insert("RUNVOY_TEST_MARK".to_owned(), other_mark.clone());
        let second = stage.runner.start(other).await.unwrap();
        until("the neighbour runs", || sleeping(&other_mark) == 2).await;
        first.control.kill();
        first.exit.await.unwrap();
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}");
        assert_eq!(living(&other_mark).len(), 3, "{containment:?}");
        second.control.kill();
        second.exit.await.unwrap();
        assert_eq!(living(&other_mark), [0u32; 0], "{containment:?}");
    }
}

#[tokio::test]
async fn killing_the_init_process_does_not_free_a_weakly_held_command() {
    let stage = Stage::of(Containment::Weak).await;
    let (_, exit) = stage.run(&format!("{LEFTOVERS} kill -9 $PPID; sleep 1003")).await;
    assert_eq!(exit.status, ExitStatus::Lost);
    assert_eq!(living(&stage.mark), [0u32; 0]);
}

#[tokio::test]
async fn the_command_is_born_in_the_cgroup_named_after_it() {
    for (containment, line) in [(Containment::CgroupV2, "0::"), (Containment::CgroupV1, ":freezer:")] {
        let stage = Stage::of(containment).await;
        let start = stage.shell("cat /proc/self/cgroup");
        let name = format!("{}-1", start.execution);
        let (text, _) = stage.run_start(start).await;
        let own = text.lines().find(|entry| entry.contains(line)).unwrap_or_default();
        assert!(own.ends_with(&name) && own.contains("/runvoy/"), "{containment:?}: {own}");
        assert!(cgroups_with(&name).is_empty(), "{containment:?}");
    }
}

#[tokio::test]
async fn a_pid_namespace_shows_its_own_processes_only() {
    let stage = Stage::of(Containment::PidNamespace).await;
    let (text, _) = stage.run("echo $$; ls /proc | grep -c '^[0-9]*$'; cat /proc/self/comm").await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "2");
    assert!(lines[1].parse::<u32>().unwrap() < 8, "{text}");
    assert_eq!(lines[2], "cat");
    assert!(fs::read_to_string("/proc/self/stat").is_ok(), "the machine's own /proc is untouched");
}

#[tokio::test]
async fn the_surest_rung_is_taken_unless_told_otherwise() {
    let stage = Stage::new().await;
    assert_eq!(stage.runner.containment(), Containment::CgroupV2);
    assert_eq!(stage.runner.name(), "process");
}
