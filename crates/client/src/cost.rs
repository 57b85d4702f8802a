//! What executions cost.

use runvoy_wire::CostResponse;

use crate::call::Call;
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

/// Which costs to sum up; what is absent is the server's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostQuery {
    /// What to sum up by: `user`, `image`, `queue`, `job`, `month`.
    pub by: Option<String>,
    /// From the day of this time on.
    pub since: Option<String>,
    /// At most this many items.
    pub limit: Option<u32>,
}

impl Client {
    /// What executions cost, summed up.
    pub async fn cost(&self, query: &CostQuery) -> Result<CostResponse, ClientError> {
        let target = Target::new(&["cost"]).with_some("by", query.by.as_deref()).with_some("since", query.since.as_deref());
        self.fetch(&Call::get(target.with_some("limit", query.limit))).await
    }
}
