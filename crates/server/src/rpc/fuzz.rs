//! What the fuzz targets reach of the RPC edge.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::unpack::{Packing, inflated};
use crate::room::Room;

/// A call with this header saying `gzip`, as the server unpacks it: at most `most` bytes a message, within a memory budget; `None` where it is refused.
#[doc(hidden)]
pub fn unpack_call(header: &'static str, sent: Bytes, most: usize, budget: usize) -> Option<Bytes> {
    let headers = HeaderMap::from_iter([(HeaderName::from_static(header), HeaderValue::from_static("gzip"))]);
    let load = Room::new(budget).load(Vec::new(), 0).ok()?;
    let plain = inflated(Packing::of(&headers)?, &sent, most, &load).ok()?;
    Some(plain.unwrap_or(sent))
}
