//! What executions cost, summed up.

use serde::{Deserialize, Serialize};

use crate::time::Rfc3339;

/// The cost of the executions that ended in a period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CostResponse {
    /// What each item is: a user, image, queue, job or month.
    pub by: String,
    /// When the period begins: at midnight UTC. It ends now.
    pub since: Rfc3339,
    /// How many executions ended in the period.
    pub executions: u64,
    /// What all of them cost, in dollars.
    pub cost_usd: f64,
    /// The most expensive first; months: the latest first. Executions without a job are in no item
    /// of `by=job`.
    #[serde(default)]
    pub items: Vec<CostItem>,
    /// How many items there are beyond `limit`.
    #[serde(default)]
    pub more: u64,
    /// Whether every execution that has ended is counted. The rest follows within minutes.
    pub complete: bool,
    /// Whether the server has rates. Without rates every execution costs nothing.
    pub has_rates: bool,
}

/// One user, image, queue, job or month.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CostItem {
    /// The user, image, queue, job or month.
    pub name: String,
    /// How many of its executions ended in the period.
    pub executions: u64,
    /// What they cost, in dollars.
    pub cost_usd: f64,
}
