//! What exists and how it may change. Pure: no IO, no clock, no randomness.

pub mod chain;
pub mod command;
pub mod cost;
pub mod decide;
pub mod event;
pub mod execution;
pub mod fold;
pub mod id;
pub mod key;
pub mod lock;
pub mod log;
pub mod name;
pub mod retry;
pub mod role;
pub mod spec;
pub mod status;
pub mod step;
pub mod time;
pub mod view;
