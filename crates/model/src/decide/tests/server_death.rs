//! Attempts that end together with their server: retried a few times, never without end.

use super::world::{World, exit, reap_of};
use crate::command::{Command, Fence, Reap};
use crate::retry::MAX_SERVER_DEATHS;
use crate::status::{EndCode, Status};

fn die(world: &mut World, fence: Fence) {
    let extensions = world.get(fence.execution).lease.as_ref().expect("it runs").extensions;
    world.play(Command::Reap(Reap { with_server: true, ..reap_of(fence, extensions) }));
    world.now = world.now.plus_ms(3_600_000);
}

#[test]
fn deaths_of_the_server_end_retries() {
    let mut world = World::new();
    let mut fence = world.running(|spec| spec.retries = 100);
    for _ in 1..MAX_SERVER_DEATHS {
        die(&mut world, fence);
        assert_eq!(world.get(fence.execution).status, Status::Pending);
        fence = world.begun();
    }
    die(&mut world, fence);
    let ended = world.get(fence.execution);
    let reason = ended.end_reason.as_ref().expect("it ended");
    assert_eq!((ended.status, reason.code, ended.dead), (Status::Failed, EndCode::WorkerLost, true));
    assert!(reason.message.contains("3 attempts in a row ended with the server"), "{}", reason.message);
}

#[test]
fn another_end_between_them_starts_the_count_anew() {
    let mut world = World::new();
    let mut fence = world.running(|spec| spec.retries = 100);
    for round in 0..MAX_SERVER_DEATHS * 2 {
        if round % 2 == 0 {
            die(&mut world, fence);
        } else {
            world.end(fence, exit(1));
            world.now = world.now.plus_ms(3_600_000);
        }
        assert_eq!(world.get(fence.execution).status, Status::Pending, "{round}");
        fence = world.begun();
    }
}
