//! A reader that has enough and leaves, as `head -1` does.

use crate::fake::{Fake, Log};
use crate::user::{ID, User, answer, end, endless, until_it_speaks};
use runvoy_wire::Stream;

#[tokio::test]
async fn a_reader_that_has_enough_is_success_and_silence() {
    let lines = (0..50_000).map(|n| (Stream::Stdout, format!("line {n}").into_bytes(), true)).collect();
    let big = Log { id: ID.to_owned(), lines };
    let fake = Fake::new(move |seen| if seen.parameter("format").is_some() { big.ndjson(seen) } else { answer(seen, 0) });
    let (child, stdout) = until_it_speaks(User::of(&fake).await.command(&["logs", "--json", ID])).await;
    drop(stdout);
    assert_eq!(end(child).await, (Some(0), String::new()));
}

/// The server says nothing more, so that no write ever finds the pipe broken.
#[tokio::test]
async fn a_reader_that_leaves_is_not_waited_for_until_the_next_line() {
    let fake = Fake::new(endless);
    let user = User::of(&fake).await;
    for words in [&["run", "x"][..], &["run", "--json", "x"], &["logs", "-f", ID], &["logs", "-f", "--json", ID]] {
        let (child, stdout) = until_it_speaks(user.command(words)).await;
        drop(stdout);
        let (code, stderr) = end(child).await;
        assert_eq!(code, Some(0), "{words:?}: {stderr}");
        for word in ["detached", "succeeded", "error", "killing"] {
            assert!(!stderr.contains(word), "{words:?}: {stderr}");
        }
        let goes_on = format!("The execution keeps running. Follow it: runvoy logs -f {ID}");
        assert_eq!(stderr.contains(&goes_on), words[0] == "run", "{words:?}: {stderr}");
    }
    assert!(fake.seen().iter().all(|seen| seen.method != "DELETE"), "the execution goes on");
}

#[tokio::test]
async fn a_file_has_no_reader_that_could_leave() {
    let user = User::of(&crate::user::server(3)).await;
    let path = user.home.path().join("out");
    let mut command = user.command(&["run", "-qq", "x"]);
    command.stdout(std::fs::File::create(&path).expect("made")).stderr(std::process::Stdio::null());
    let code = tokio::task::spawn_blocking(move || command.status().expect("the example is built").code()).await.expect("it ends");
    assert_eq!((code, std::fs::read(&path).expect("there")), (Some(3), b"hello \xff\x1b]0;title\x07\nno newline".to_vec()));
}

/// Nothing can be written there: the disk is full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_names_the_execution() {
    let user = User::of(&Fake::new(endless)).await;
    for words in [&["run", "x"][..], &["run", "--json", "x"], &["run", "-d", "x"], &["run", "-d", "--json", "x"]] {
        let mut command = user.command(words);
        command.stdout(std::fs::File::create("/dev/full").expect("a device"));
        let output = tokio::task::spawn_blocking(move || command.stderr(std::process::Stdio::piped()).spawn()?.wait_with_output());
        let output = output.await.expect("it ends").expect("the example is built");
        let stderr = crate::user::text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{stderr}");
        assert!(stderr.contains("cannot write the output") && stderr.contains(&format!("runvoy logs -f {ID}")), "{words:?}: {stderr}");
    }
}

#[tokio::test]
async fn json_begins_with_the_id() {
    let user = User::of(&crate::user::server(0)).await;
    for (words, first) in [
        (&["run", "--json", "x"][..], format!(r#"{{"execution_id":"{ID}","status":"PENDING","log_url":""}}"#)),
        (&["run", "--jq", ".execution_id // empty", "x"], ID.to_owned()),
        (&["run", "--jq", ".line", "x"], "1".to_owned()),
    ] {
        let output = user.run(words).await;
        assert_eq!(crate::user::text(&output.stdout).lines().next(), Some(first.as_str()), "{words:?}");
    }
}
