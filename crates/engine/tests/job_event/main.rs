//! What workers publish is kept as it was published, once, and read back so, whatever fails in between.

mod brittle;
mod crash;
mod derive;
mod follow;
mod keep;
mod late;
mod order;
mod scene;
#[path = "../stage/mod.rs"]
mod stage;
