//! Attempts with users of their own: none can see, signal or read another, and none is given what may still be another's.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use runvoy_ports::runner::{Containment, ExitStatus, Runner, Start, Started, WorkDir, WorkFile};
use runvoy_runners::{Config, ProcessRunner, RunAs, UidRange, User};

use crate::stage::{ALL, Stage, config, living, nobody, sleeping, uids, unique, until};

/// What every process of this user can be asked by others of it.
const SNOOP: &str = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c '^CANARY=' || true";

fn owner(path: &Path) -> (u32, u32, u32) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.uid(), metadata.gid(), metadata.mode() & 0o777)
}

fn uid_of(started: &Started) -> u32 {
    owner(&started.work_dir).0
}

async fn stage_with(range: UidRange, containment: Option<Containment>) -> Stage {
    Stage::with(|config| {
        config.user = User::Each(range);
        config.containment = containment;
    })
    .await
}

/// A command that has a secret in its environment and in a file, and waits.
async fn start_victim(stage: &Stage) -> Started {
    let mut victim = stage.shell("exec sleep 1000");
    victim.env.insert("CANARY".to_owned(), "hunter2".to_owned());
    victim.work_dir = WorkDir::New(vec![WorkFile { name: ".env".to_owned(), contents: b"CANARY=hunter2\n".to_vec() }]);
    let started = stage.runner.start(victim).await.expect("it starts");
    until("the command runs", || sleeping(&stage.mark) == 1).await;
    started
}

#[tokio::test]
async fn security_14_no_command_sees_signals_or_reads_another_one() {
    for containment in ALL {
        let stage = stage_with(uids(8), Some(containment)).await;
        let victim = start_victim(&stage).await;
        let (uid, gid, mode) = owner(&victim.work_dir);
        assert_eq!((gid, mode), (uid, 0o700), "{containment:?}");
        assert_eq!(owner(&victim.work_dir.join(".env")), (uid, uid, 0o600), "{containment:?}");
        let (directory, pid) = (victim.work_dir.display(), victim.pid.expect("a process"));
        let (text, exit) = stage
            .run(&format!(
                "exec 2>/dev/null; id -u; id -g; id -G; {SNOOP}; ls {directory} || echo blind; cat {directory}/.env || echo blind; \
                 kill -9 {pid}; kill -9 -1; echo done"
            ))
            .await;
        assert_eq!(exit.status, ExitStatus::Code(0), "{containment:?}: {text}");
        let lines: Vec<&str> = text.lines().collect();
        let own: u32 = lines[0].parse().unwrap();
        assert!(own != uid && own >= 1000, "{containment:?}: {text}");
        assert_eq!(lines[1..], [lines[0], lines[0], "0", "blind", "blind", "done"], "{containment:?}");
        assert_eq!(sleeping(&stage.mark), 1, "{containment:?}: it was not killed");
        victim.control.kill();
        victim.exit.await.unwrap();
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}: and still can be");
    }
}

/// What the test above would find if it could.
#[tokio::test]
async fn commands_that_share_one_user_see_each_other() {
    let loner = RunAs { uid: uids(1).to_string().split('-').next().unwrap().parse().unwrap(), gid: 65_534, groups: Vec::new() };
    let stage = Stage::with(|config| config.user = User::One(loner)).await;
    let victim = start_victim(&stage).await;
    let (text, _) = stage.run(&format!("{SNOOP}; cat {}/.env", victim.work_dir.display())).await;
    assert_eq!(text, "1\nCANARY=hunter2\n");
}

#[tokio::test]
async fn all_commands_of_an_attempt_are_one_user_without_privileges_at_home_in_its_work_directory() {
    for containment in ALL {
        let range = uids(4);
        let stage = stage_with(range, Some(containment)).await;
        let script =
            "id -u; touch \"$HOME/of-$1\"; pwd; echo $HOME; umask; grep -E '^(NoNewPrivs|Cap)' /proc/self/status; ls /proc/self/fd";
        let mut first = stage.program(&["sh", "-c", script, "sh", "first"]);
        first.env.insert("HOME".to_owned(), String::new());
        let argv = stage.program(&["sh", "-c", "id -u; stat -c %u of-first .", "sh"]).argv;
        let second = Start { argv, work_dir: WorkDir::Kept, ..first.clone() };
        let started = stage.runner.start(first).await.unwrap();
        let (uid, directory) = (uid_of(&started), started.work_dir.display().to_string());
        assert!(range.contains(uid), "{containment:?}");
        let text = String::from_utf8(crate::stage::read_all(started.stdout).await).unwrap();
        started.exit.await.unwrap();
        assert!(text.starts_with(&format!("{uid}\n{directory}\n{directory}\n0077\n")), "{containment:?}: {text}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert!(text.contains(&format!("{set}:\t0000000000000000\n")), "{containment:?}: {text}");
        }
        assert!(text.ends_with("NoNewPrivs:\t1\n0\n1\n2\n3\n"), "{containment:?}: {text}");
        assert_eq!(stage.run_start(second).await.0, format!("{uid}\n{uid}\n{uid}\n"), "{containment:?}");
        assert!(!Path::new(&directory).exists(), "{containment:?}");
    }
}

