//! Hints: what a user is told beside the data, so that they need not guess.

use crate::fake::{Fake, Reply};
use crate::user::{ID, User, answer, finish, server, status, text, with_stdin};
use runvoy_cli::command::topic;
use serde_json::{Value, json};

#[tokio::test]
async fn a_detached_submit_that_waits_says_what_for() {
    let fake = Fake::new(|seen| match seen.path() {
        path if path.ends_with("/status") => {
            let mut waiting = status("PENDING", None);
            waiting["waiting_for"] = json!({"code": "worker", "message": "a worker: none serves queue nope"});
            Reply::json(200, waiting)
        }
        _ => answer(seen, 0),
    });
    let user = User::of(&fake).await;
    let told = user.run(&["run", "--queue", "nope", "-d", "x"]).await;
    assert_eq!((told.status.code(), text(&told.stdout)), (Some(0), format!("{ID}\n")));
    let expected = format!("Waiting for a worker: none serves queue nope.\n  check it: runvoy status {ID}\n");
    assert_eq!(text(&told.stderr), expected);
    let quiet = user.run(&["run", "-q", "--queue", "nope", "-d", "x"]).await;
    assert_eq!((text(&quiet.stdout), text(&quiet.stderr)), (format!("{ID}\n"), String::new()));
}

#[tokio::test]
async fn digits_that_fit_several_executions_list_them() {
    let user = User::of(&server(1)).await;
    for words in [&["status", "aaaaaa"][..], &["logs", "aaaaaa"], &["kill", "aaaaaa"]] {
        let output = user.run(words).await;
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let lines: Vec<String> = text(&output.stderr).lines().take(4).map(str::to_owned).collect();
        let expected = [
            "error: `aaaaaa` is not unique",
            "  aaaaaa00000070008000000000000001  FAILED       x",
            "  aaaaaa00000070008000000000000002  FAILED       x",
            "  next: use more digits, or the whole id",
        ];
        assert_eq!(lines, expected, "{words:?}");
    }
    let json: Value = serde_json::from_slice(&user.run(&["status", "--json", "aaaaaa"]).await.stderr).expect("JSON");
    assert_eq!((json["code"].as_str(), json["choices"].as_array().map(Vec::len)), (Some("CONFLICT"), Some(2)));
}

#[tokio::test]
async fn a_key_of_the_user_file_that_is_not_known_is_told() {
    let user = User::of(&server(0)).await;
    std::fs::create_dir(user.home.path().join(".runvoy")).expect("made");
    std::fs::write(user.home.path().join(".runvoy/config.yaml"), "endpoint: http://x\n").expect("written");
    let told = user.run(&["whoami"]).await;
    let stderr = text(&told.stderr);
    assert!(
        told.status.success() && stderr.contains("unknown key `endpoint`") && stderr.contains("did you mean `api_endpoint`?"),
        "{stderr}"
    );
    assert_eq!(text(&user.run(&["-q", "whoami"]).await.stderr), "");
    let doctor: Value = serde_json::from_slice(&user.run(&["doctor", "--json"]).await.stdout).expect("JSON");
    assert_eq!((doctor["probes"][0]["name"].as_str(), doctor["probes"][0]["status"].as_str()), (Some("configuration"), Some("warn")));
}

#[tokio::test]
async fn help_topics_keep_their_shape_on_a_narrow_terminal() {
    let user = User::of(&server(0)).await;
    for (name, expected) in [("exit-codes", topic::EXIT_CODES), ("environment", topic::ENVIRONMENT), ("formatting", topic::FORMATTING)] {
        let mut command = user.command(&["help", name]);
        command.env("COLUMNS", "40");
        let output = finish(command).await;
        assert_eq!(text(&output.stdout).trim_end(), expected.trim_end(), "{name}");
    }
}

