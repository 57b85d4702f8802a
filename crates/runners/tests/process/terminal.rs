//! Commands on a terminal of their own.

use std::process::Command;

use runvoy_ports::runner::{Exit, ExitStatus, Runner, Start, Started};
use runvoy_runners::User;

use crate::stage::{ALL, Stage, living, nobody, read_all, sleeping, until};

fn on_terminal(stage: &Stage, script: &str) -> Start {
    Start { terminal: true, ..stage.shell(script) }
}

async fn run(stage: &Stage, script: &str) -> (String, Exit) {
    stage.run_start(on_terminal(stage, script)).await
}

async fn start(stage: &Stage, script: &str) -> Started {
    stage.runner.start(on_terminal(stage, script)).await.expect("it starts")
}

#[tokio::test]
async fn all_three_streams_are_the_terminal_of_a_session_of_its_own() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        // Of the numbers in stat, the first is its own, 5 to 8 are its group, its session, its terminal and who is in the foreground there.
        let script = "test -t 0 && test -t 1 && test -t 2 && tty; echo err >&2; echo open >/dev/tty; \
                      set -- $(cat /proc/$$/stat); test $7 != 0 && test $5 = $8 && test $1 = $6 && echo leader";
        let (text, exit) = run(&stage, script).await;
        let rest = text.strip_prefix("/dev/pts/").and_then(|text| text.split_once('\n')).map(|(_, rest)| rest);
        assert_eq!(rest, Some("err\nopen\nleader\n"), "{containment:?}: {text}");
        assert_eq!(exit.status, ExitStatus::Code(0), "{containment:?}");
        let ls = Start { terminal: true, ..stage.program(&["ls", "-1", "/proc/self/fd"]) };
        assert_eq!(stage.run_start(ls).await.0, "0\n1\n2\n3\n", "{containment:?}: the fourth is the directory that is being listed");
    }
}

#[tokio::test]
async fn a_command_without_a_terminal_has_none() {
    let stage = Stage::new().await;
    assert_eq!(stage.run("tty; test -t 1 || echo pipe; (echo >/dev/tty) 2>/dev/null || echo none").await.0, "not a tty\npipe\nnone\n");
}

#[tokio::test]
async fn nothing_comes_on_the_second_stream() {
    let stage = Stage::new().await;
    let started = start(&stage, "echo out; echo err >&2").await;
    assert_eq!(read_all(started.stdout).await, b"out\nerr\n");
    assert_eq!(read_all(started.stderr).await, b"");
    assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(0));
}

#[tokio::test]
async fn colours_come_back_byte_for_byte_and_lines_end_as_they_were_written() {
    let stage = Stage::new().await;
    let script = r"TERM=xterm-256color ls --color=auto -d /; printf 'a\r\n\033[1mb\033[0m\rc\tü\377\n'";
    let started = start(&stage, script).await;
    let bytes = read_all(started.stdout).await;
    assert!(bytes.contains(&0x1b) && bytes.ends_with(b"a\r\n\x1b[1mb\x1b[0m\rc\t\xc3\xbc\xff\n"), "{}", bytes.escape_ascii());
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\r').count(), 2, "{}", bytes.escape_ascii());
}

#[tokio::test]
async fn the_exit_code_and_the_signal_come_back_on_every_rung() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        assert_eq!(run(&stage, "exit 42").await.1.status, ExitStatus::Code(42), "{containment:?}");
        assert_eq!(run(&stage, "kill -9 $$").await.1.status, ExitStatus::Signal(9), "{containment:?}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_as_without_a_terminal() {
    let stage = Stage::new().await;
    let error = stage.refused(Start { terminal: true, ..stage.program(&["/no/such/tool"]) }).await;
    assert!(error.message.contains("/no/such/tool: not found"), "{error}");
}

#[tokio::test]
async fn whoever_reads_finds_the_end_of_input_every_time() {
    let stage = Stage::new().await;
    let (text, exit) = run(&stage, "cat; echo one; cat; echo two; read line; echo $?").await;
    assert_eq!((text.as_str(), exit.status), ("one\ntwo\n1\n", ExitStatus::Code(0)));
}

/// What a prompt for a password does: it throws away what was typed before.
#[tokio::test]
async fn whoever_throws_away_what_was_typed_finds_the_end_too() {
    let stage = Stage::new().await;
    let script = "perl -MPOSIX -e 'tcflush(0, TCIFLUSH); print defined(<STDIN>) ? \"line\" : \"end\", \"\\n\"'";
    assert_eq!(run(&stage, script).await.0, "end\n");
}