#[tokio::test]
async fn uids_go_around_and_one_in_use_is_left_out() {
    let stage = stage_with(uids(3), None).await;
    let held = start_victim(&stage).await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(stage.run("id -u").await.0.trim().parse::<u32>().unwrap());
    }
    assert!(!seen.contains(&uid_of(&held)), "{seen:?}");
    assert_ne!(seen[0], seen[1]);
    assert_eq!([&seen[..2], &seen[..2], &seen[..2]].concat(), seen);
}

#[tokio::test]
async fn a_uid_is_not_lent_again_while_a_process_of_it_lives_whatever_was_cleaned_up() {
    let stage = stage_with(uids(1), None).await;
    let start = stage.shell("sleep 1000");
    let execution = start.execution;
    let started = stage.runner.start(start).await.unwrap();
    let uid = uid_of(&started);
    stage.runner.clean_up(execution, 1).await;
    let error = stage.refused(stage.shell("true")).await;
    assert!(error.message.contains("every uid of") && error.message.contains("in use"), "{error}");
    started.control.kill();
    started.exit.await.unwrap();
    assert_eq!(stage.run("id -u").await.0, format!("{uid}\n"));
}

#[tokio::test]
async fn a_start_that_fails_gives_its_uid_back() {
    let stage = stage_with(uids(1), None).await;
    for _ in 0..3 {
        let error = stage.refused(stage.program(&["/no/such/tool"])).await;
        assert!(error.message.contains("not found"), "{error}");
    }
    assert_eq!(stage.run("echo next").await.0, "next\n");
}

#[tokio::test]
async fn a_lost_spawner_s_uids_come_back_when_its_commands_are_gone() {
    let stage = stage_with(uids(1), None).await;
    let start = stage.shell("exec sleep 1000");
    let execution = start.execution;
    let started = stage.runner.start(start).await.unwrap();
    let uid = uid_of(&started);
    assert!(Command::new("kill").args(["-9", &stage.runner.spawner_pid().to_string()]).status().unwrap().success());
    assert_eq!(started.exit.await.unwrap().status, ExitStatus::Lost);
    assert_eq!(living(&stage.mark), [0u32; 0]);
    stage.runner.clean_up(execution, 1).await;
    assert_eq!(stage.run("id -u").await.0, format!("{uid}\n"));
}

#[tokio::test]
async fn a_uid_that_somebody_else_uses_when_a_worker_starts_is_left_out() {
    let range = uids(2);
    let (first, other) = (stage_with(range, None).await, stage_with(range, None).await);
    let used = start_victim(&first).await;
    other.runner.sweep().await.unwrap();
    for _ in 0..3 {
        let uid: u32 = other.run("id -u").await.0.trim().parse().unwrap();
        assert!(range.contains(uid) && uid != uid_of(&used));
    }
}

#[tokio::test]
async fn a_range_that_somebody_has_a_part_of_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let range = format!("{0}-{0}", nobody().uid).parse().unwrap();
    let error = ProcessRunner::new(Config { user: User::Each(range), ..config(root.path()) }).await.err().unwrap();
    assert!(error.message.contains("/etc/passwd (nobody)"), "{error}");
}

/// A stage whose spawner runs under `setpriv` with these arguments.
async fn unprivileged(args: &[&str]) -> Result<Stage, String> {
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut settings = config(root.path());
    let program = root.path().join("spawner");
    fs::copy(&settings.spawner_program, &program).unwrap();
    settings.spawner_program = "/usr/bin/setpriv".into();
    settings.spawner_args = args.iter().map(|arg| (*arg).to_owned()).chain([program.display().to_string()]).collect();
    settings.user = User::Each(uids(4));
    let runner = ProcessRunner::new(settings).await.map_err(|error| error.message)?;
    Ok(Stage { root, runner, mark: unique() })
}

#[tokio::test]
async fn a_worker_that_cannot_change_users_is_refused() {
    let said = unprivileged(&["--reuid=12345", "--regid=12345", "--clear-groups"]).await.err().unwrap();
    assert!(said.contains("uid 12345") && said.contains("CAP_SETUID") && said.contains("run it as root"), "{said}");
    let said = unprivileged(&["--bounding-set=-setuid", "--inh-caps=-setuid"]).await.err().unwrap();
    assert!(said.contains("lacks CAP_SETUID (run it as root)"), "root is not enough: {said}");
}

#[tokio::test]
async fn a_worker_without_root_that_may_change_users_is_enough() {
    let capabilities = "+chown,+dac_override,+fowner,+kill,+setgid,+setuid,+setpcap";
    let (inherited, ambient) = (format!("--inh-caps={capabilities}"), format!("--ambient-caps={capabilities}"));
    let stage = unprivileged(&["--reuid=12345", "--regid=12345", "--clear-groups", &inherited, &ambient]).await.unwrap();
    let victim = start_victim(&stage).await;
    let (text, _) = stage.run("id -u; grep -E '^Cap(Eff|Bnd)' /proc/self/status").await;
    assert!(text.ends_with("CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"), "{text}");
    assert!(!text.starts_with("12345\n") && !text.starts_with("0\n") && !text.starts_with(&format!("{}\n", uid_of(&victim))), "{text}");
    victim.control.kill();
    victim.exit.await.unwrap();
    assert_eq!(living(&stage.mark), [0u32; 0]);
}
