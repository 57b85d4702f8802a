//! Commands that run as another user can do nothing with what the worker has.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use runvoy_ports::runner::{ExitStatus, Runner};
use runvoy_runners::{ProcessRunner, RunAs, User};

use crate::stage::{ALL, Stage, living, nobody, start_and_settle, uids, unique};

#[tokio::test]
async fn security_28_a_command_of_another_user_has_no_privilege_left() {
    for containment in ALL {
        let stage = Stage::with(|config| {
            config.user = User::One(nobody());
            config.containment = Some(containment);
        })
        .await;
        let (text, exit) = stage.run("id -u; id -g; id -G; grep -E '^(NoNewPrivs|Cap)' /proc/self/status; umask; ls /proc/self/fd").await;
        assert_eq!(exit.status, ExitStatus::Code(0), "{containment:?}");
        let (uid, gid) = (nobody().uid, nobody().gid);
        assert!(text.starts_with(&format!("{uid}\n{gid}\n{gid}\n")), "{containment:?}: {text}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert!(text.contains(&format!("{set}:\t0000000000000000\n")), "{containment:?}: {text}");
        }
        assert!(text.contains("NoNewPrivs:\t1\n0077\n0\n1\n2\n3\n"), "{containment:?}: {text}");
    }
}

#[tokio::test]
async fn a_command_of_the_same_user_gains_no_privileges_either() {
    let stage = Stage::new().await;
    assert_eq!(stage.run("grep NoNewPrivs /proc/self/status").await.0, "NoNewPrivs:\t1\n");
}

#[tokio::test]
async fn another_user_owns_its_work_directory_and_nothing_around_it() {
    let stage = Stage::with(|config| config.user = User::One(nobody())).await;
    let script = "exec 2>/dev/null; echo x > mine && cat mine; stat -c '%u %a' .; touch ../yours || echo kept out; \
                  ls .. || echo blind; touch /etc/x || echo safe; kill -9 $PPID || echo spared";
    let (text, _) = stage.run(script).await;
    assert_eq!(text, format!("x\n{} 700\nkept out\nblind\nsafe\nspared\n", nobody().uid));
}

#[tokio::test]
async fn another_users_processes_are_killed_too_on_every_rung() {
    for containment in ALL {
        let stage = Stage::with(|config| {
            config.user = User::One(nobody());
            config.containment = Some(containment);
        })
        .await;
        let started = start_and_settle(&stage, "trap '' TERM; setsid sleep 1001 & sleep 1002", 2).await;
        started.control.kill();
        started.exit.await.unwrap();
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}");
    }
}

#[tokio::test]
async fn a_command_that_stops_everything_of_its_user_does_not_stop_the_spawner() {
    // A user of its own, or it would stop the commands of other tests.
    let loner = RunAs { uid: 54_321, gid: 54_321, groups: Vec::new() };
    let stage = Stage::with(|config| config.user = User::One(loner)).await;
    let script = "perl -e '$SIG{STOP}=\"IGNORE\"; for (1..1e9) { kill STOP => -1 }'";
    let hostile = start_and_settle(&stage, script, 0).await;
    // Others of the same user may be stopped before they run. They must still be killable, and the spawner must answer.
    for _ in 0..20 {
        let victim = stage.shell("exit 0");
        let _unanswered = tokio::time::timeout(std::time::Duration::from_millis(20), stage.runner.start(victim)).await;
    }
    hostile.control.kill();
    hostile.exit.await.unwrap();
    assert_eq!(stage.run("echo alive").await.0, "alive\n");
}

#[tokio::test]
async fn a_work_root_that_the_user_cannot_reach_is_told() {
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let mut config = crate::stage::config(root.path());
    config.user = User::One(nobody());
    let stage = Stage { runner: ProcessRunner::new(config).await.unwrap(), root, mark: unique() };
    let error = stage.refused(stage.shell("true")).await;
    assert!(error.message.contains("cannot enter work directory") && error.message.contains("chmod o+x"), "{error}");
}

#[tokio::test]
async fn without_root_a_user_namespace_contains_commands() {
    crate::stage::need_root();
    let stage = Stage::with(|config| {
        // Somewhere that the user can read the program and write its work root.
        let root = config.work_root.parent().unwrap().to_owned();
        let program = root.join("spawner");
        fs::copy(&config.spawner_program, &program).unwrap();
        config.work_root = root.join("theirs");
        fs::create_dir(&config.work_root).unwrap();
        std::os::unix::fs::chown(&config.work_root, Some(nobody().uid), Some(nobody().gid)).unwrap();
        config.spawner_program = "/usr/bin/setpriv".into();
        let ids = [format!("--reuid={}", nobody().uid), format!("--regid={}", nobody().gid), "--clear-groups".to_owned()];
        config.spawner_args = ids.into_iter().chain([program.display().to_string()]).collect();
    })
    .await;
    assert_eq!(stage.runner.containment(), runvoy_ports::runner::Containment::PidNamespace);
    assert_eq!(stage.run("id -u; echo $$").await.0, format!("{}\n2\n", nobody().uid));
    let started = start_and_settle(&stage, "trap '' TERM; setsid sleep 1001 & sleep 1002", 2).await;
    started.control.kill();
    started.exit.await.unwrap();
    assert_eq!(living(&stage.mark), [0u32; 0]);
    let mut limited = stage.shell("true");
    limited.limits.memory_bytes = Some(1 << 30);
    let error = stage.refused(limited).await;
    assert!(error.message.contains("cannot be enforced") && error.message.contains("memory"), "{error}");
}

#[tokio::test]
async fn another_user_can_open_its_standard_output_by_name() {
    for user in [User::One(nobody()), User::Each(uids(2))] {
        let stage = Stage::with(|config| config.user = user).await;
        let (text, exit) = stage.run("echo one > /dev/stdout && echo two >> /proc/self/fd/1 && echo three 2>/dev/null >/dev/stderr").await;
        assert_eq!((text.as_str(), exit.status), ("one\ntwo\n", ExitStatus::Code(0)));
    }
}
