//! What a store promises about jobs.

pub mod keep;
pub mod run;
mod yard;

pub(crate) use yard::{new_job, new_task};
