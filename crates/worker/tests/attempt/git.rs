//! Repositories are cloned before their command, from a real server by a real git, and what is hostile reaches neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runvoy_model::command::Outcome;
use runvoy_model::git::Reach;
use runvoy_model::retry::Category;
use runvoy_worker::Git;

use crate::server::{GitServer, TOKEN};
use crate::stage::{Played, Stage};

const FILES: [&[(&str, &str)]; 2] = [&[("file", "one\n"), ("sub dir/deep/inner", "in\n")], &[("file", "two\n")]];

/// How many processes show this text among their arguments.
fn process_lists_with(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("a process list").flatten();
    let lists = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lists.filter(|list| list.windows(text.len()).any(|part| part == text.as_bytes())).count()
}

async fn play(server: &GitServer, stage: Stage) -> Played {
    let git = Git { reach: Reach::Private, ca_file: Some(server.ca_file.clone()) };
    Stage { git, ..stage }.play().await
}

#[tokio::test]
async fn a_repository_is_cloned_before_its_command() {
    let server = GitServer::start().await;
    server.fill(&FILES);
    let repo = format!("{}/public/a.git", server.url);
    let played =
        play(&server, Stage::new("basename $PWD; cat file; git rev-list --count HEAD; git symbolic-ref --short HEAD").repo(&repo)).await;
    played.assert_exit(0);
    assert!(played.log.contains("out: repo\nout: two\nout: 1\nout: main\n"), "{}", played.log);
    let platform: Vec<&str> = played.log.lines().filter_map(|line| line.strip_prefix("platform: ### runvoy: ")).collect();
    assert_eq!(platform[0], "attempt 1 started on test (process runner)");
    assert_eq!(platform[1], format!("cloning {repo}"));
    assert!(platform[2].starts_with("git: commit "), "{platform:?}");
    assert_eq!(played.starts, 2);
}

#[tokio::test]
async fn a_command_has_its_terminal_and_git_has_none() {
    let server = GitServer::start().await;
    server.fill(&FILES);
    let mut stage = Stage::new("cat file").repo(&format!("{}/public/a.git", server.url));
    stage.spec.terminal = true;
    let played = play(&server, stage).await;
    played.assert_exit(0);
    assert_eq!((played.starts, played.terminals), (2, 1));
}

#[tokio::test]
async fn branches_tags_commits_and_full_refs_are_found() {
    let server = GitServer::start().await;
    let first = server.fill(&FILES);
    let repo = format!("{}/public/a.git", server.url);
    for (reference, contents) in [("v1", "one"), ("feature/x", "two"), (first.as_str(), "one"), ("refs/heads/main", "two")] {
        let played = play(&server, Stage::new("cat file").repo(&repo).reference(reference)).await;
        played.assert_exit(0);
        assert!(played.log.contains(&format!("out: {contents}\n")), "{reference}: {}", played.log);
    }
}

#[tokio::test]
async fn the_command_runs_in_the_directory_asked_for() {
    let server = GitServer::start().await;
    server.fill(&FILES);
    let repo = format!("{}/public/a.git", server.url);
    let played = play(&server, Stage::new("cat inner").repo(&repo).path("sub dir/deep")).await;
    played.assert_exit(0);
    assert!(played.log.contains("out: in\n"), "{}", played.log);
    let played = play(&server, Stage::new("touch ran").repo(&repo).path("absent")).await;
    assert!(played.git_failure().contains("the repository has no directory absent"), "{}", played.log);
    assert_eq!(played.starts, 1, "the command did not run");
}

#[tokio::test]
async fn security_24_a_directory_that_leads_out_of_the_repository_is_refused() {
    let server = GitServer::start().await;
    server.fill(&[&[("sub/inner", "in"), ("out@", "/"), ("within@", "sub")]]);
    let repo = format!("{}/public/a.git", server.url);
    for path in ["out", "out/etc"] {
        let played = play(&server, Stage::new("pwd").repo(&repo).path(path)).await;
        assert!(played.git_failure().contains("leads out of the repository"), "{}", played.log);
        assert_eq!(played.starts, 1, "the command did not run");
    }
    let played = play(&server, Stage::new("cat inner").repo(&repo).path("within")).await;
    played.assert_exit(0);
}

