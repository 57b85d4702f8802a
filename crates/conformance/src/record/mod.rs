//! The promises about what people manage: records change by steps of the transactional store, and are read by kind and name.

pub mod authority;
pub mod change;
pub mod event;
pub mod identity;
pub mod incident;
mod office;
pub mod worker;
