//! What a command gets and what comes back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use runvoy_ports::runner::{ExitStatus, Runner};

use tokio::io::AsyncReadExt;

use crate::stage::{ALL, Stage, living, read_all, until};

#[tokio::test]
async fn the_exit_code_and_the_signal_come_back_on_every_rung() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        assert_eq!(stage.run("exit 0").await.1.status, ExitStatus::Code(0), "{containment:?}");
        assert_eq!(stage.run("exit 42").await.1.status, ExitStatus::Code(42), "{containment:?}");
        assert_eq!(stage.run("kill -9 $$").await.1.status, ExitStatus::Signal(9), "{containment:?}");
        assert_eq!(stage.run("kill -TERM $$").await.1.status, ExitStatus::Signal(15), "{containment:?}");
    }
}

#[tokio::test]
async fn both_streams_come_back_byte_for_byte() {
    let stage = Stage::new().await;
    let started = stage.runner.start(stage.shell(r"printf 'out\000\377\n'; printf 'err' >&2")).await.unwrap();
    assert_eq!(read_all(started.stdout).await, b"out\x00\xff\n");
    assert_eq!(read_all(started.stderr).await, b"err");
    assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(0));
}

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let stage = Stage::new().await;
    let args = ["printf", "%s|", "a b", "", "$HOME", "'\"", "ü\n", "-n"];
    assert_eq!(stage.run_start(stage.program(&args)).await.0, "a b||$HOME|'\"|ü\n|-n|");
}

#[tokio::test]
async fn a_command_larger_than_a_packet_arrives_whole() {
    let stage = Stage::new().await;
    let mut start = stage.shell("printf %s \"$BIG1$BIG2$BIG3\" | wc -c");
    for i in 1..=3 {
        start.env.insert(format!("BIG{i}"), "x".repeat(100_000));
    }
    assert_eq!(stage.run_start(start).await.0.trim(), "300000");
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let stage = Stage::new().await;
    let mut start = stage.program(&["/usr/bin/env", "-0"]);
    start.env = [("A", "1"), ("B", "x=y\nz"), ("EMPTY", "")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    assert_eq!(stage.run_start(start).await.0, "A=1\0B=x=y\nz\0EMPTY=\0");
}

#[tokio::test]
async fn a_bare_name_is_found_in_the_given_path() {
    let stage = Stage::new().await;
    let tools = stage.root.path().join("tools");
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("greet"), "#!/bin/sh\necho hi\n").unwrap();
    fs::set_permissions(tools.join("greet"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut start = stage.program(&["greet"]);
    start.env.insert("PATH".to_owned(), format!("/nonexistent:{}", tools.display()));
    assert_eq!(stage.run_start(start).await.0, "hi\n");
}

#[tokio::test]
async fn stdin_is_empty_and_only_three_descriptors_are_open() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        assert_eq!(stage.run("cat; readlink /proc/self/fd/0").await.0, "/dev/null\n", "{containment:?}");
        // The fourth is the directory that is being listed.
        let (text, _) = stage.run_start(stage.program(&["ls", "/proc/self/fd"])).await;
        assert_eq!(text, "0\n1\n2\n3\n", "{containment:?}");
    }
}

#[tokio::test]
async fn signals_session_and_umask_are_fresh() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let script = "umask; grep -E '^Sig(Blk|Ign)' /proc/self/status; \
                      test $(cut -d' ' -f6 /proc/$$/stat) = $(cut -d' ' -f1 /proc/$$/stat) && echo leader";
        let (text, _) = stage.run(script).await;
        assert_eq!(text, "0077\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nleader\n", "{containment:?}");
    }
}

#[tokio::test]
async fn each_attempt_has_a_private_work_directory_of_its_own() {
    let stage = Stage::new().await;
    let start = stage.shell("pwd; stat -c '%a %u' .; echo data > file; stat -c %a file");
    let (execution, name) = (start.execution, format!("{}-1", start.execution));
    let started = stage.runner.start(start).await.unwrap();
    let text = String::from_utf8(read_all(started.stdout).await).unwrap();
    started.exit.await.unwrap();
    let expected = stage.work_root().canonicalize().unwrap().join(&name);
    assert_eq!(started.work_dir, expected);
    assert_eq!(text, format!("{}\n700 0\n600\n", expected.display()));
    assert!(expected.join("file").exists(), "it stays until it is cleaned up");
    stage.runner.clean_up(execution, 1).await;
    assert!(!expected.exists());
}

