//! Ctrl-C: what was submitted goes on, unless the user said otherwise.

use std::io::Read as _;
use std::process::{Child, ChildStderr, Command};

use crate::fake::{Fake, Reply};
use crate::user::{ID, User, end, endless, until_it_speaks};

fn interrupt(child: &Child) {
    let done = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is everywhere");
    assert!(done.success());
}

#[tokio::test]
async fn ctrl_c_leaves_the_execution_running_and_says_how_to_go_on() {
    let fake = Fake::new(endless);
    let (child, _stdout) = until_it_speaks(User::of(&fake).await.command(&["run", "x"])).await;
    interrupt(&child);
    let (code, stderr) = end(child).await;
    assert_eq!(code, Some(130));
    assert!(stderr.contains(&format!("runvoy logs -f {ID}")) && stderr.contains(&format!("runvoy kill {ID}")), "{stderr}");
    assert!(fake.seen().iter().all(|seen| seen.method != "DELETE"));
}

#[tokio::test]
async fn ctrl_c_kills_where_that_was_asked_for() {
    let fake = Fake::new(endless);
    let (child, _stdout) = until_it_speaks(User::of(&fake).await.command(&["run", "--kill-on-interrupt", "x"])).await;
    interrupt(&child);
    asked(&fake).await;
    interrupt(&child);
    assert_eq!(end(child).await.0, Some(130));
}

async fn asked(fake: &Fake) {
    while fake.seen().iter().all(|seen| seen.method != "DELETE") {
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_second_ctrl_c_tells_how_far_the_kill_has_come() {
    let deaf = Fake::new(|seen| if seen.method == "DELETE" { Reply::Cut } else { endless(seen) });
    let (child, _stdout) = until_it_speaks(User::of(&deaf).await.command(&["run", "--kill-on-interrupt", "x"])).await;
    interrupt(&child);
    asked(&deaf).await;
    interrupt(&child);
    let (code, stderr) = end(child).await;
    assert_eq!(code, Some(130));
    assert!(stderr.contains("has not answered the request to kill it") && stderr.contains(&format!("runvoy kill {ID}")), "{stderr}");

    let (mut child, _stdout) = until_it_speaks(User::of(&Fake::new(endless)).await.command(&["run", "--kill-on-interrupt", "x"])).await;
    interrupt(&child);
    let (before, stderr) = until_stderr_has(child.stderr.take().expect("piped"), "stopping: SIGTERM, then SIGKILL").await;
    child.stderr = Some(stderr);
    interrupt(&child);
    let (code, stderr) = end(child).await;
    assert_eq!(code, Some(130), "{before}{stderr}");
    assert!(stderr.contains("Detached. The server is stopping the execution.") && !stderr.contains("keeps running"), "{stderr}");
}

/// Reads what is said up to the line that has these words.
async fn until_stderr_has(stderr: ChildStderr, words: &'static str) -> (String, ChildStderr) {
    tokio::task::spawn_blocking(move || {
        let (mut stderr, mut said) = (stderr, Vec::new());
        let mut byte = [0];
        // A byte at a time: what comes after stays in the pipe.
        while !String::from_utf8_lossy(&said).contains(&format!("{words}\n")) {
            assert_eq!(stderr.read(&mut byte).expect("readable"), 1, "{}", String::from_utf8_lossy(&said));
            said.push(byte[0]);
        }
        (String::from_utf8_lossy(&said).into_owned(), stderr)
    })
    .await
    .expect("it speaks")
}
