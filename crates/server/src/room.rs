//! The memory budget of requests: the bytes of heads and bodies, as sent and as decoded, over all connections. A request that does not fit is refused and may be
//! sent again; no request waits for memory, so that none holds some while it waits for more.
//!
//! One connection, one address and one user may each hold a share of the budget, and the last eighth is for small requests. So whoever sends much is
//! refused first, and others are still served.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// A request that holds no more than this is small.
pub(crate) const SMALL_BYTES: usize = 64 << 10;
/// The part of the budget that only small requests may use.
const SMALL_PART: usize = 8;
/// One connection may hold this part of the budget.
const CONNECTION_PART: usize = 4;
/// One address or one user may hold this part.
const ADDRESS_OR_USER_PART: usize = 2;

/// Why a request does not fit into the budget now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// All requests together.
    #[error("the server is busy: the requests in its memory have reached their limit")]
    Server,
    /// Those of the request's connection.
    #[error("the requests of this connection have reached the memory limit of one connection")]
    Connection,
    /// Those of its address.
    #[error("the requests of this address have reached the memory limit of one address")]
    Address,
    /// Those of its user.
    #[error("the requests of this user have reached the memory limit of one user")]
    User,
}

/// Who answers for the memory of a request. Each holder has a share of the budget.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// A connection, by its number.
    Connection(u64),
    /// The client's address.
    Address(IpAddr),
    /// The user, by e-mail.
    User(String),
}

impl Holder {
    /// The part of the budget that it may hold, and what is said where that is too little.
    const fn share(&self) -> (usize, Full) {
        match self {
            Self::Connection(_) => (CONNECTION_PART, Full::Connection),
            Self::Address(_) => (ADDRESS_OR_USER_PART, Full::Address),
            Self::User(_) => (ADDRESS_OR_USER_PART, Full::User),
        }
    }
}

/// The budget that all requests share.
pub(crate) struct Room {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    total: usize,
    /// A holder of nothing has no entry.
    by: HashMap<Holder, usize>,
}

impl Room {
    /// A budget of so many bytes.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// What a request holds for these holders: a head of so many bytes, and nothing else yet.
    pub(crate) fn load(self: &Arc<Self>, holders: Vec<Holder>, head_bytes: usize) -> Result<Load, Full> {
        self.exchange(&holders, 0, head_bytes)?;
        Ok(Load { room: Arc::clone(self), holders, head_bytes, held: Mutex::new(head_bytes) })
    }

    fn exchange(&self, holders: &[Holder], before: usize, after: usize) -> Result<(), Full> {
        let mut taken = self.taken.lock();
        if after > before {
            self.check(&taken, holders, before, after)?;
        }
        taken.total = taken.total - before + after;
        for holder in holders {
            let held = taken.by.get(holder).copied().unwrap_or(0) - before + after;
            if held == 0 {
                taken.by.remove(holder);
            } else {
                taken.by.insert(holder.clone(), held);
            }
        }
        Ok(())
    }

    fn check(&self, taken: &Taken, holders: &[Holder], before: usize, after: usize) -> Result<(), Full> {
        for holder in holders {
            let others = taken.by.get(holder).copied().unwrap_or(0) - before;
            let (part, full) = holder.share();
            // The only request of a holder may be as large as requests may be.
            if others > 0 && others.saturating_add(after) > self.most / part {
                return Err(full);
            }
        }
        let reserved = if after > SMALL_BYTES { self.most / SMALL_PART } else { 0 };
        if (taken.total - before).saturating_add(after) > self.most - reserved { Err(Full::Server) } else { Ok(()) }
    }
}

/// What one request holds. It is given back when this is dropped.
pub(crate) struct Load {
    room: Arc<Room>,
    holders: Vec<Holder>,
    head_bytes: usize,
    held: Mutex<usize>,
}

impl Load {
    /// From now on the request holds so many bytes beside its head. Less always fits.
    pub(crate) fn set(&self, bytes: usize) -> Result<(), Full> {
        let (mut held, bytes) = (self.held.lock(), self.head_bytes.saturating_add(bytes));
        self.room.exchange(&self.holders, *held, bytes)?;
        *held = bytes;
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.room.exchange(&self.holders, *self.held.lock(), 0).expect("less always fits");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn of(room: &Arc<Room>, holders: Vec<Holder>) -> Load {
        room.load(holders, 0).expect("nothing always fits")
    }

    fn free(room: &Arc<Room>) -> Load {
        of(room, Vec::new())
    }

    fn user(name: &str) -> Vec<Holder> {
        vec![Holder::User(name.to_owned())]
    }

    #[test]
    fn a_dropped_request_gives_its_memory_back() {
        let room = Room::new(8 * MIB);
        let (one, other) = (free(&room), free(&room));
        assert_eq!((one.set(MIB), one.set(4 * MIB), other.set(3 * MIB)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(other.set(3 * MIB + 1), Err(Full::Server));
        drop(one);
        assert_eq!(other.set(7 * MIB), Ok(()));
        assert_eq!(other.set(0), Ok(()));
        assert_eq!(free(&room).set(7 * MIB), Ok(()), "a refusal takes nothing");
        assert_eq!(room.taken.lock().total, 0);
    }

    #[test]
    fn small_requests_fit_where_large_ones_do_not_and_are_counted() {
        let room = Room::new(8 * MIB);
        let large = free(&room);
        large.set(7 * MIB).expect("it fits");
        let small: Vec<Load> = (0..16).map(|_| free(&room)).collect();
        assert_eq!(small[0].set(SMALL_BYTES + 1), Err(Full::Server));
        for request in &small {
            assert_eq!(request.set(SMALL_BYTES), Ok(()));
        }
        assert_eq!(free(&room).set(1), Err(Full::Server), "every byte counts");
    }

    #[test]
    fn security_29_one_holder_leaves_memory_to_others() {
        let room = Room::new(8 * MIB);
        let of_one: Vec<Load> = (0..200).map(|_| of(&room, user("one"))).collect();
        let refused = of_one.iter().filter(|request| request.set(SMALL_BYTES) == Err(Full::User)).count();
        assert_eq!(refused, 200 - 64, "half of the budget, in requests of 64 KiB");
        assert_eq!(of(&room, user("other")).set(3 * MIB), Ok(()));
        drop(of_one);
        assert!(room.taken.lock().by.is_empty(), "holders of nothing are forgotten");
        assert_eq!(of(&room, user("one")).set(7 * MIB), Ok(()), "a single request may be large");
    }

    #[test]
    fn each_kind_of_holder_is_refused_by_name() {
        let room = Room::new(8 * MIB);
        let address = Holder::Address(IpAddr::from([10, 0, 0, 1]));
        for (holder, most, full) in [(Holder::Connection(7), 2 * MIB, Full::Connection), (address, 4 * MIB, Full::Address)] {
            let (first, second) = (of(&room, vec![holder.clone()]), of(&room, vec![holder]));
            first.set(MIB).expect("it fits");
            assert_eq!(second.set(most - MIB), Ok(()));
            assert_eq!(second.set(most - MIB + 1), Err(full));
        }
    }
}
