//! Commands with users of their own see nothing of each other and of the server, leave nothing behind, and can be given less isolation.

use std::fs;
use std::path::Path;

use runvoy_ports::runner::{ExitStatus, ProtectionState, Runner, Start, WorkDir};
use runvoy_runners::{IsolationLevel, User};

use crate::stage::{ALL, Stage, living, sleeping, uids, until};

async fn stage(level: IsolationLevel) -> Stage {
    Stage::with(|config| {
        config.user = User::Each(uids(8));
        config.isolation.level = level;
        config.isolation.hidden = vec![config.work_root.parent().unwrap().to_owned()];
    })
    .await
}

#[tokio::test]
async fn security_28_commands_see_nothing_of_each_other() {
    for containment in ALL {
        let stage = Stage::with(|config| {
            config.user = User::Each(uids(8));
            config.containment = Some(containment);
        })
        .await;
        let left = stage.mark.clone();
        let script = format!(
            "umask 0; echo x > /tmp/{left}; echo x > /dev/shm/{left}; echo x > /var/tmp/{left}; ipcmk -Q >/dev/null; exec sleep 1000"
        );
        let victim = stage.runner.start(stage.shell(&script)).await.unwrap();
        until("the other command waits", || sleeping(&stage.mark) == 1).await;
        let (text, _) = stage
            .run(&format!(
                "ls -d /tmp/{left} /dev/shm/{left} /var/tmp/{left} 2>/dev/null; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'slee[p] 1000'; \
                 grep -vc msqid /proc/sysvipc/msg; (kill -0 {}) 2>&1 | grep -o 'No such process'",
                victim.pid.unwrap()
            ))
            .await;
        assert_eq!(text, "0\n0\nNo such process\n", "{containment:?}");
        victim.control.kill();
        assert_eq!(victim.exit.await.unwrap().status, ExitStatus::Signal(9), "{containment:?}");
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}");
        for place in ["/tmp", "/var/tmp", "/dev/shm"] {
            assert!(!Path::new(place).join(&left).exists(), "{containment:?}: {place}");
        }
    }
}

#[tokio::test]
async fn commands_of_one_attempt_share_tmp_and_leave_nothing() {
    let stage = stage(IsolationLevel::Strict).await;
    let first = stage.shell("echo kept > /tmp/file; rm -rf /tmp/.t*; ln -s /etc /tmp/x; echo here > $PWD/own");
    let argv = stage.shell("cat /tmp/file own; ls -a $PWD/../.. | wc -l").argv;
    let second = Start { argv, work_dir: WorkDir::Kept, ..first.clone() };
    stage.runner.start(first).await.unwrap().exit.await.unwrap();
    let (text, exit) = stage.run_start(second).await;
    assert!(text.starts_with("kept\nhere\n") && exit.status == ExitStatus::Code(0), "{text} {exit:?}");
    let left: Vec<_> = fs::read_dir(stage.work_root()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [".spawners"]);
}

#[tokio::test]
async fn the_server_s_directory_is_hidden() {
    let stage = stage(IsolationLevel::Strict).await;
    fs::write(stage.root.path().join("admin.key"), "secret").unwrap();
    std::os::unix::fs::chown(stage.root.path().join("admin.key"), Some(0), Some(0)).unwrap();
    let (text, _) = stage.run("test -e ../../admin.key || echo hidden; echo mine > f; cat f").await;
    assert_eq!(text, "hidden\nmine\n");
}

#[tokio::test]
async fn denied_system_calls_fail_and_basic_isolation_allows_them() {
    let script =
        "unshare -U true 2>&1 | grep -c 'not permitted'; (echo x > /run/lock/$$) 2>/dev/null && rm /run/lock/$$ && echo wrote; true";
    let strict = stage(IsolationLevel::Strict).await;
    let landlock = strict.runner.protections().into_iter().any(|one| one.name == "landlock" && one.state == ProtectionState::On);
    assert_eq!(strict.run(script).await.0, if landlock { "1\n" } else { "1\nwrote\n" });
    assert!(stage(IsolationLevel::Basic).await.run(script).await.0.starts_with("0\n"));
}

#[tokio::test]
async fn isolation_can_be_turned_off_and_is_reported() {
    let strict = stage(IsolationLevel::Strict).await;
    let tried = |stage: &Stage| {
        let found = stage.runner.protections().into_iter().filter(|one| one.state != ProtectionState::Off);
        found.map(|one| one.name).collect::<Vec<_>>()
    };
    assert_eq!(tried(&strict), ["namespaces", "seccomp", "landlock"]);
    let off = stage(IsolationLevel::Off).await;
    assert_eq!(tried(&off), [""; 0]);
    let (text, _) = off.run("echo $$").await;
    assert_ne!(text, "2\n");
    assert_eq!(strict.run("echo $$").await.0, "2\n");
}

#[tokio::test]
async fn default_limits_hold_where_none_are_asked_for() {
    let stage = Stage::with(|config| {
        config.user = User::Each(uids(2));
        config.isolation.pids = Some(20);
        config.isolation.memory_bytes = Some(32 << 20);
    })
    .await;
    let bomb = ["perl", "-e", "my $n = 0; while (defined(my $pid = fork)) { if (!$pid) { sleep 100; exit } $n++ } print $n"];
    assert_eq!(stage.run_start(stage.program(&bomb)).await.0, "19");
    let (_, exit) = stage.run_start(stage.program(&["perl", "-e", "my $x = 'x' x (200 * 1024 * 1024)"])).await;
    assert!(exit.oom_killed, "{exit:?}");
}

#[tokio::test]
async fn exit_codes_and_signals_come_back_from_the_namespace() {
    let stage = stage(IsolationLevel::Strict).await;
    assert_eq!(stage.run("exit 7").await.1.status, ExitStatus::Code(7));
    assert_eq!(stage.run("kill -TERM $$").await.1.status, ExitStatus::Signal(15));
    let started = stage.runner.start(stage.shell("trap 'exit 9' TERM; echo; while :; do sleep 0.01; done")).await.unwrap();
    until("it runs", || sleeping(&stage.mark) == 1).await;
    started.control.terminate();
    assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(9));
}
