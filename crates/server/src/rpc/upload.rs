//! What a client that sends message after message holds: those that came and were not opened yet, and the one that is looked at. Each comes in an envelope: a byte
//! of flags, four of its length, and itself.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt as _;
use parking_lot::Mutex;

use super::event::MOST_MESSAGE_BYTES;
use crate::room::{Full, Load};

const HEAD_BYTES: usize = 5;
/// The flag of a message that is packed.
const PACKED: u8 = 1;
/// No byte of gzip becomes more.
const MOST_UNPACKED: usize = 1_032;

/// One upload.
pub(super) struct Upload {
    mail: Mutex<Mail>,
}

#[derive(Default)]
struct Mail {
    /// What the upload holds of the room; nothing once it has ended.
    load: Option<Arc<Load>>,
    head: Vec<u8>,
    /// So much of the message that comes is not there yet.
    missing: usize,
    /// So much of it is.
    come: usize,
    /// What messages take that came and were not opened.
    waiting: VecDeque<usize>,
    /// What everything takes that came and was not opened.
    unopened: usize,
    /// What is looked at.
    open: usize,
    is_refused: bool,
}

impl Upload {
    /// An upload that holds nothing yet.
    pub(super) fn new(load: Arc<Load>) -> Arc<Self> {
        Arc::new(Self { mail: Mutex::new(Mail { load: Some(load), ..Mail::default() }) })
    }

    /// The same body, whose bytes are counted as they come. It breaks off where there is no room.
    pub(super) fn count(self: Arc<Self>, body: Body) -> Body {
        let counted = body.into_data_stream().map(move |piece| -> Result<Bytes, BoxError> {
            let piece = piece?;
            self.change(|mail| mail.take(&piece))?;
            Ok(piece)
        });
        Body::from_stream(counted)
    }

    /// A message is opened and takes so many bytes.
    pub(super) fn open(&self, bytes: usize) -> Result<(), Full> {
        self.change(|mail| {
            mail.unopened -= mail.waiting.pop_front().unwrap_or(0);
            mail.open = bytes;
        })
    }

    /// Nobody looks at the message any more.
    pub(super) fn close(&self) {
        self.change(|mail| mail.open = 0).expect("less always fits");
    }

    /// It was answered: what still comes is thrown away, and takes no room. Who still writes what came keeps the load for itself.
    pub(super) fn end(&self) {
        self.mail.lock().load = None;
    }

    /// Whether the body broke off because there was no room.
    pub(super) fn is_refused(&self) -> bool {
        self.mail.lock().is_refused
    }

    fn change(&self, change: impl FnOnce(&mut Mail)) -> Result<(), Full> {
        let mut mail = self.mail.lock();
        let Some(load) = mail.load.clone() else { return Ok(()) };
        let before = mail.unopened + mail.open;
        change(&mut mail);
        let after = mail.unopened + mail.open;
        let held = load.set(after);
        mail.is_refused |= held.is_err();
        if after > before { held } else { Ok(()) }
    }
}

