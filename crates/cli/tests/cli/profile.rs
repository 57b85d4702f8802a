//! Profiles: two servers, two keys, and neither ever hears of the other.

use serde_json::Value;

use crate::fake::Fake;
use crate::user::{ID, User, answer, finish, text, with_stdin};

/// A user with nothing in the environment, and two servers in profiles `one` and `two`.
async fn two_servers() -> (User, Fake, Fake) {
    let (one, two) = (Fake::new(|seen| answer(seen, 0)), Fake::new(|seen| answer(seen, 0)));
    let user = User::of(&one).await;
    for (name, fake) in [("one", &one), ("two", &two)] {
        let endpoint = format!("http://{}", fake.tcp().await);
        let command = bare(&user, &["configure", "--profile", name, "--endpoint", &endpoint, "--api-key-stdin"]);
        let configured = with_stdin(command, &format!("rv_key_of_{name}\n")).await;
        assert!(configured.status.success(), "{}", text(&configured.stderr));
    }
    (user, one, two)
}

fn bare(user: &User, words: &[&str]) -> std::process::Command {
    let mut command = user.command(words);
    command.env_remove("RUNVOY_API_KEY").env_remove("RUNVOY_API_ENDPOINT");
    command
}

fn keys(fake: &Fake) -> Vec<String> {
    let mut keys: Vec<String> = fake.seen().iter().filter_map(|seen| seen.header("x-api-key").map(str::to_owned)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

#[tokio::test]
async fn two_servers_never_hear_of_each_other() {
    let (user, one, two) = two_servers().await;
    let before = (one.seen().len(), two.seen().len());
    assert!(finish(bare(&user, &["--profile", "one", "status", ID])).await.status.success());
    assert_eq!((one.seen().len() - before.0, two.seen().len() - before.1), (1, 0));
    let mut command = bare(&user, &["status", ID]);
    command.env("RUNVOY_PROFILE", "two");
    assert!(finish(command).await.status.success());
    assert_eq!((one.seen().len() - before.0, two.seen().len() - before.1), (1, 1));
    // The key of one server is withheld where a flag points to the other.
    let endpoint_of_two = two.seen().last().and_then(|seen| seen.header("host").map(|host| format!("http://{host}"))).expect("asked");
    let crossed = finish(bare(&user, &["--profile", "one", "--endpoint", &endpoint_of_two, "status", ID])).await;
    assert_eq!(crossed.status.code(), Some(4), "{}", text(&crossed.stderr));
    assert_eq!((keys(&one), keys(&two)), (vec!["rv_key_of_one".to_owned()], vec!["rv_key_of_two".to_owned()]));
    // Completion asks the server of the line.
    let mut command = bare(&user, &["--", "runvoy", "--profile", "two", "status", "01"]);
    command.env("COMPLETE", "fish");
    let asked = (one.seen().len(), two.seen().len());
    assert!(text(&finish(command).await.stdout).starts_with(ID));
    assert_eq!((one.seen().len(), two.seen().len()), (asked.0, asked.1 + 1));
    let mut command = bare(&user, &["--", "runvoy", "profile", "use", "o"]);
    command.env("COMPLETE", "fish");
    assert!(text(&finish(command).await.stdout).starts_with("one"), "names of profiles are in the user file");
}

#[tokio::test]
async fn a_profile_is_chosen_by_use_then_project_then_variable_then_flag() {
    let (user, _one, _two) = two_servers().await;
    std::fs::create_dir_all(user.home.path().join("work/.runvoy")).expect("made");
    std::fs::write(user.home.path().join("work/.runvoy/project.yaml"), "profile: two\n").expect("written");
    let profile = async |words: &[&str], below: &str, variable: Option<&str>| -> String {
        let mut command = bare(&user, &[words, &["config", "show", "--json"]].concat());
        command.current_dir(user.home.path().join(below)).envs(variable.map(|name| ("RUNVOY_PROFILE", name)));
        let shown: Value = serde_json::from_slice(&finish(command).await.stdout).expect("JSON");
        shown["profile"]["value"].as_str().unwrap_or("none").to_owned()
    };
    assert_eq!(profile(&[], "", None).await, "none");
    let used = finish(bare(&user, &["profile", "use", "one"])).await;
    assert!(used.status.success() && text(&used.stderr).contains("profile one"), "{}", text(&used.stderr));
    assert_eq!(profile(&[], "", None).await, "one");
    assert_eq!(profile(&[], "work", None).await, "two");
    assert_eq!(profile(&[], "work", Some("one")).await, "one");
    assert_eq!(profile(&["--profile", "two"], "work", Some("one")).await, "two");
    let unknown = finish(bare(&user, &["profile", "use", "three"])).await;
    assert!(unknown.status.code() == Some(2) && text(&unknown.stderr).contains("the profiles are: one, two"), "{}", text(&unknown.stderr));
    assert!(finish(bare(&user, &["profile", "use", "--none"])).await.status.success());
    assert_eq!(profile(&[], "", None).await, "none");
}

#[tokio::test]
async fn profiles_are_listed_and_shown_without_their_keys() {
    let (user, ..) = two_servers().await;
    finish(bare(&user, &["profile", "use", "two"])).await;
    for words in [&["profile", "list"][..], &["profile", "list", "--json"], &["profile", "show"], &["profile", "show", "one", "-o", "yaml"]]
    {
        let shown = finish(bare(&user, words)).await;
        assert!(shown.status.success() && !text(&shown.stdout).contains("key_of"), "{words:?}: {}", text(&shown.stdout));
    }
    let listed: Value = serde_json::from_slice(&finish(bare(&user, &["profile", "list", "--json"])).await.stdout).expect("JSON");
    assert_eq!((listed[0]["name"].as_str(), listed[0]["in_use"].as_bool()), (Some("one"), Some(false)));
    assert_eq!((listed[1]["name"].as_str(), listed[1]["in_use"].as_bool()), (Some("two"), Some(true)));
    assert_eq!(text(&finish(bare(&user, &["profile", "list", "-o", "name"])).await.stdout), "one\ntwo\n");
}

#[tokio::test]
async fn a_data_directory_is_a_server_of_its_own() {
    let fake = crate::user::server(0);
    let user = User::of(&fake).await;
    let local = crate::user::server(0);
    let data = user.home.path().join("data");
    std::fs::create_dir(&data).expect("made");
    local.unix(&data.join("sock"));
    std::fs::create_dir(user.home.path().join(".runvoy")).expect("made");
    std::fs::write(user.home.path().join(".runvoy/config.yaml"), format!("api_endpoint: {}\n", user.endpoint)).expect("written");
    let mut command = user.command(&["list", "--data-dir", data.to_str().expect("UTF-8")]);
    command.env_remove("RUNVOY_API_ENDPOINT").env_remove("RUNVOY_API_KEY");
    let listed = finish(command).await;
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    assert_eq!((local.seen().len(), fake.seen().len()), (1, 0));
    let both = user.run(&["list", "--data-dir", "x", "--endpoint", &user.endpoint]).await;
    assert!(both.status.code() == Some(2) && text(&both.stderr).contains("different servers"), "{}", text(&both.stderr));
}

#[tokio::test]
async fn configure_tells_a_program_where_it_saved() {
    let user = User::of(&crate::user::server(0)).await;
    let words = ["configure", "--json", "--profile", "prod", "--endpoint", &user.endpoint, "--api-key-stdin"];
    let saved: Value = serde_json::from_slice(&with_stdin(bare(&user, &words), "rv_hunter2\n").await.stdout).expect("JSON");
    let path = user.home.path().join(".runvoy/config.yaml");
    assert_eq!((saved["profile"].as_str(), saved["path"].as_str()), (Some("prod"), path.to_str()));
}

#[tokio::test]
async fn a_filter_goes_with_json_and_with_no_other_format() {
    let user = User::of(&crate::user::server(0)).await;
    for words in [&["whoami", "--jq", ".role"][..], &["whoami", "-o", "json", "--jq", ".role"], &["whoami", "--json", "--jq", ".role"]] {
        assert_eq!(text(&user.run(words).await.stdout), "admin\n", "{words:?}");
    }
    for format in ["name", "yaml", "table"] {
        let refused = user.run(&["whoami", "-o", format, "--jq", ".role"]).await;
        assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains("--jq"), "{}", text(&refused.stderr));
    }
}
