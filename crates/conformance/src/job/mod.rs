//! What a store promises about jobs.

pub mod keep;
pub mod redrive;
pub mod run;
mod yard;

pub(crate) use yard::{Yard, job_of, new_job, new_task};
