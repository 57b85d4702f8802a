//! What an attempt does for a command on a terminal. The terminal itself is the runner's.

use tempfile::TempDir;

use crate::stage::Stage;

fn on_terminal(command: &str) -> Stage {
    let mut stage = Stage::new(command);
    stage.spec.terminal = true;
    stage
}

#[tokio::test]
async fn a_command_is_told_what_terminal_it_has_and_the_user_may_say_otherwise() {
    let played = on_terminal("echo $TERM $PAGER").play().await;
    assert!(played.log.contains("out: xterm-256color cat\n"), "{}", played.log);
    assert_eq!((played.starts, played.terminals), (1, 1));
    let played = on_terminal("echo $TERM $PAGER").env("TERM", "vt100").env("PAGER", "less").play().await;
    assert!(played.log.contains("out: vt100 less\n"), "{}", played.log);
    let played = Stage::new("echo $TERM $PAGER").play().await;
    assert!(played.log.contains("out: dumb\n"), "{}", played.log);
    assert_eq!((played.starts, played.terminals), (1, 0));
}

/// Of a terminal, what is left comes through the pipe only once there is room in it; here somebody who waits for that stands for it.
#[tokio::test]
async fn time_in_which_output_could_not_be_read_is_not_taken_from_its_tail() {
    let dir = TempDir::new().expect("a directory");
    let taken = dir.path().join("taken");
    let script = format!("echo begun; (until test -e {}; do sleep 0.01; done; echo tail) &", taken.display());
    let mut stage = on_terminal(&script);
    // Longer than a held pipe is read.
    stage.holds = Some(("begun", 30, taken));
    let played = stage.play().await;
    assert!(played.log.contains("out: tail\n"), "{}", played.log);
    assert!(!played.log.contains("somebody else holds"), "{}", played.log);
}