#[tokio::test]
async fn security_25_a_symlink_left_behind_is_not_followed_by_the_cleanup() {
    let stage = Stage::new().await;
    let treasure = stage.root.path().join("treasure");
    fs::create_dir(&treasure).unwrap();
    fs::write(treasure.join("gold"), "x").unwrap();
    let (_, exit) = stage.run(&format!("mkdir -p a/b; ln -s {0} a/b/link; ln -s {0} link; ln -s / root", treasure.display())).await;
    assert_eq!(exit.status, ExitStatus::Code(0));
    assert_eq!(fs::read_to_string(treasure.join("gold")).unwrap(), "x");
    assert!(fs::read_dir(stage.work_root()).unwrap().flatten().all(|entry| entry.file_name().to_string_lossy().starts_with('.')));
}

#[tokio::test]
async fn a_mount_left_behind_is_not_entered_by_the_cleanup() {
    let stage = Stage::of(runvoy_ports::runner::Containment::CgroupV2).await;
    let treasure = stage.root.path().join("treasure");
    fs::create_dir(&treasure).unwrap();
    fs::write(treasure.join("gold"), "x").unwrap();
    let start = stage.shell(&format!("mkdir m && mount --bind {} m && echo mounted", treasure.display()));
    let directory = stage.work_root().join(format!("{}-1", start.execution));
    let (text, _) = stage.run_start(start).await;
    assert_eq!(text, "mounted\n");
    let gold = fs::read_to_string(treasure.join("gold"));
    let unmounted = std::process::Command::new("umount").arg(directory.join("m")).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(gold.unwrap(), "x");
}

#[tokio::test]
async fn a_planted_work_directory_is_refused() {
    let stage = Stage::new().await;
    let start = stage.shell("touch here");
    let place = stage.work_root().join(format!("{}-1", start.execution));
    let trap = stage.root.path().join("trap");
    fs::create_dir(&trap).unwrap();
    symlink(&trap, &place).unwrap();
    let error = stage.refused(start).await;
    assert!(error.message.contains("exists already"), "{error}");
    assert_eq!(fs::read_dir(&trap).unwrap().count(), 0);
}

#[tokio::test]
async fn cpu_time_and_memory_are_counted() {
    let stage = Stage::new().await;
    let (_, exit) = stage.run("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").await;
    assert!(exit.cpu_ms > 10, "{exit:?}");
    assert!(exit.max_rss_bytes > 100_000, "{exit:?}");
    assert!(!exit.oom_killed);
}

#[tokio::test]
async fn terminate_reaches_every_process_of_the_command() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let script = "setsid sh -c 'trap \"echo child; exit\" TERM; echo ready; while :; do sleep 0.01; done' & \
                      trap 'echo main; wait; exit 3' TERM; while :; do sleep 0.01; done";
        let started = stage.runner.start(stage.shell(script)).await.unwrap();
        let mut first = [0; 6];
        let mut stdout = started.stdout;
        stdout.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"ready\n");
        started.control.terminate();
        let text = String::from_utf8(read_all(stdout).await).unwrap();
        assert!(text.contains("child") && text.contains("main"), "{containment:?}: {text}");
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(3), "{containment:?}");
    }
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_any_more_is_killed() {
    let stage = Stage::new().await;
    {
        let mut start = stage.runner.start(stage.shell("sleep 1000"));
        // One poll sends the request; dropping the future then leaves the command without an owner.
        let waker = std::task::Waker::noop();
        assert!(start.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    }
    assert_eq!(stage.run("true").await.1.status, ExitStatus::Code(0));
    until("the forgotten command is gone", || living(&stage.mark).is_empty()).await;
}
