//! Decompresses a call before the RPC library sees it, so that every byte that comes out is counted against the memory budget as it comes out. A few kilobytes
//! of gzip may become megabytes.

use std::io::Read as _;

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
const PIECE_BYTES: usize = 64 << 10;

/// The same call without compression: at most `most` bytes a message.
pub(super) fn unpacked(headers: &mut HeaderMap, sent: Bytes, most: usize, load: &Load) -> Result<Bytes, RpcFault> {
    let is_gzip = |name: &HeaderName| headers.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(GZIP.as_bytes()));
    let mut budget = Budget { load, most, held: sent.len() };
    let plain = if is_gzip(&header::CONTENT_ENCODING) {
        headers.remove(header::CONTENT_ENCODING);
        budget.inflate(&sent)?
    } else if MESSAGE_ENCODINGS.iter().any(is_gzip) {
        match envelopes(&sent) {
            Some(messages) if messages.iter().any(|(flags, _)| flags & COMPRESSED != 0) => budget.inflate_each(&messages)?,
            // The library says what is wrong with it.
            _ => return Ok(sent),
        }
    } else {
        return Ok(sent);
    };
    headers.remove(header::CONTENT_LENGTH);
    drop(sent);
    load.set(plain.len()).map_err(Fault::from)?;
    Ok(plain.into())
}

/// The messages of a call with their flags; `None` where it is cut off.
fn envelopes(mut rest: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut messages = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_at_checked(ENVELOPE_HEAD_BYTES)?;
        let length = u32::from_be_bytes(*head[1..].first_chunk()?);
        let (message, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
        messages.push((head[0], message));
        rest = after;
    }
    Some(messages)
}

struct Budget<'l> {
    load: &'l Load,
    most: usize,
    held: usize,
}

impl Budget<'_> {
    fn inflate_each(&mut self, messages: &[(u8, &[u8])]) -> Result<Vec<u8>, RpcFault> {
        let (sent, mut plain) = (self.held, Vec::new());
        for (flags, message) in messages {
            let message = if flags & COMPRESSED == 0 { message.to_vec() } else { self.inflate(message)? };
            let length = u32::try_from(message.len()).expect("a message has at most some megabytes");
            self.load.set(self.held + 2 * (ENVELOPE_HEAD_BYTES + message.len())).map_err(Fault::from)?;
            self.held = sent + plain.len() + ENVELOPE_HEAD_BYTES + message.len();
            plain.push(flags & !COMPRESSED);
            plain.extend_from_slice(&length.to_be_bytes());
            plain.extend_from_slice(&message);
        }
        Ok(plain)
    }

    fn inflate(&mut self, packed: &[u8]) -> Result<Vec<u8>, RpcFault> {
        let (mut decoder, mut piece, mut plain) = (MultiGzDecoder::new(packed), vec![0; PIECE_BYTES], Vec::new());
        loop {
            let read = decoder.read(&mut piece).map_err(|error| received(ConnectError::invalid_argument(format!("gzip: {error}"))))?;
            if read == 0 {
                return Ok(plain);
            }
            let needed = plain.len() + read;
            if needed > self.most {
                let why = format!("the message is too large: at most {} bytes once decompressed", self.most);
                return Err(received(ConnectError::resource_exhausted(why)));
            }
            if needed > plain.capacity() {
                let capacity = needed.max((2 * plain.capacity()).min(self.most));
                self.load.set(self.held + PIECE_BYTES + capacity).map_err(Fault::from)?;
                plain.reserve_exact(capacity - plain.len());
            }
            plain.extend_from_slice(&piece[..read]);
        }
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

    fn unpack(name: HeaderName, sent: Vec<u8>, budget: usize) -> Result<Bytes, RpcFault> {
        let load = Room::new(budget).load(Vec::new(), 0).expect("nothing always fits");
        let mut headers = HeaderMap::from_iter([(name, HeaderValue::from_static("gzip"))]);
        unpacked(&mut headers, sent.into(), 4 * MIB, &load)
    }

    #[test]
    fn compressed_calls_come_out_plain_in_every_protocol() {
        let plain = vec![b' '; MIB];
        assert_eq!(unpack(header::CONTENT_ENCODING, gzip(MIB), 64 * MIB).expect("gzip"), plain);
        for name in MESSAGE_ENCODINGS {
            let sent = [envelope(1, &gzip(MIB)), envelope(0, b"as it is")].concat();
            let expected = [envelope(0, &plain), envelope(0, b"as it is")].concat();
            assert_eq!(unpack(name, sent, 64 * MIB).expect("gzip"), expected);
        }
    }

    #[test]
    fn security_29_decompressed_bytes_count_against_the_budget() {
        for (name, sent) in [(header::CONTENT_ENCODING, gzip(4 * MIB)), (MESSAGE_ENCODINGS[0].clone(), envelope(1, &gzip(4 * MIB)))] {
            let refused = unpack(name.clone(), sent.clone(), 2 * MIB);
            assert!(matches!(refused, Err(RpcFault::Edge(Fault::NoRoom(Full::Server)))), "{refused:?}");
            assert!(unpack(name, sent, 64 * MIB).is_ok());
        }
        let refused = unpack(header::CONTENT_ENCODING, gzip(4 * MIB + 1), 64 * MIB);
        assert!(matches!(refused, Err(RpcFault::Received(_))), "{refused:?}");
    }

    #[test]
    fn broken_gzip_is_refused_and_a_cut_envelope_is_left_to_the_library() {
        assert!(matches!(unpack(header::CONTENT_ENCODING, b"no gzip".to_vec(), MIB), Err(RpcFault::Received(_))));
        let cut = envelope(1, &gzip(9))[..7].to_vec();
        assert_eq!(unpack(MESSAGE_ENCODINGS[0].clone(), cut.clone(), MIB).expect("as it came"), cut);
    }
}
