//! Decompresses a call before the RPC library sees it, so that every byte that comes out is counted against the memory budget as it comes out. A few kilobytes
//! of gzip may become megabytes.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, HeaderName, header};
use runvoy_rpc::connectrpc::ConnectError;

use super::error::RpcFault;
use crate::fault::Fault;
use crate::room::Load;

const GZIP: &str = "gzip";
/// The names under which gRPC and streams of Connect tell how messages are compressed.
const MESSAGE_ENCODINGS: [HeaderName; 2] = [HeaderName::from_static("grpc-encoding"), HeaderName::from_static("connect-content-encoding")];
/// An envelope begins with a byte of flags and four bytes of length.
const ENVELOPE_HEAD_BYTES: usize = 5;
/// The flag of a compressed message.
const COMPRESSED: u8 = 1;
const PIECE_BYTES: usize = 8 << 10;
/// What is smaller is decompressed in place. More is done on the blocking pool, so that no other call waits for it.
const IN_PLACE_BYTES: usize = 4 << 10;

/// How a call is compressed.
#[derive(Clone, Copy)]
pub(super) enum Packing {
    /// As a whole.
    Body,
    /// Its message, in its envelope.
    Message,
}

impl Packing {
    /// How the headers say that it is.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let is_gzip = |name: &HeaderName| headers.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(GZIP.as_bytes()));
        match is_gzip(&header::CONTENT_ENCODING) {
            true => Some(Self::Body),
            false => MESSAGE_ENCODINGS.iter().any(is_gzip).then_some(Self::Message),
        }
    }
}

/// The same call without compression: one message of at most `most` bytes.
pub(super) async fn unpacked(headers: &mut HeaderMap, sent: Bytes, most: usize, load: &Arc<Load>) -> Result<Bytes, RpcFault> {
    let Some(packing) = Packing::of(headers) else { return Ok(sent) };
    let (packed, load) = (sent.clone(), Arc::clone(load));
    let plain = if sent.len() <= IN_PLACE_BYTES {
        inflated(packing, &packed, most, &load)?
    } else {
        let inflating = tokio::task::spawn_blocking(move || inflated(packing, &packed, most, &load));
        inflating.await.unwrap_or_else(|_| Err(Fault::Panicked.into()))?
    };
    let Some(plain) = plain else { return Ok(sent) };
    if matches!(packing, Packing::Body) {
        headers.remove(header::CONTENT_ENCODING);
    }
    headers.remove(header::CONTENT_LENGTH);
    Ok(plain)
}

/// The plain call; `None` where it is to go on as it came. The load counts both while both are there, and then the plain one alone.
pub(super) fn inflated(packing: Packing, sent: &[u8], most: usize, load: &Load) -> Result<Option<Bytes>, RpcFault> {
    let mut plain = Vec::new();
    match packing {
        Packing::Body => inflate(sent, &mut plain, most, load, sent.len())?,
        Packing::Message => {
            // The library says what is wrong with a call that is cut off.
            let Some((flags, message, rest)) = first_message(sent) else { return Ok(None) };
            if !rest.is_empty() {
                return Err(received(ConnectError::invalid_argument("the call has more than one message")));
            }
            if flags & COMPRESSED == 0 {
                return Ok(None);
            }
            plain.resize(ENVELOPE_HEAD_BYTES, 0);
            inflate(message, &mut plain, most + ENVELOPE_HEAD_BYTES, load, sent.len())?;
            let length = u32::try_from(plain.len() - ENVELOPE_HEAD_BYTES).expect("a message has at most some megabytes");
            plain[0] = flags & !COMPRESSED;
            plain[1..ENVELOPE_HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
        }
    }
    load.set(plain.capacity()).map_err(Fault::from)?;
    Ok(Some(plain.into()))
}

/// The first message of a call with its flags, and what follows it; `None` where it is cut off.
fn first_message(sent: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, after) = sent.split_at_checked(ENVELOPE_HEAD_BYTES)?;
    let length = u32::from_be_bytes(*head[1..].first_chunk()?);
    let (message, rest) = after.split_at_checked(usize::try_from(length).ok()?)?;
    Some((head[0], message, rest))
}