impl Mail {
    /// A piece of the body came.
    fn take(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.head.len() < HEAD_BYTES {
                let (head, rest) = piece.split_at((HEAD_BYTES - self.head.len()).min(piece.len()));
                self.head.extend_from_slice(head);
                piece = rest;
                let Some(length) = self.head.get(1..).and_then(|length| length.first_chunk::<4>()) else { continue };
                self.missing = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
            } else {
                let (more, rest) = piece.split_at(self.missing.min(piece.len()));
                let before = self.taken();
                self.missing -= more.len();
                self.come += more.len();
                self.unopened += self.taken() - before;
                piece = rest;
            }
            if self.missing == 0 {
                self.waiting.push_back(self.taken());
                self.come = 0;
                self.head.clear();
            }
        }
    }

    /// What the message takes that comes: a packed one is unpacked before anybody can weigh it, and may become so much.
    fn taken(&self) -> usize {
        let is_packed = self.head.first().is_some_and(|flags| flags & PACKED != 0);
        let unpacked = if is_packed { self.come.saturating_mul(MOST_UNPACKED).min(MOST_MESSAGE_BYTES) } else { 0 };
        self.come.max(unpacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::Room;

    const LARGE: usize = 1 << 20;

    fn load(room: &Arc<Room>) -> Load {
        room.load(Vec::new(), 0).expect("nothing always fits")
    }

    fn message(bytes: usize) -> Vec<u8> {
        let mut message = vec![0];
        message.extend_from_slice(&u32::try_from(bytes).expect("small").to_be_bytes());
        message.resize(HEAD_BYTES + bytes, b'x');
        message
    }

    #[test]
    fn messages_are_told_apart_however_they_are_cut() {
        let sent = [message(3), message(0), message(300)].concat();
        for size in [1, 2, 7, 1_000] {
            let mut mail = Mail::default();
            sent.chunks(size).for_each(|piece| mail.take(piece));
            assert_eq!((Vec::from(mail.waiting), mail.unopened), (vec![3, 0, 300], 303), "{size}");
        }
    }

    #[test]
    fn a_packed_message_takes_what_it_may_become() {
        let mut packed = message(10_000);
        packed[0] = PACKED;
        let mut mail = Mail::default();
        [packed.clone(), message(3)].concat().chunks(7).for_each(|piece| mail.take(piece));
        assert_eq!((Vec::from(mail.waiting), mail.unopened), (vec![10_000 * MOST_UNPACKED, 3], 10_000 * MOST_UNPACKED + 3));
        let mut large = message(2 * LARGE);
        large[0] = PACKED;
        let mut mail = Mail::default();
        mail.take(&large);
        assert_eq!(mail.unopened, MOST_MESSAGE_BYTES, "no message may be larger");

        let upload = Upload::new(Arc::new(load(&Room::new(4 * LARGE))));
        assert_eq!(upload.change(|mail| mail.take(&packed)), Err(Full::Server));
        assert!(upload.is_refused());
    }

    #[test]
    fn an_upload_that_was_answered_takes_no_room_but_for_what_is_still_written() {
        let room = Room::new(4 * LARGE);
        let held = Arc::new(load(&room));
        let upload = Upload::new(Arc::clone(&held));
        upload.change(|mail| mail.take(&message(2 * LARGE))).expect("room");
        upload.open(2 * LARGE).expect("it is the same message");
        upload.end();
        assert_eq!(load(&room).set(2 * LARGE), Err(Full::Server), "somebody still writes it");
        drop(held);
        for _ in 0..4 {
            upload.change(|mail| mail.take(&message(LARGE))).expect("it is thrown away");
        }
        upload.close();
        assert_eq!(load(&room).set(3 * LARGE), Ok(()));
        assert!(!upload.is_refused());
    }

    #[test]
    fn what_was_looked_at_is_given_back_and_what_finds_no_room_is_refused() {
        let room = Room::new(4 * LARGE);
        let upload = Upload::new(Arc::new(load(&room)));
        for _ in 0..10 {
            upload.change(|mail| mail.take(&message(2 * LARGE))).expect("room");
            assert_eq!(load(&room).set(2 * LARGE), Err(Full::Server), "a message that waits holds its bytes");
            upload.open(2 * LARGE).expect("it is the same message");
            assert_eq!(load(&room).set(2 * LARGE), Err(Full::Server), "so does one that is looked at");
            upload.close();
        }
        assert_eq!(load(&room).set(3 * LARGE), Ok(()));
        assert!(!upload.is_refused());
        upload.change(|mail| mail.take(&message(2 * LARGE))).expect("room");
        assert_eq!(upload.open(4 * LARGE), Err(Full::Server), "it takes more than it came with");
        assert!(upload.is_refused());
    }
}
