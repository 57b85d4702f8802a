//! Looks for text in the records of a log: how this store walks, with the search that all stores share.

use runvoy_ports::log::{Found, LogError};
use runvoy_ports::search::Seeker;

use super::cursor::Cursor;

/// Counts all matches and returns the first ones, until it is stopped.
pub(crate) fn search(mut cursor: Cursor, mut seeker: Seeker) -> Result<Found, LogError> {
    while let Some(chunk) = cursor.next()? {
        if seeker.look(&chunk)?.is_break() {
            break;
        }
    }
    Ok(seeker.found())
}
