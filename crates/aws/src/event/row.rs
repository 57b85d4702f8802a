//! One event as it lies under its entity: whole, with its place. A row is written once; only a heartbeat's is ever removed.

use std::collections::HashMap;

use runvoy_model::event::{Entity, EntityType, Event, EventType};
use runvoy_ports::store::StoredEvent;

use super::EventLog;
use super::kind;
use crate::dynamo::Query;
use crate::fault::Fault;
use crate::item::{Item, Read, item, json, n, s};
use crate::table::Table;

/// Where an event lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub place: u64,
    pub entity: Entity,
    /// A heartbeat may be gone, and nothing else.
    pub may_be_gone: bool,
}

impl Spot {
    pub fn key(&self) -> Item {
        item([("PK", s(partition(&self.entity))), ("SK", s(sort(self.place)))])
    }

    /// Reads the key of a row, as an index names it.
    pub fn of_key(key: &Item, kind: EventType) -> Result<Self, Fault> {
        let (partition, sort) = (key.text("PK")?, key.text("SK")?);
        let entity = partition.split_once('#').and_then(|(kind, id)| Some(Entity { kind: EntityType::parse(kind)?, id: id.to_owned() }));
        let place = sort.strip_prefix("PLACE#").and_then(|place| place.parse().ok());
        let (Some(entity), Some(place)) = (entity, place) else {
            return Err(Fault::Damaged(format!("an event has the key {partition} {sort}")));
        };
        Ok(Self { place, entity, may_be_gone: !kind.is_chained() })
    }
}

fn partition(entity: &Entity) -> String {
    format!("{}#{}", entity.kind.as_str(), entity.id)
}

fn sort(place: u64) -> String {
    format!("PLACE#{place:020}")
}

/// The row of an event at a place.
pub(super) fn encode(place: u64, event: &Event) -> Item {
    item([
        ("PK", s(partition(&event.entity))),
        ("SK", s(sort(place))),
        ("place", n(place)),
        ("kind_shard", s(kind::shard(event.kind, place))),
        ("event", json(event)),
    ])
}

/// Reads a row.
pub(super) fn decode(item: &Item) -> Result<StoredEvent, Fault> {
    let place = item.number("place")?;
    let event: Event = item.json("event").map_err(|fault| Fault::Damaged(format!("the event at place {place}: {fault}")))?;
    if item.text_if("PK") != Some(partition(&event.entity).as_str()) || item.text_if("SK") != Some(sort(place).as_str()) {
        return Err(Fault::Damaged(format!("the event at place {place} lies with another entity or place")));
    }
    Ok(StoredEvent { place, event })
}

impl EventLog {
    /// The events at these places, in this order; of heartbeats those that are still there.
    pub(super) async fn rows(&self, spots: &[Spot]) -> Result<Vec<StoredEvent>, Fault> {
        let found = self.dynamo.get_all(Table::Events, spots.iter().map(Spot::key).collect()).await?;
        let mut found = found.iter().map(|item| Ok((item.number("place")?, item))).collect::<Result<HashMap<u64, &Item>, Fault>>()?;
        let mut events = Vec::with_capacity(spots.len());
        for spot in spots {
            match found.remove(&spot.place) {
                Some(item) => events.push(decode(item)?),
                None if spot.may_be_gone => {}
                None => return Err(Fault::Damaged(format!("the event at place {} is gone: see `runvoy audit verify`", spot.place))),
            }
        }
        Ok(events)
    }

    /// Which of these are still there.
    pub(super) async fn remaining(&self, spots: &[Spot]) -> Result<Vec<u64>, Fault> {
        let keys = spots.iter().map(Spot::key).collect();
        let found = self.dynamo.get_parts(Table::Events, keys, &["place"]).await?;
        found.iter().map(|item| item.number("place")).collect()
    }

    /// The rows of an entity within these places, `limit` at most.
    pub(super) async fn rows_of(
        &self,
        entity: &Entity,
        (first, last): (u64, u64),
        descending: bool,
        limit: usize,
    ) -> Result<Vec<Item>, Fault> {
        let mut query = Query::of(Table::Events, "PK", s(partition(entity))).limit(limit);
        query = query.range("SK", "#r BETWEEN :first AND :last", vec![(":first", s(sort(first))), (":last", s(sort(last)))]);
        if descending {
            query = query.descending();
        }
        self.dynamo.query(query).await
    }
}
