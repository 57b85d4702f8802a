//! The web page of an execution: where it is said to be, and that it is opened.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::fake::{Fake, Reply};
use crate::user::{ID, User, answer, finish, log, server, text};

const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// A server that names a page of its own.
fn with_page() -> Fake {
    Fake::new(|seen| match seen.path() {
        "/api/v1/run" => {
            let page = format!("https://server.example.com/logs?execution_id={ID}");
            Reply::json(
                202,
                json!({"execution_id": ID, "log_url": page, "status": "PENDING", "command": "x", "image_id": "", "websocket_url": log().websocket_url()}),
            )
        }
        _ => answer(seen, 0),
    })
}

#[tokio::test]
async fn run_and_logs_say_once_where_the_page_is() {
    let user = User::of(&with_page()).await;
    let served = format!("### runvoy: web page: https://server.example.com/logs?execution_id={ID}\n");
    let at_endpoint = format!("### runvoy: web page: {}/logs?execution_id={ID}\n", user.endpoint);
    let configured = format!("### runvoy: web page: https://page.example.com/?execution_id={ID}\n");
    for (words, web_url, told) in [
        (&["run", "x"][..], None, Some(&served)),
        (&["run", "-d", "x"], None, Some(&served)),
        (&["run", "x"], Some("https://page.example.com/"), Some(&configured)),
        (&["logs", ID], Some("https://page.example.com"), Some(&configured)),
        (&["logs", ID], None, Some(&at_endpoint)),
        (&["-q", "run", "x"], None, None),
    ] {
        let mut command = user.command(words);
        command.envs(web_url.map(|url| ("RUNVOY_WEB_URL", url)));
        let output = finish(command).await;
        let said = text(&output.stderr);
        assert_eq!(said.matches("web page").count(), usize::from(told.is_some()), "{words:?}: {said}");
        assert!(told.is_none_or(|told| said.contains(told)), "{words:?}: {said}");
        assert!(!text(&output.stdout).contains("web page"), "{words:?}");
    }
    let without = User::of(&server(0)).await.run(&["run", "x"]).await;
    assert!(!text(&without.stderr).contains("web page"), "a server without a page: {}", text(&without.stderr));
}

#[tokio::test]
async fn the_page_is_opened_in_a_browser_or_its_address_printed() {
    let user = User::of(&with_page()).await;
    let bin = user.home.path().join("bin");
    std::fs::create_dir(&bin).expect("made");
    let opener = bin.join(OPENER);
    std::fs::write(&opener, "#!/bin/sh\necho \"$1\" > opened\n").expect("written");
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let mut logs = user.command(&["logs", "--web", ID]);
    logs.env("RUNVOY_WEB_URL", "https://page.example.com").env("PATH", &bin);
    let output = finish(logs).await;
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()), "{}", text(&output.stderr));
    let opened = || std::fs::read_to_string(user.home.path().join("opened")).unwrap_or_default();
    assert_eq!(opened(), format!("https://page.example.com/?execution_id={ID}\n"));
    let mut run = user.command(&["run", "--web", "x"]);
    run.env("PATH", &bin);
    assert_eq!(finish(run).await.status.code(), Some(0));
    assert_eq!(opened(), format!("https://server.example.com/logs?execution_id={ID}\n"));
    let mut none = user.command(&["logs", "--web", ID]);
    none.env("PATH", user.home.path()).env("RUNVOY_WEB_URL", "https://page.example.com");
    let said = text(&finish(none).await.stderr);
    assert!(said.contains("Open this page in a browser: https://page.example.com/"), "{said}");
}
