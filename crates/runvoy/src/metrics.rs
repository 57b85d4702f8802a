//! The Prometheus recorder of this process and its upkeep. A histogram keeps every sample until it is rendered or kept up, so a server that nobody scrapes
//! must do the latter itself.

use std::time::Duration;

use anyhow::Result;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::time::sleep;

/// The buckets of every histogram, in seconds.
const SECONDS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0, 3600.0];
/// How often samples are added up. A busy server takes about a hundred thousand in this time, which is two megabytes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Makes this process record metrics.
pub fn install() -> Result<PrometheusHandle> {
    PrometheusBuilder::new()
        .set_buckets(&SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| anyhow::anyhow!("cannot start the metrics: {error}"))
}

/// Adds samples up at intervals until it is dropped.
pub async fn keep_up(upkeep: impl Fn()) {
    loop {
        sleep(UPKEEP_INTERVAL).await;
        upkeep();
        ::metrics::counter!("runvoy_metrics_upkeeps_total").increment(1);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn samples_are_added_up_at_every_interval() {
        let count = Cell::new(0);
        let ended = tokio::time::timeout(UPKEEP_INTERVAL * 10 + UPKEEP_INTERVAL / 2, keep_up(|| count.set(count.get() + 1))).await;
        assert!(ended.is_err(), "it ends only with the server");
        assert_eq!(count.get(), 10);
    }
}
