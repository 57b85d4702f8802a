//! Ctrl-C: what was submitted goes on, unless the user said otherwise.

use std::process::{Child, Command};

use crate::fake::Fake;
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
    while fake.seen().iter().all(|seen| seen.method != "DELETE") {
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    interrupt(&child);
    assert_eq!(end(child).await.0, Some(130));
}
