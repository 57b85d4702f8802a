//! Looks for text in the records of a log: how this store walks, with the search that all stores share.

use runvoy_ports::log::{Found, LogError};
use runvoy_ports::search::Seeker;

use super::cursor::Cursor;

/// Counts all matches and returns the first ones, until it is stopped.
pub(super) async fn search(mut cursor: Cursor<'_>, mut seeker: Seeker) -> Result<Found, LogError> {
    while let Some(piece) = cursor.next().await? {
        // What was fetched is looked through without a wait between: others on this thread get their turn.
        tokio::task::consume_budget().await;
        if seeker.look(&piece.chunk)?.is_break() {
            break;
        }
    }
    Ok(seeker.found())
}
