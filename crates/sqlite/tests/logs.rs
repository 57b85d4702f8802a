//! What the log files promise, each promise one test. `RUNVOY_PROVE=1` runs them at full counts.

#[path = "logs/beginning.rs"]
mod beginning;
#[path = "logs/crash.rs"]
mod crash;
#[path = "logs/damage.rs"]
mod damage;
#[path = "logs/disk.rs"]
mod disk;
#[path = "logs/follow.rs"]
mod follow;
#[path = "logs/golden.rs"]
mod golden;
#[path = "logs/kit.rs"]
mod kit;
#[path = "logs/model.rs"]
mod model;
#[path = "logs/packing.rs"]
mod packing;
#[path = "logs/power.rs"]
mod power;
#[path = "logs/promise.rs"]
mod promise;
#[path = "logs/retention.rs"]
mod retention;
