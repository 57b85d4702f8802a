//! A worker that cannot extend its leases any more, where others may be given what it runs.

use std::path::PathBuf;
use std::time::Duration;

use runvoy_model::spec::Spec;

use crate::exchange::LARGE_OUTPUT;
use crate::stage::{Stage, name};

fn cut_off(command: &str, change: impl FnOnce(&mut Spec)) -> Stage {
    let mut stage = Stage::new(command);
    (stage.cut_off_at, stage.yields) = (Some("begun"), true);
    change(&mut stage.spec);
    stage
}

#[tokio::test]
async fn what_holds_a_lock_or_may_be_tried_again_is_killed_before_its_lease_lapses() {
    for change in [(|spec: &mut Spec| spec.lock = Some(name("prod"))) as fn(&mut Spec), |spec| spec.retries = 1] {
        for lost_after in [None, Some(Duration::from_secs(600))] {
            let mut stage = cut_off("echo begun; sleep 600", change);
            stage.lost_after = lost_after;
            assert!(stage.play_out().await.is_none(), "its end is for whoever finds the lease lapsed");
        }
    }
}

#[tokio::test]
async fn what_nobody_else_will_run_runs_on() {
    cut_off("echo begun; sleep 1", |_| {}).play().await.assert_exit(0);
}

#[tokio::test]
async fn a_worker_that_is_heard_keeps_what_it_runs() {
    let mut stage = cut_off("echo begun; sleep 1", |spec| spec.retries = 1);
    stage.cut_off_at = None;
    stage.play().await.assert_exit(0);
}

#[tokio::test]
async fn where_there_is_nobody_else_a_silent_store_kills_nothing() {
    let mut stage = cut_off("echo begun; sleep 1", |spec| spec.retries = 1);
    stage.yields = false;
    stage.play().await.assert_exit(0);
}

#[tokio::test]
async fn what_nobody_else_will_run_is_killed_when_it_counts_as_lost() {
    let mut stage = cut_off("echo begun; sleep 600", |_| {});
    stage.lost_after = Some(Duration::from_millis(700));
    assert!(stage.play_out().await.is_none(), "nobody is told");
}

#[tokio::test]
async fn a_worker_whose_key_is_refused_waits_for_its_leases_only() {
    for command in ["echo begun; sleep 600", "echo begun"] {
        let mut stage = cut_off(command, |_| {});
        (stage.lost_after, stage.is_denied) = (Some(Duration::from_secs(600)), true);
        assert!(stage.play_out().await.is_none(), "nobody is told");
    }
}

#[tokio::test]
async fn a_worker_whose_key_is_refused_waits_no_longer_for_what_an_attempt_needs_or_leaves() {
    let large = format!("{LARGE_OUTPUT}; echo begun");
    let fetching: fn(&mut Stage) = |stage| stage.unanswered_materials = true;
    let keeping: fn(&mut Stage) = |stage| stage.unanswered_puts = usize::MAX;
    let publishing: fn(&mut Stage) = |stage| stage.holds = Some(("begun", 1_000_000, PathBuf::new()));
    // What is in the log when the server is last heard; every log has nothing in it.
    for (command, last_heard, change) in [("true", "", fetching), (large.as_str(), "begun", keeping), ("echo begun", "", publishing)] {
        let mut stage = Stage::new(command).task("{}");
        (stage.cut_off_at, stage.yields) = (Some(last_heard), true);
        (stage.lost_after, stage.is_denied) = (Some(Duration::from_secs(600)), true);
        change(&mut stage);
        assert!(stage.play_out().await.is_none(), "{command}: nobody is told");
    }
}

#[tokio::test]
async fn time_counts_that_the_machine_slept_through() {
    let mut stage = cut_off("echo begun; sleep 600", |_| {});
    (stage.lost_after, stage.sleeps_s) = (Some(Duration::from_secs(600)), 3_600);
    assert!(stage.play_out().await.is_none(), "nobody is told");
}

#[tokio::test]
async fn an_end_that_nobody_hears_is_given_up_when_the_execution_counts_as_lost() {
    let mut stage = cut_off("echo begun", |_| {});
    stage.lost_after = Some(Duration::from_millis(700));
    assert!(stage.play_out().await.is_none(), "nobody was told");
}

#[tokio::test]
async fn the_lease_is_kept_while_the_end_is_on_its_way() {
    let mut stage = Stage::new("echo begun");
    stage.extends_before_end = 3;
    stage.play().await.assert_exit(0);
}

#[tokio::test]
async fn last_lines_that_nobody_takes_are_given_up_when_the_execution_counts_as_lost() {
    let mut stage = cut_off("echo begun", |_| {});
    stage.lost_after = Some(Duration::from_millis(700));
    stage.holds = Some(("exit code", 1_000_000, PathBuf::new()));
    assert!(stage.play_out().await.is_none(), "nobody was told");
}
