//! The alerter: one POST per message, and what the answer means.

use std::time::Duration;

use async_trait::async_trait;
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use runvoy_model::git::Reach;
use runvoy_ports::alert::{AlertError, Alerter, Notice};
use serde_json::{Value, json};

use crate::block;
use crate::webhook::{Answer, InvalidWebhook, Webhook};

/// A message has this long, from looking up the name to the end of the answer.
const WITHIN: Duration = Duration::from_secs(10);

/// Tells people through a Slack-compatible webhook.
pub struct SlackAlerter {
    webhook: Webhook,
    within: Duration,
}

impl SlackAlerter {
    /// An alerter for this address, which is a secret. `reach` says whether it may lie on this machine or in a private network.
    pub fn new(url: &str, reach: Reach) -> Result<Self, InvalidWebhook> {
        Ok(Self { webhook: Webhook::new(url, reach)?, within: WITHIN })
    }

    /// With another limit for one message.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    async fn post(&self, body: &Value) -> Result<Answer, AlertError> {
        let late = |_| Err(AlertError::new(format!("{} did not answer within {} s", self.webhook.host(), self.within.as_secs_f64())));
        tokio::time::timeout(self.within, self.webhook.post(body)).await.unwrap_or_else(late)
    }
}

#[async_trait]
impl Alerter for SlackAlerter {
    async fn tell(&self, notice: &Notice) -> Result<(), AlertError> {
        let (text, blocks) = (block::text(notice), block::blocks(notice));
        let mut answer = self.post(&json!({"text": text, "blocks": blocks})).await?;
        if answer.status == StatusCode::BAD_REQUEST {
            // Whatever it is about the blocks: a message that is never taken would hold up all that follow.
            answer = self.post(&json!({"text": text})).await?;
        }
        judge(self.webhook.host(), &answer)
    }

    fn place(&self) -> &str {
        self.webhook.host()
    }
}

fn judge(host: &str, answer: &Answer) -> Result<(), AlertError> {
    let status = answer.status;
    if status.is_success() {
        return Ok(());
    }
    let said = answer.said.map_or(String::new(), |word| format!(" ({word})"));
    let hint = match status {
        _ if status.is_redirection() => "; redirects are not followed",
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::GONE => {
            "; the webhook may have been revoked: set alerts.slack_webhook_url anew"
        }
        _ => "",
    };
    let message = format!("{host} answered {}{said}{hint}", status.as_u16());
    Err(AlertError { retry_after: retry_after(&answer.headers), ..AlertError::new(message) })
}

/// Only seconds: a date would be judged by a clock that is not ours.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}