#[tokio::test]
async fn what_cannot_be_cloned_ends_the_attempt_with_gits_words() {
    let server = GitServer::start().await;
    server.fill(&FILES);
    for (stage, words, expected) in [
        (Stage::new("true").repo(&format!("{}/public/absent.git", server.url)), "not found", Category::NotFound),
        (Stage::new("true").repo(&format!("{}/public/a.git", server.url)).reference("absent"), "absent", Category::NotFound),
        (Stage::new("true").repo(&format!("{}/public/a.git", server.url)).reference(&"0".repeat(40)), "0000", Category::NotFound),
        (Stage::new("true").repo(&format!("{}/private/a.git", server.url)), "terminal prompts disabled", Category::Auth),
        (
            Stage::new("true").repo(&format!("{}/private/a.git", server.url)).token("wrong-token-here"),
            "Authentication failed",
            Category::Auth,
        ),
        (Stage::new("true").repo("https://127.0.0.1:1/a.git"), "127.0.0.1", Category::Network),
    ] {
        let played = play(&server, stage).await;
        assert!(played.git_failure().contains(words), "{words}: {}", played.log);
        let is_expected = matches!(played.outcome, Outcome::GitFailed { category, .. } if category == expected);
        assert!(is_expected, "{words}: {:?}", played.outcome);
        assert!(played.log.contains("platform: ### runvoy: git: fatal: "), "{}", played.log);
        assert!(!played.log.contains("wrong-token-here"), "{}", played.log);
        assert_eq!(played.starts, 1, "the command did not run");
    }
}

#[tokio::test]
async fn a_token_opens_a_private_repository_and_is_seen_nowhere() {
    let server = GitServer::start().await;
    server.fill(&FILES);
    let over = Arc::new(AtomicBool::new(false));
    let watch = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let mut seen = 0;
            while !over.load(Ordering::SeqCst) {
                seen += process_lists_with(TOKEN);
            }
            seen
        }
    });
    let command = "cat file; env; cat .git/config; tr '\\0' '\\n' < /proc/$$/environ";
    let played = play(&server, Stage::new(command).repo(&format!("{}/private/a.git", server.url)).token(TOKEN)).await;
    played.assert_exit(0);
    assert!(played.log.contains("out: two\n"), "{}", played.log);
    over.store(true, Ordering::SeqCst);
    assert_eq!(watch.join().expect("it watches"), 0, "the token was an argument of some process");
    // The mask would hide the value; its stars would tell that it was there.
    assert!(!played.log.contains(TOKEN) && !played.log.contains("***") && !played.log.contains("RUNVOY_GIT"), "{}", played.log);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = GitServer::start().await;
    server.fill(&FILES);
    let played = play(&server, Stage::new("true").repo(&format!("{}/moved/a.git", server.url))).await;
    assert!(played.git_failure().contains("302"), "{:?}", played.outcome);
    assert_eq!(played.starts, 1, "the command did not run");
}

#[tokio::test]
async fn hooks_submodules_and_filters_of_a_repository_do_not_run() {
    let server = GitServer::start().await;
    let modules = "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% $HOME/canary\n";
    let files: &[(&str, &str)] = &[
        (".gitmodules", modules),
        (".gitattributes", "* filter=evil\n"),
        ("hooks/post-checkout", "#!/bin/sh\ntouch $HOME/canary\n"),
        (".gitconfig", "[core]\n\thooksPath = hooks\n[filter \"evil\"]\n\tsmudge = touch $HOME/canary\n"),
    ];
    server.fill(&[files]);
    let command = "test -e $HOME/canary && echo canary; ls -A .git/hooks 2>/dev/null; echo done";
    let played = play(&server, Stage::new(command).repo(&format!("{}/public/a.git", server.url))).await;
    played.assert_exit(0);
    assert!(played.log.contains("out: done\n") && !played.log.contains("canary"), "{}", played.log);
}