#[tokio::test]
async fn the_size_is_the_usual_one_or_what_the_environment_says() {
    let stage = Stage::new().await;
    assert_eq!(run(&stage, "stty size").await.0, "24 80\n");
    let mut wide = on_terminal(&stage, "stty size");
    wide.env.insert("COLUMNS".to_owned(), "200".to_owned());
    assert_eq!(stage.run_start(wide).await.0, "24 200\n");
}

#[tokio::test]
async fn a_megabyte_comes_whole_and_in_order_also_from_a_command_that_has_ended() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let (text, exit) = run(&stage, "seq 1 200000").await;
        let expected: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
        assert!(text == expected, "{containment:?}: {} of {} bytes", text.len(), expected.len());
        assert_eq!(exit.status, ExitStatus::Code(0), "{containment:?}");
        let started = start(&stage, "echo first; echo last").await;
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(0), "{containment:?}");
        assert_eq!(read_all(started.stdout).await, b"first\nlast\n", "{containment:?}");
    }
}

#[tokio::test]
async fn a_terminal_that_nobody_holds_for_a_while_has_not_ended() {
    let stage = Stage::new().await;
    let script = "exec </dev/null >/dev/null 2>&1; sleep 0.1; echo late >/dev/tty";
    assert_eq!(run(&stage, script).await.0, "late\n");
}

#[tokio::test]
async fn a_kill_leaves_nothing_on_every_rung() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let script = "trap '' HUP TERM; sleep 1000 & setsid sleep 1001 & nohup sleep 1002 & sleep 1003";
        let started = start(&stage, script).await;
        until("the processes of the command run", || sleeping(&stage.mark) >= 4).await;
        started.control.kill();
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Signal(9), "{containment:?}");
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}");
        read_all(started.stdout).await;
    }
}

#[tokio::test]
async fn a_background_child_ends_with_its_command_and_so_does_the_output() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let (text, exit) = run(&stage, "trap '' HUP; sleep 1000 & echo begun; exit 7").await;
        assert_eq!((text.as_str(), exit.status), ("begun\n", ExitStatus::Code(7)), "{containment:?}");
        assert_eq!(living(&stage.mark), [0u32; 0], "{containment:?}");
    }
}

#[tokio::test]
async fn terminate_reaches_the_command() {
    let stage = Stage::new().await;
    let started = start(&stage, "trap 'echo bye; exit 3' TERM; echo ready >ready; while :; do sleep 0.01; done").await;
    until("the command runs", || started.work_dir.join("ready").exists()).await;
    started.control.terminate();
    assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(3));
    let text = read_all(started.stdout).await;
    // The shell may tell of its child as well.
    assert!(text.ends_with(b"bye\n"), "{}", text.escape_ascii());
}

#[tokio::test]
async fn another_user_owns_its_terminal_alone() {
    for containment in ALL {
        let stage = Stage::with(|config| {
            config.user = User::One(nobody());
            config.containment = Some(containment);
        })
        .await;
        let (text, exit) = run(&stage, "stat -c '%u %a' $(tty); echo by name >$(tty); echo more >/dev/stderr").await;
        assert_eq!(text, format!("{} 600\nby name\nmore\n", nobody().uid), "{containment:?}");
        assert_eq!(exit.status, ExitStatus::Code(0), "{containment:?}");
    }
}

/// Sets how many files the spawner may have open, and leaves how many it may ask for.
fn limit_files(stage: &Stage, most: &str) {
    let pid = stage.runner.spawner_pid().to_string();
    assert!(Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={most}:")]).status().unwrap().success());
}

#[tokio::test]
async fn a_command_too_many_fails_alone() {
    let stage = Stage::new().await;
    let spawner = stage.runner.spawner_pid();
    let first = start(&stage, "until test -e go; do sleep 0.01; done; echo whole").await;
    // The standard streams alone are as many.
    limit_files(&stage, "3");
    let large = Start { terminal: true, ..stage.program(&["echo", &"x".repeat(100_000), &"y".repeat(100_000)]) };
    for start in [on_terminal(&stage, "echo never"), large] {
        let error = stage.refused(start).await;
        assert!(error.message.contains("too many open files"), "{error}");
    }
    limit_files(&stage, "256");
    assert_eq!(run(&stage, "echo again").await.0, "again\n");
    std::fs::write(first.work_dir.join("go"), "").unwrap();
    assert_eq!(read_all(first.stdout).await, b"whole\n");
    assert_eq!(first.exit.await.unwrap().status, ExitStatus::Code(0));
    assert_eq!(stage.runner.spawner_pid(), spawner, "it is the same one");
}
