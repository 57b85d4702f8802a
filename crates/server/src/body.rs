//! The body of a request as a whole: read within a size and a time, its bytes counted as they come; and what JSON takes once it is opened. A few bytes of JSON
//! may ask for a large object, many times over, so that the text alone says little.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use memchr::memchr2;
use tokio::time::timeout;

use crate::room::{Full, Load};

/// A body that takes longer than this to come in is given up.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// What a request takes beside its bytes while its body does not come: 15,200 of them took 23 KiB each.
const WAITING_BYTES: usize = 24 << 10;
/// What the text of one request may take once it is opened.
pub(crate) const MOST_OPENED_BYTES: usize = 128 << 20;
/// About what an object takes in memory, however little is in it.
const OBJECT_BYTES: usize = 640;
/// The same of any other value, and of a name.
const VALUE_BYTES: usize = 48;

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is larger than it may be.
    TooLarge,
    /// It ended before its end.
    BrokeOff,
    /// It took too long.
    Late,
    /// The memory budget has no room for it now.
    NoRoom(Full),
}

impl From<Full> for Unread {
    fn from(full: Full) -> Self {
        Self::NoRoom(full)
    }
}

/// Reads the whole of a body of at most this many bytes. What is left of one that was not read stays in it.
pub(crate) async fn read(body: &mut Body, most: usize, load: &Load) -> Result<Bytes, Unread> {
    timeout(BODY_TIMEOUT, collect(body, most, load)).await.unwrap_or(Err(Unread::Late))
}

async fn collect(body: &mut Body, most: usize, load: &Load) -> Result<Bytes, Unread> {
    // Copied together, for a body may come in pieces of one byte each.
    let (mut whole, mut has_waited) = (Vec::new(), false);
    loop {
        let frame = match body.frame().now_or_never() {
            Some(frame) => frame,
            None => {
                has_waited = true;
                load.set(WAITING_BYTES + whole.capacity())?;
                body.frame().await
            }
        };
        let Some(frame) = frame else { break };
        let Ok(piece) = frame.map_err(|_| Unread::BrokeOff)?.into_data() else { continue };
        let needed = whole.len() + piece.len();
        if needed > most {
            return Err(Unread::TooLarge);
        }
        if needed > whole.capacity() {
            // What is reserved counts, filled or not.
            let mut capacity = needed.max((2 * whole.capacity()).min(most));
            if load.set(capacity).is_err() {
                capacity = needed;
                load.set(capacity)?;
            }
            whole.reserve_exact(capacity - whole.len());
        }
        whole.extend_from_slice(&piece);
    }
    if has_waited {
        load.set(whole.capacity())?;
    }
    Ok(whole.into())
}

/// About what JSON takes once it is opened. What is no JSON is opened by nobody.
pub(crate) fn opened_bytes(json: &[u8]) -> usize {
    let (mut bytes, mut rest) = (json.len(), json);
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = after_string(rest),
            b'{' => bytes += OBJECT_BYTES,
            b'[' | b',' | b':' => bytes += VALUE_BYTES,
            _ => {}
        }
    }
    bytes
}

fn after_string(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(at) = memchr2(b'"', b'\\', rest) {
        // What is escaped is one byte more.
        let skipped = if rest[at] == b'"' { 1 } else { 2 };
        let after = rest.get(at + skipped..).unwrap_or_default();
        if skipped == 1 {
            return after;
        }
        rest = after;
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::{Room, SMALL_BYTES};

    #[test]
    fn objects_and_values_weigh_more_than_their_text_and_strings_do_not() {
        let more = |json: &str| opened_bytes(json.as_bytes()) - json.len();
        assert_eq!(more(r#"{"a": 1, "b": [true]}"#), OBJECT_BYTES + 4 * VALUE_BYTES);
        assert_eq!(more(r#"[{},{}]"#), 2 * OBJECT_BYTES + 2 * VALUE_BYTES);
        for text in [r#""{[,:""#, r#""\"{{{""#, r#""\\""#, r#""{ never closed"#, r#""ends with \"#, ""] {
            assert_eq!(more(text), 0, "{text}");
        }
        assert_eq!(more(r#""\\"{}"#), OBJECT_BYTES, "the quote after an escaped backslash closes");
    }

    #[tokio::test(start_paused = true)]
    async fn security_29_a_request_whose_body_does_not_come_counts() {
        let room = Room::new(4 * WAITING_BYTES);
        let loads = [(); 5].map(|()| room.load(Vec::new(), 0).expect("nothing always fits"));
        for (number, load) in loads.iter().enumerate() {
            let mut body = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
            let reading = timeout(Duration::from_secs(1), read(&mut body, 7, load)).await;
            assert_eq!(reading.ok(), (number == 4).then_some(Err(Unread::NoRoom(Full::Server))), "{number}");
        }
    }

    #[tokio::test]
    async fn a_body_is_read_whole_or_not_at_all() {
        let room = Room::new(4 * SMALL_BYTES);
        let load = || room.load(Vec::new(), 0).expect("nothing always fits");
        let of = |bytes: usize| Body::from(vec![b'x'; bytes]);
        let first = load();
        assert_eq!(read(&mut of(7), 7, &first).await.map(|body| body.len()), Ok(7));
        assert_eq!(read(&mut of(8), 7, &first).await, Err(Unread::TooLarge));
        assert_eq!(read(&mut of(2 * SMALL_BYTES), usize::MAX, &first).await.map(|body| body.len()), Ok(2 * SMALL_BYTES));
        assert_eq!(read(&mut of(2 * SMALL_BYTES), usize::MAX, &load()).await, Err(Unread::NoRoom(Full::Server)));
        drop(first);
        assert!(read(&mut of(2 * SMALL_BYTES), usize::MAX, &load()).await.is_ok());
    }
}
