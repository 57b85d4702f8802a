//! Calls about signed links: making one, and reading a log with its token alone.

use http::{HeaderValue, Method};
use runvoy_wire::{LinkResponse, LinkedLog, Rfc3339};

use crate::call::{Call, fresh_id};
use crate::client::{Client, secret_header};
use crate::error::ClientError;
use crate::query::Target;

impl Client {
    /// Makes a link that opens the log of one execution without a key.
    pub async fn link(&self, id: &str) -> Result<LinkResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["executions", id, "link"])).keyed(fresh_id())).await
    }

    /// The log of one execution as a link's token opens it, after `since`. The client's own key is not sent.
    pub async fn linked_log(&self, id: &str, token: &str, since: Option<Rfc3339>) -> Result<LinkedLog, ClientError> {
        let bearer: HeaderValue = secret_header("link token", &format!("Bearer {}", token.trim()))?;
        self.fetch(&Call::get(Target::new(&["logs", id]).with_some("since", since)).bearer(bearer)).await
    }
}