/// Appends what was packed to `plain`, which becomes no longer than `most` bytes. Counted is what it may take before it takes it, with the `held` bytes beside it.
fn inflate(packed: &[u8], plain: &mut Vec<u8>, most: usize, load: &Load, held: usize) -> Result<(), RpcFault> {
    let (mut decoder, mut piece) = (MultiGzDecoder::new(packed), [0; PIECE_BYTES]);
    loop {
        let read = decoder.read(&mut piece).map_err(|error| received(ConnectError::invalid_argument(format!("gzip: {error}"))))?;
        if read == 0 {
            return Ok(());
        }
        let needed = plain.len() + read;
        if needed > most {
            let why = format!("the message is too large: at most {most} bytes once decompressed");
            return Err(received(ConnectError::resource_exhausted(why)));
        }
        if needed > plain.capacity() {
            let capacity = needed.max((2 * plain.capacity()).min(most));
            // While it grows, the old and the new place are both there.
            load.set(held + plain.capacity() + capacity).map_err(Fault::from)?;
            plain.reserve_exact(capacity - plain.len());
        }
        plain.extend_from_slice(&piece[..read]);
    }
}

const fn received(status: ConnectError) -> RpcFault {
    RpcFault::Received(status)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::HeaderValue;

    use super::*;
    use crate::room::{Full, Room};

    const MIB: usize = 1 << 20;

    fn gzip(bytes: usize) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![b' '; bytes]).expect("memory");
        encoder.finish().expect("memory")
    }

    fn envelope(flags: u8, message: &[u8]) -> Vec<u8> {
        [&[flags][..], &u32::try_from(message.len()).expect("small").to_be_bytes(), message].concat()
    }

    async fn unpack(name: HeaderName, sent: Vec<u8>, budget: usize) -> Result<Bytes, RpcFault> {
        let load = Arc::new(Room::new(budget).load(Vec::new(), 0).expect("nothing always fits"));
        let mut headers = HeaderMap::from_iter([(name, HeaderValue::from_static("gzip"))]);
        unpacked(&mut headers, sent.into(), 4 * MIB, &load).await
    }

    #[tokio::test]
    async fn compressed_calls_come_out_plain_in_every_protocol() {
        let plain = vec![b' '; MIB];
        assert_eq!(unpack(header::CONTENT_ENCODING, gzip(MIB), 64 * MIB).await.expect("gzip"), plain);
        for name in MESSAGE_ENCODINGS {
            assert_eq!(unpack(name.clone(), envelope(1, &gzip(MIB)), 64 * MIB).await.expect("gzip"), envelope(0, &plain));
            assert_eq!(unpack(name, envelope(0, b"as it is"), MIB).await.expect("plain"), envelope(0, b"as it is"));
        }
    }

    #[tokio::test]
    async fn what_does_not_compress_is_counted_and_comes_out_whole() {
        let noise: Vec<u8> = (0..MIB as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u8).collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&noise).expect("memory");
        let packed = encoder.finish().expect("memory");
        assert_eq!(unpack(header::CONTENT_ENCODING, packed, 64 * MIB).await.expect("gzip"), noise);
    }

    #[tokio::test]
    async fn security_29_decompressed_bytes_count_against_the_budget() {
        for (name, sent) in [(header::CONTENT_ENCODING, gzip(4 * MIB)), (MESSAGE_ENCODINGS[0].clone(), envelope(1, &gzip(4 * MIB)))] {
            let refused = unpack(name.clone(), sent.clone(), 2 * MIB).await;
            assert!(matches!(refused, Err(RpcFault::Edge(Fault::NoRoom(Full::Server)))), "{refused:?}");
            assert!(unpack(name, sent, 64 * MIB).await.is_ok());
        }
        let refused = unpack(header::CONTENT_ENCODING, gzip(4 * MIB + 1), 64 * MIB).await;
        assert!(matches!(refused, Err(RpcFault::Received(_))), "{refused:?}");
    }

    #[tokio::test]
    async fn security_29_a_call_is_one_message() {
        for messages in [envelope(1, &[]).repeat(100_000), [envelope(0, b"one"), envelope(1, &gzip(9))].concat()] {
            let refused = unpack(MESSAGE_ENCODINGS[0].clone(), messages, 64 * MIB).await;
            assert!(matches!(refused, Err(RpcFault::Received(_))), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn broken_gzip_is_refused_and_a_cut_envelope_is_left_to_the_library() {
        assert!(matches!(unpack(header::CONTENT_ENCODING, b"no gzip".to_vec(), MIB).await, Err(RpcFault::Received(_))));
        let cut = envelope(1, &gzip(9))[..7].to_vec();
        assert_eq!(unpack(MESSAGE_ENCODINGS[0].clone(), cut.clone(), MIB).await.expect("as it came"), cut);
    }
}
