//! A lock is held: the log of its holder is named where the caller may see it.

use std::time::Duration;

use runvoy_client::{Client, ClientError};

use crate::failure::Failure;

/// How long the server may take to say whether the holder can be seen.
const ASK_LIMIT: Duration = Duration::from_secs(2);

/// The failure of a submit; where a lock is held, with how to see by what.
pub(crate) async fn explain(client: &Client, error: ClientError) -> Failure {
    let holder = match &error {
        ClientError::LockHeld { held, .. } => Some(held.execution_id.clone()),
        _ => None,
    };
    let failure = Failure::from(error);
    match holder {
        Some(id) if matches!(tokio::time::timeout(ASK_LIMIT, client.status(&id)).await, Ok(Ok(_))) => {
            failure.next(format!("follow the holder: runvoy logs -f {id}"))
        }
        _ => failure,
    }
}
