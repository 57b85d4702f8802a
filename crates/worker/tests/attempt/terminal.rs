//! What an attempt does for a command on a terminal. The terminal itself is the runner's.

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