#[tokio::test]
async fn the_environment_is_in_a_private_file_beside_and_in_the_repository() {
    let server = GitServer::start().await;
    server.fill(&FILES);
    let command =
        ". ./.env; printf '%s\\n' \"$NAME\" \"$REGION\"; stat -c %a .env ../.env; git status --porcelain; cmp .env ../.env && echo same";
    let stage =
        Stage::new(command).repo(&format!("{}/public/a.git", server.url)).env("RUNVOY_USER_NAME", "it's\n\"me\"").env("REGION", "eu");
    let played = play(&server, stage).await;
    played.assert_exit(0);
    assert!(played.log.contains("out: it's\nout: \"me\"\nout: eu\nout: 600\nout: 600\nout: same\n"), "{}", played.log);
}

#[tokio::test]
async fn a_repositorys_own_env_file_stays_and_the_log_says_so() {
    let server = GitServer::start().await;
    server.fill(&[&[(".env", "NAME=theirs\n")]]);
    let stage = Stage::new("cat .env ../.env").repo(&format!("{}/public/a.git", server.url)).env("NAME", "mine");
    let played = play(&server, stage).await;
    played.assert_exit(0);
    assert!(played.log.contains("out: NAME=theirs\nout: NAME=mine\n"), "{}", played.log);
    assert!(played.log.contains("platform: ### runvoy: git: the repository has its own .env file"), "{}", played.log);
}

#[tokio::test]
async fn the_timeout_counts_the_clone() {
    let server = GitServer::start().await;
    let mut stage = Stage::new("true").repo(&format!("{}/silent/a.git", server.url));
    stage.spec.timeout_ms = Some(700);
    let played = play(&server, stage).await;
    assert!(matches!(played.outcome, Outcome::TimedOut { timeout_ms: 700, .. }), "{:?}", played.outcome);
}

#[tokio::test]
async fn a_kill_reaches_the_clone() {
    let server = GitServer::start().await;
    let mut stage = Stage::new("true").repo(&format!("{}/silent/a.git", server.url));
    stage.kill_at = Some("cloning");
    let played = play(&server, stage).await;
    assert!(
        matches!(played.outcome, Outcome::Signalled { after_kill: true, .. } | Outcome::Exited { after_kill: true, .. }),
        "{:?}",
        played.outcome
    );
    assert_eq!(played.starts, 1, "the command did not run");
}

#[tokio::test]
async fn a_kill_at_the_very_end_of_the_clone_keeps_the_command_from_starting() {
    let server = GitServer::start().await;
    server.fill(&FILES);
    let mut stage = Stage::new("echo ran").repo(&format!("{}/public/a.git", server.url));
    // The last line of a clone.
    stage.kill_at = Some("git: commit ");
    let played = play(&server, stage).await;
    assert!(
        played.was_ended_before_its_start() || matches!(played.outcome, Outcome::Signalled { after_kill: true, .. }),
        "{:?}",
        played.outcome
    );
    assert_eq!(played.starts, 1, "the command did not run");
}

#[tokio::test]
async fn a_clone_that_did_without_what_was_killed_in_it_is_a_clone() {
    let server = GitServer::start().await;
    server.fill(&FILES);
    let mut stage = Stage::new("cat file").repo(&format!("{}/public/a.git", server.url));
    stage.oom_kills = true;
    let played = play(&server, stage).await;
    played.assert_exit(0);
    assert!(played.log.contains("out: two\n"), "the command ran: {}", played.log);
    let mut stage = Stage::new("true").repo(&format!("{}/public/absent.git", server.url));
    stage.oom_kills = true;
    assert_eq!(play(&server, stage).await.outcome, Outcome::OutOfMemory);
}

#[tokio::test]
async fn security_24_a_hostile_source_is_refused_before_anything_starts() {
    for repo in [
        "--upload-pack=touch canary",
        "ext::sh -c touch% canary",
        "-oProxyCommand=touch canary",
        "ssh://-oProxyCommand=touch/a",
        "file:///etc",
        "https://git.example.com/a\n.git",
        "https://$HOME/a.git",
    ] {
        let played = Stage::new("true").repo(repo).play().await;
        assert!(played.git_failure().starts_with("the repository "), "{repo}: {:?}", played.outcome);
        assert_eq!(played.starts, 0, "{repo}");
    }
    let played = Stage { git: Git::default(), ..Stage::new("true").repo("https://169.254.169.254/latest") }.play().await;
    assert!(played.git_failure().contains("private network"), "{:?}", played.outcome);
    assert_eq!(played.starts, 0);
}
