//! The open connections of one listener, by address. One address may have only so many; and where the listener has as many as it may, an idle connection of the
//! address with the most idle ones is closed. So a client that opens connections and sends nothing on them keeps no other client out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limit::network;
use crate::listen::Limits;
use crate::peer::Peer;
use crate::proxy::Network;
use crate::traffic::Traffic;

/// An evicted connection has this long to leave before another one is evicted too: one may have got a request in the same moment.
const EVICT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The connections of a listener.
pub(crate) struct Connections {
    limits: Limits,
    trusted_proxies: Vec<Network>,
    places: Arc<Semaphore>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next_id: u64,
    /// An address without connections has no entry.
    by_address: HashMap<Option<IpAddr>, Vec<Entry>>,
}

/// An open connection, as others see it. Those of one address stand in the order in which they came.
struct Entry {
    id: u64,
    traffic: Arc<Traffic>,
    eviction: Arc<Notify>,
    is_evicted: bool,
}

impl Entry {
    fn is_evictable(&self) -> bool {
        !self.is_evicted && self.traffic.is_idle()
    }
}

/// The place of one connection, until it is dropped.
pub(crate) struct Slot {
    id: u64,
    address: Option<IpAddr>,
    traffic: Arc<Traffic>,
    eviction: Arc<Notify>,
    connections: Arc<Connections>,
    _place: OwnedSemaphorePermit,
}

impl Connections {
    /// Of a listener with these limits.
    pub(crate) fn new(limits: Limits, trusted_proxies: Vec<Network>) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(limits.max_connections));
        Arc::new(Self { limits, trusted_proxies, places, open: Mutex::default() })
    }

    /// A place for one more connection. Where there is none, idle connections are closed, one after the other, until one has left.
    pub(crate) async fn place(&self) -> OwnedSemaphorePermit {
        let mut free = pin!(Arc::clone(&self.places).acquire_owned());
        loop {
            if self.places.available_permits() == 0 {
                self.evict();
            }
            if let Ok(place) = timeout(EVICT_AGAIN_AFTER, &mut free).await {
                return place.expect("the semaphore is never closed");
            }
        }
    }

    /// Gives the place to a connection of this peer; `None` where its address has as many as it may.
    pub(crate) fn open(self: &Arc<Self>, peer: Peer, place: OwnedSemaphorePermit) -> Option<Slot> {
        let address = network(peer);
        let (traffic, eviction) = (Traffic::new(), Arc::new(Notify::new()));
        let mut open = self.open.lock();
        let id = open.next_id;
        open.next_id += 1;
        let entries = open.by_address.entry(address).or_default();
        if entries.len() >= self.most_of(address) {
            return None;
        }
        entries.push(Entry { id, traffic: Arc::clone(&traffic), eviction: Arc::clone(&eviction), is_evicted: false });
        Some(Slot { id, address, traffic, eviction, connections: Arc::clone(self), _place: place })
    }

    /// Closes the oldest idle connection of the address that has the most idle ones.
    pub(crate) fn evict(&self) {
        let mut open = self.open.lock();
        let idle = |entries: &Vec<Entry>| entries.iter().filter(|entry| entry.is_evictable()).count();
        let greediest = open.by_address.values_mut().map(|entries| (idle(entries), entries)).max_by_key(|(idle, _)| *idle);
        if let Some(entry) = greediest.and_then(|(_, entries)| entries.iter_mut().find(|entry| entry.is_evictable())) {
            entry.is_evicted = true;
            entry.eviction.notify_one();
        }
    }

    fn most_of(&self, address: Option<IpAddr>) -> usize {
        match address {
            // The Unix socket is its owner's alone.
            None => usize::MAX,
            Some(ip) if self.trusted_proxies.iter().any(|proxy| proxy.holds(ip)) => usize::MAX,
            Some(ip) if ip.is_loopback() => self.limits.max_connections_of_loopback,
            Some(_) => self.limits.max_connections_per_address,
        }
    }
}

impl Slot {
    /// The connection's number.
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    /// The connection's requests.
    pub(crate) fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }

    /// Returns when the connection is to be closed for another one.
    pub(crate) async fn evicted(&self) {
        self.eviction.notified().await;
        // A request may have come in since. Its answer is sent first.
        self.traffic.ceased(std::time::Duration::ZERO).await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        if let Some(entries) = open.by_address.get_mut(&self.address) {
            entries.retain(|entry| entry.id != self.id);
            if entries.is_empty() {
                open.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(ip: &str) -> Peer {
        Peer::Tcp((ip.parse::<IpAddr>().expect("an address"), 4711).into())
    }

    fn limited(max_connections: usize, of_address: usize, of_loopback: usize) -> Arc<Connections> {
        let limits = Limits {
            max_connections,
            max_connections_per_address: of_address,
            max_connections_of_loopback: of_loopback,
            ..Limits::default()
        };
        Connections::new(limits, vec!["10.9.0.0/16".parse().expect("a network")])
    }

    async fn open(connections: &Arc<Connections>, ip: &str) -> Option<Slot> {
        let place = connections.place().await;
        connections.open(peer(ip), place)
    }

    #[tokio::test]
    async fn each_kind_of_address_has_its_own_limit() {
        let connections = limited(100, 2, 4);
        for (ip, most) in [("10.0.0.1", 2), ("127.0.0.1", 4), ("10.9.0.1", 20)] {
            let mut slots = Vec::new();
            for _ in 0..20 {
                slots.extend(open(&connections, ip).await);
            }
            assert_eq!(slots.len(), most, "{ip}");
            slots.pop();
            assert!(open(&connections, ip).await.is_some(), "one has ended");
        }
        assert!(connections.open.lock().by_address.is_empty(), "nothing is remembered of those that ended");
    }

    #[tokio::test]
    async fn the_greediest_address_gives_up_an_idle_connection() {
        let connections = limited(4, 4, 4);
        let busy = open(&connections, "10.0.0.1").await.expect("a place");
        let _request = busy.traffic().begin();
        let lone = open(&connections, "10.0.0.2").await.expect("a place");
        let first = open(&connections, "10.0.0.3").await.expect("a place");
        let second = open(&connections, "10.0.0.3").await.expect("a place");
        let newcomer = {
            let connections = Arc::clone(&connections);
            tokio::spawn(async move { open(&connections, "10.0.0.4").await.is_some() })
        };
        first.evicted().await;
        drop(first);
        assert!(newcomer.await.expect("no panic"));
        for kept in [&busy, &lone, &second] {
            assert!(tokio::time::timeout(std::time::Duration::from_millis(10), kept.evicted()).await.is_err(), "{:?}", kept.address);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn security_29_an_evicted_connection_that_stays_is_not_waited_for() {
        let connections = limited(2, 2, 2);
        let stays = open(&connections, "10.0.0.1").await.expect("a place");
        let leaves = open(&connections, "10.0.0.1").await.expect("a place");
        let newcomer = {
            let connections = Arc::clone(&connections);
            tokio::spawn(async move { open(&connections, "10.0.0.2").await.is_some() })
        };
        stays.evicted().await;
        let _request = stays.traffic().begin();
        leaves.evicted().await;
        drop(leaves);
        assert!(newcomer.await.expect("no panic"));
    }
}
