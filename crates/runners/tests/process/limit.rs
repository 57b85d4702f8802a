//! Limits hold, and one that cannot hold is refused.

use runvoy_ports::runner::{Containment, ExitStatus, Limits, Runner as _};

use crate::stage::{ALL, Stage, until};

#[tokio::test]
async fn going_over_the_memory_limit_is_told_as_such() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let mut start = stage.program(&["perl", "-e", "my $x = 'x' x (200 * 1024 * 1024); print length $x"]);
        start.limits.memory_bytes = Some(32 * 1024 * 1024);
        let (text, exit) = stage.run_start(start).await;
        assert_eq!(text, "", "{containment:?}");
        assert_eq!(exit.status, ExitStatus::Signal(9), "{containment:?}");
        assert!(exit.oom_killed, "{containment:?}");
    }
}

#[tokio::test]
async fn staying_under_the_memory_limit_is_not() {
    let stage = Stage::new().await;
    let mut start = stage.shell("echo fine");
    start.limits.memory_bytes = Some(64 * 1024 * 1024);
    let (text, exit) = stage.run_start(start).await;
    assert_eq!((text.as_str(), exit.status, exit.oom_killed), ("fine\n", ExitStatus::Code(0), false));
}

#[tokio::test]
async fn the_process_limit_stops_a_fork_bomb() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let mut start =
            stage.program(&["perl", "-e", "my $n = 0; while (defined(my $pid = fork)) { if (!$pid) { sleep 100; exit } $n++ } print $n"]);
        start.limits.pids = Some(20);
        let (text, exit) = stage.run_start(start).await;
        assert_eq!((text.as_str(), exit.status), ("19", ExitStatus::Code(0)), "{containment:?}");
    }
}

#[tokio::test]
async fn the_cpu_limit_is_set_on_the_command() {
    let stage = Stage::new().await;
    let script = "p=$(grep -E ':(cpu|cpu,cpuacct):' /proc/self/cgroup | cut -d: -f3); cat /sys/fs/cgroup/cpu$p/cpu.cfs_quota_us";
    let mut start = stage.shell(script);
    start.limits.cpu_millis = Some(250);
    assert_eq!(stage.run_start(start).await.0, "25000\n");
}

#[tokio::test]
async fn open_files_and_file_size_are_lowered() {
    let stage = Stage::new().await;
    let mut start = stage.shell("ulimit -n; ulimit -f; ulimit -Hn; head -c 2000000 /dev/zero > big; stat -c %s big");
    start.limits = Limits { open_files: Some(64), file_bytes: Some(1024 * 1024), ..Limits::default() };
    assert_eq!(stage.run_start(start).await.0, "64\n2048\n64\n1048576\n");
}

#[tokio::test]
async fn a_limit_above_what_the_worker_has_does_not_raise_it() {
    let stage = Stage::new().await;
    let (unlimited, _) = stage.run("ulimit -Hn").await;
    let mut start = stage.shell("ulimit -Hn");
    start.limits.open_files = Some(u64::MAX - 1);
    assert_eq!(stage.run_start(start).await.0, unlimited);
}

#[tokio::test]
async fn a_limit_of_zero_is_refused() {
    let stage = Stage::of(Containment::CgroupV2).await;
    let mut start = stage.shell("true");
    start.limits.memory_bytes = Some(0);
    assert!(stage.refused(start).await.message.contains("memory limit of zero"));
}

#[tokio::test]
async fn deleted_files_that_are_open_count_as_written() {
    for containment in [Containment::CgroupV2, Containment::CgroupV1] {
        let stage = Stage::of(containment).await;
        let start = stage.shell("exec 3> file; head -c 3000000 /dev/zero >&3; sync file; rm file; touch ready; exec sleep 1000");
        let (execution, attempt) = (start.execution, start.attempt);
        let started = stage.runner.start(start).await.expect("it starts");
        let work_dir = started.work_dir.clone();
        until("the file is deleted", || work_dir.join("ready").exists()).await;
        let used = stage.runner.disk_usage(execution, attempt).await;
        assert!((3_000_000..6_000_000).contains(&used), "{containment:?}: {used}");
        started.control.kill();
        started.exit.await.expect("it ends");
        assert!(stage.runner.disk_usage(execution, attempt).await < 3_000_000, "{containment:?}: it is gone");
    }
}
