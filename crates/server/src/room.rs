//! How much of what clients send is in memory at once, over all connections. A request says what it holds as its body comes in and once it is opened; what finds
//! no room is refused by name and may come again. Nobody waits for room, so that nobody holds some while waiting for more. Small requests are not counted: the
//! large ones must not keep them out, and how many there are is bounded by connections and streams.

use std::sync::Arc;

use parking_lot::Mutex;

/// A request that holds no more than this is small.
pub(crate) const SMALL_BYTES: usize = 64 << 10;

/// There is no room now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server has as much of large requests in memory as it may")]
pub(crate) struct Full;

/// The room that large requests share.
pub(crate) struct Room {
    most: usize,
    taken: Mutex<usize>,
}

impl Room {
    /// Room for so many bytes.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::new(0) })
    }

    /// What a request holds, which is nothing yet.
    pub(crate) fn load(self: &Arc<Self>) -> Load {
        Load { room: Arc::clone(self), held: Mutex::new(0) }
    }

    fn exchange(&self, before: usize, after: usize) -> Result<(), Full> {
        let mut taken = self.taken.lock();
        let next = *taken - before + after;
        if after > before && next > self.most {
            return Err(Full);
        }
        *taken = next;
        Ok(())
    }
}

/// What one request holds. It is given back when this is dropped.
pub(crate) struct Load {
    room: Arc<Room>,
    held: Mutex<usize>,
}

impl Load {
    /// From now on the request holds so many bytes. Less always fits.
    pub(crate) fn set(&self, bytes: usize) -> Result<(), Full> {
        let mut held = self.held.lock();
        self.room.exchange(counted(*held), counted(bytes))?;
        *held = bytes;
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.set(0).expect("less always fits");
    }
}

const fn counted(bytes: usize) -> usize {
    if bytes > SMALL_BYTES { bytes } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn there_is_room_for_so_much_and_what_is_dropped_makes_room() {
        let room = Room::new(3 * MIB);
        let (one, other) = (room.load(), room.load());
        assert_eq!((one.set(MIB), one.set(2 * MIB), other.set(MIB)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(other.set(MIB + 1), Err(Full));
        drop(one);
        assert_eq!(other.set(3 * MIB), Ok(()));
        assert_eq!(other.set(0), Ok(()));
        assert_eq!(room.load().set(3 * MIB), Ok(()), "what was refused was not counted");
        assert_eq!(*room.taken.lock(), 0);
    }

    #[test]
    fn small_requests_find_room_where_there_is_none() {
        let room = Room::new(MIB);
        let (large, small) = (room.load(), room.load());
        large.set(MIB).expect("room");
        assert_eq!(small.set(SMALL_BYTES), Ok(()));
        assert_eq!(small.set(SMALL_BYTES + 1), Err(Full));
    }
}
