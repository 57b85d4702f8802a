//! What becomes of what a job says.

use super::*;

fn asked(change: impl FnOnce(&mut JobParams)) -> Result<RunRequest, String> {
    let mut params = JobParams { command: "make".into(), ..JobParams::default() };
    change(&mut params);
    let request = EnqueueJobRequest { queue: "default".into(), job_params: params.into(), ..EnqueueJobRequest::default() };
    run_request(request).map_err(|fault| fault.into_status("r").message.unwrap_or_default())
}

fn kept(change: impl FnOnce(&mut JobParams)) -> RpcParams {
    asked(change).expect("a job").rpc.map(|rpc| *rpc).unwrap_or_default()
}

#[test]
fn a_command_without_arguments_is_a_shell_text_unless_it_says_otherwise() {
    assert_eq!(asked(|_| {}).expect("a job").args, None);
    assert_eq!(asked(|job| job.no_shell = true).expect("a job").args, Some(vec![]));
    assert_eq!(asked(|job| job.args = vec!["all".into()]).expect("a job").args, Some(vec!["all".into()]));
}

#[test]
fn a_terminal_is_had_by_whoever_asks_for_one() {
    for (kind, terminal) in [(ProcessType::Unspecified, false), (ProcessType::Pipe, false), (ProcessType::Pty, true)] {
        let request = asked(|job| job.process_type = kind.into()).expect("a job");
        assert_eq!((request.terminal, request.rpc), (terminal, None), "{kind:?}");
    }
}

#[test]
fn what_means_nothing_is_refused_by_name() {
    for (change, field) in [
        ((|job| job.process_type = 77.into()) as fn(&mut JobParams), "job_params.process_type"),
        (|job| job.container.get_or_insert_default().enabled = true, "job_params.container.image"),
        (
            |job| {
                let container = job.container.get_or_insert_default();
                (container.enabled, container.image) = (true, "local".into());
            },
            "job_params.container.image",
        ),
        (|job| job.git_clone.get_or_insert_default().enabled = true, "job_params.repository"),
        (|job| job.git_clone.get_or_insert_default().depth = -1, "job_params.git_clone.depth"),
    ] {
        let refused = asked(change).expect_err(field);
        assert!(refused.starts_with(field), "{refused}");
    }
}

#[test]
fn a_repository_is_cloned_only_where_that_is_asked_for() {
    let named = |job: &mut JobParams| (job.repository, job.branch) = ("https://git.example.com/a.git".into(), "main".into());
    let carried = asked(named).expect("a job");
    assert_eq!((carried.git_repo, carried.labels.get("branch").map(String::as_str)), (None, Some("main")));
    let cloned = asked(|job| {
        named(job);
        job.git_clone.get_or_insert_default().enabled = true;
    });
    let cloned = cloned.expect("a job");
    assert_eq!((cloned.git_ref.as_deref(), cloned.labels.len()), (Some("main"), 0));
}

#[test]
fn what_one_reference_would_not_tell_is_kept() {
    let cloned = |commit: &str, branch: &str| {
        let rpc = kept(|job| {
            (job.repository, job.commit, job.branch) = ("https://git.example.com/a.git".into(), commit.into(), branch.into());
            let clone = job.git_clone.get_or_insert_default();
            (clone.enabled, clone.depth, clone.single_branch) = (true, 1, true);
        });
        assert_eq!(rpc.git_clone, None, "that is how our own workers clone");
        (rpc.commit, rpc.branch)
    };
    let whole = "0123456789abcdef0123456789abcdef01234567";
    assert_eq!((cloned("", "main"), cloned(whole, ""), cloned("", "")), ((None, None), (None, None), (None, None)));
    let both = |commit: &str, branch: &str| (Some(commit.to_owned()), Some(branch.to_owned()));
    assert_eq!(cloned("v1.2", ""), both("v1.2", ""));
    assert_eq!(cloned("0123abc", "main"), both("0123abc", "main"));
    assert_eq!(cloned(whole, "main"), both(whole, "main"));
}

#[test]
fn metadata_are_labels_where_they_can_be_and_are_kept_where_not() {
    let message = "Fix it\n\nAt last.\n";
    let request = asked(|job| {
        (job.owner, job.repository) = ("ana@x".into(), format!("https://git.example.com/{}", "x".repeat(256)));
        for (key, value) in [("owner", "ben@x"), ("team", "web"), ("message", message), ("a b", "c")] {
            job.metadata.insert(key.into(), value.into());
        }
    });
    let request = request.expect("a job");
    let labels = |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Labels>();
    assert_eq!(request.labels, labels(&[("owner", "ana@x"), ("team", "web")]));
    let rpc = request.rpc.expect("there is more");
    assert_eq!(rpc.metadata, labels(&[("owner", "ben@x"), ("message", message), ("a b", "c")]));
    assert_eq!(rpc.repository.map(|text| text.len()), Some(280));
    let many = asked(|job| job.metadata = (0..70).map(|n| (format!("k{n}"), String::new())).collect()).expect("a job");
    assert_eq!((many.labels.len(), many.rpc.expect("there is more").metadata.len()), (64, 6));
}

#[test]
fn a_wrong_field_is_named_as_the_client_knows_it() {
    for (ours, theirs) in [
        ("command", "job_params.command"),
        ("env.1A", "job_params.environment.1A"),
        ("labels.a b", "job_params.metadata.a b"),
        ("labels.owner", "job_params.owner"),
        ("rpc.container.mounts", "job_params.container.mounts"),
        ("queue", "queue"),
        ("Idempotency-Key", "request_id"),
    ] {
        assert_eq!(field(ours), theirs);
    }
}
