//! Whole attempts: a worker, real processes, a real git and a real server of repositories.

mod cut_off;
mod disk;
mod exchange;
mod git;
mod runner;
mod secret;
mod server;
mod stage;
mod stop;
mod terminal;
