//! The consumer's side of the bus: puts an event that came over it, once, with the time it was received. For whoever receives from the bus; an event of
//! this installation is there already, for its publisher put it first.

use std::sync::Arc;

use runvoy_model::time::UnixMs;
use serde_json::Value;

use super::contract;
use crate::clients::Clients;
use crate::config::Config;
use crate::dynamo::Dynamo;
use crate::fault::Fault;

/// Saves events from the bus.
#[derive(Debug, Clone)]
pub struct Consumer {
    dynamo: Dynamo,
    config: Arc<Config>,
}

impl Consumer {
    /// A consumer of this installation's events.
    pub fn new(clients: &Clients, config: Arc<Config>) -> Self {
        Self { dynamo: Dynamo::new(clients, Arc::clone(&config)), config }
    }

    /// Saves the detail of one event; `false` where it was there already. A detail that is no event is refused.
    pub async fn save_event(&self, detail: &Value, received: UnixMs) -> Result<bool, Fault> {
        contract::save(&self.dynamo, &self.config, detail, received).await
    }
}
