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