#[tokio::test]
async fn a_search_without_a_hit_and_a_denial_are_no_success() {
    let fake = Fake::new(|seen| match seen.path() {
        path if path.ends_with("/logs/search") => match (seen.parameter("q"), seen.parameter("from_line")) {
            (Some("late"), None) => Reply::json(200, json!({"total": 1, "hits": [], "next_line": 7})),
            (Some("late"), _) => Reply::json(200, json!({"total": 1, "hits": [{"line": 9, "message": "late"}], "next_line": null})),
            _ => Reply::json(200, json!({"total": 0, "hits": [], "next_line": null})),
        },
        path if path.contains("/access") => {
            let allowed = seen.parameter("action") == Some("read");
            Reply::json(
                200,
                json!({"allowed": allowed, "rule": "r", "why": "w", "user": "u", "role": "viewer", "action": "run", "rules": []}),
            )
        }
        _ => answer(seen, 0),
    });
    let user = User::of(&fake).await;
    for (words, code) in [
        (&["logs", "--search", "late", ID][..], 0),
        (&["logs", "--search", "none", ID], 1),
        (&["access", "explain", "me", "read"], 0),
        (&["access", "explain", "me", "run"], 1),
    ] {
        let output = user.run(words).await;
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[tokio::test]
async fn a_call_that_is_repeated_says_so_at_once_and_why() {
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let fake = Fake::new(move |seen| match tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 4 {
        0 | 1 => Reply::error(503, "SERVICE_UNAVAILABLE", "the server is stopping"),
        2 => Reply::error(503, "DATABASE_ERROR", "the server's store is damaged"),
        _ => answer(seen, 0),
    });
    let user = User::of(&fake).await;
    let told = user.run(&["whoami", "--json"]).await;
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stderr));
    let expected = "### runvoy: the server is stopping; retrying\n### runvoy: the server's store is damaged; retrying\n";
    assert_eq!(text(&told.stderr), expected, "each reason once");
    let silent = user.run(&["-qq", "whoami", "--json"]).await;
    assert_eq!((silent.status.code(), text(&silent.stderr)), (Some(0), String::new()));
}

#[tokio::test]
async fn a_server_of_another_release_is_remarked_on_once_a_day() {
    let fake = Fake::new(|seen| {
        let Reply::Answer(status, mut headers, body) = answer(seen, 0) else { return answer(seen, 0) };
        headers.push(("x-runvoy-version", "99.1.0".to_owned()));
        Reply::Answer(status, headers, body)
    });
    let user = User::of(&fake).await;
    let remarks = async |words: &[&str], ci: &str| {
        let mut command = user.command(words);
        command.env("CI", ci);
        text(&finish(command).await.stderr).matches("use the same release").count()
    };
    assert_eq!((remarks(&["whoami"], "true").await, remarks(&["-q", "whoami"], "").await), (0, 0));
    assert_eq!((remarks(&["list"], "").await, remarks(&["whoami"], "").await), (1, 0), "any command tells, and once");
    let stamps: Vec<_> = std::fs::read_dir(user.home.path().join(".runvoy/skew")).expect("kept").collect();
    let [Ok(stamp)] = stamps.as_slice() else { panic!("one server, not {stamps:?}") };
    let told: i64 = std::fs::read_to_string(stamp.path()).expect("a file").trim().parse().expect("a time");
    std::fs::write(stamp.path(), (told - 24 * 60 * 60 * 1_000).to_string()).expect("written");
    assert_eq!(remarks(&["whoami"], "").await, 1, "the next day");
}

#[tokio::test]
async fn claim_and_configure_remark_on_another_release() {
    let fake = Fake::new(|seen| {
        let reply = match seen.path() {
            "/api/v1/claim/good" => Reply::json(200, json!({"api_key": "rv_new", "user_email": "bo@example.com", "message": "claimed"})),
            _ => answer(seen, 0),
        };
        let Reply::Answer(status, mut headers, body) = reply else { panic!("neither command follows anything") };
        headers.push(("x-runvoy-version", "99.1.0".to_owned()));
        Reply::Answer(status, headers, body)
    });
    for words in [&["claim", "good"][..], &["configure", "--api-key-stdin"]] {
        let user = User::of(&fake).await;
        let output = with_stdin(user.command(&[words, &["--endpoint", user.endpoint.as_str()]].concat()), "rv_new\n").await;
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.matches("use the same release").count()), (Some(0), 1), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn a_command_that_misses_a_file_of_this_directory_is_told_where_it_runs() {
    for (code, words, told) in [
        (1, &["run", "--", "cat", "notes"][..], true),
        (1, &["run", "cat notes"], true),
        (0, &["run", "--", "cat", "notes"], false),
        (1, &["run", "--", "cat", "other"], false),
        (1, &["run", "-q", "--", "cat", "notes"], false),
    ] {
        let user = User::of(&server(code)).await;
        std::fs::write(user.home.path().join("notes"), "x").expect("written");
        let output = user.run(words).await;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert_eq!(said.contains("empty work directory, where `notes` does not exist"), told, "{words:?}: {said}");
    }
}
