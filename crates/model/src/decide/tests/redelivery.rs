//! Work whose worker was lost is delivered again as often as its redeliveries say; how its command ends counts for retries alone.

use super::world::{World, exit};
use crate::command::Outcome;
use crate::status::Status;

fn told_lost() -> Outcome {
    Outcome::Lost { message: "its worker died".into() }
}

#[derive(Debug, Clone, Copy)]
enum End {
    Lapse,
    Told,
    Stopped,
    Exit,
}

/// Ends attempts in the same way until there is no other, and counts them.
fn attempts(retries: u32, redeliveries: u32, end: End) -> (u32, bool) {
    let mut world = World::new();
    let mut fence = world.running(|spec| (spec.retries, spec.redeliveries) = (retries, redeliveries));
    let id = fence.execution;
    loop {
        match end {
            End::Lapse => world.reap(fence),
            End::Told => world.end(fence, told_lost()),
            End::Stopped => world.end(fence, Outcome::WorkerStopped),
            End::Exit => world.end(fence, exit(1)),
        };
        world.now = world.now.plus_ms(3_600_000);
        match world.get(id).status {
            Status::Pending => fence = world.begun(),
            status => {
                assert_eq!(status, Status::Failed);
                return (world.get(id).attempt, world.get(id).dead);
            }
        }
    }
}

#[test]
fn redeliveries_count_for_a_lost_worker_alone() {
    for (retries, redeliveries, end, expected) in [
        (0, 2, End::Lapse, (3, true)),
        (0, 2, End::Told, (3, true)),
        (0, 2, End::Stopped, (3, true)),
        (0, 2, End::Exit, (1, false)),
        (0, 0, End::Lapse, (1, false)),
        (1, 0, End::Lapse, (2, true)),
        (1, 2, End::Exit, (2, true)),
        (4, 2, End::Lapse, (5, true)),
    ] {
        assert_eq!(attempts(retries, redeliveries, end), expected, "{retries} {redeliveries} {end:?}");
    }
}

#[test]
fn a_kill_ends_redeliveries() {
    let mut world = World::new();
    let fence = world.running(|spec| spec.redeliveries = 2);
    world.kill(fence.execution);
    world.reap(fence);
    assert_eq!(world.get(fence.execution).status, Status::Stopped);
}
