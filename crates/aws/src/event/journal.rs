//! The journal: the events of a step as the step's own transaction writes them, and as a drain finds them. Whoever commits a step puts these items
//! with it; nobody but a drain removes them.

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;
use runvoy_model::event::Event;
use runvoy_model::id::StepId;
use runvoy_model::time::UnixMs;

use crate::dynamo::{Dynamo, Query};
use crate::fault::{Fault, spot};
use crate::item::{Item, Read, item, n, s};
use crate::table::Table;

/// So many partitions take the journal. It is part of what is stored: a drain looks at exactly these.
const SHARDS: u8 = 16;
/// An item takes no more events than this: each becomes a row of the one transaction that places them.
const MOST_EVENTS: usize = 40;
/// And no more bytes, but for a single event. Items end at 400 KB.
const MOST_BYTES: usize = 300_000;

/// The items of a step's events, in order; none where it has none.
pub(crate) fn journal_items(step: StepId, at: UnixMs, events: &[Event]) -> Vec<Item> {
    let mut pieces: Vec<(String, usize)> = Vec::new();
    for event in events {
        let text = serde_json::to_string(event).expect("an event is JSON");
        match pieces.last_mut() {
            Some((piece, count)) if *count < MOST_EVENTS && piece.len() + text.len() + 2 <= MOST_BYTES => {
                piece.push(',');
                piece.push_str(&text);
                *count += 1;
            }
            _ => pieces.push((format!("[{text}"), 1)),
        }
    }
    let items = pieces.into_iter().enumerate().map(|(piece, (mut text, _))| {
        text.push(']');
        let key = Key { step, piece: u16::try_from(piece).expect("a step has few events") };
        let mut item = key.item();
        item.extend([("events".to_owned(), s(text)), ("at".to_owned(), n(at.0))]);
        item
    });
    items.collect()
}

/// Has a step's events placed after those of these other steps, which were committed before it: the last ones that wrote what it looked at.
pub(crate) fn follow(items: &mut [Item], before: &[StepId]) {
    if before.is_empty() {
        return;
    }
    for item in items {
        item.insert("after".to_owned(), AttributeValue::L(before.iter().map(|step| s(step.to_string())).collect()));
    }
}

/// Names an item of the journal. They sort as steps were named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub step: StepId,
    pub piece: u16,
}

impl Key {
    pub fn item(self) -> Item {
        item([("PK", s(partition(self.shard()))), ("SK", s(format!("{}#{:03}", self.step, self.piece)))])
    }

    fn shard(self) -> u8 {
        self.step.as_bytes()[15] % SHARDS
    }

    fn parse(text: &str) -> Option<Self> {
        let (step, piece) = text.split_once('#')?;
        Some(Self { step: step.parse().ok()?, piece: piece.parse().ok()? })
    }
}

fn partition(shard: u8) -> String {
    format!("JOURNAL#{shard:02}")
}

/// An item of the journal as it was found.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub key: Key,
    pub events: Vec<Event>,
    /// The steps whose events are placed before these.
    pub after: Vec<StepId>,
    /// How large it is.
    pub bytes: usize,
}

impl Entry {
    fn decode(item: &Item) -> Result<Self, Fault> {
        let sort = item.text("SK")?;
        let key = Key::parse(sort).ok_or_else(|| Fault::Damaged(format!("an item of the journal has the key {sort}")))?;
        let text = item.text("events")?;
        let events = serde_json::from_str(text)
            .map_err(|error| Fault::Damaged(format!("the events of step {} cannot be read: {}", key.step, spot(&error))))?;
        let after = match item.get("after") {
            Some(AttributeValue::L(steps)) => steps.iter().filter_map(|step| step.as_s().ok()?.parse().ok()).collect(),
            _ => Vec::new(),
        };
        Ok(Self { key, events, after, bytes: text.len() })
    }
}

/// What a look at the journal found.
#[derive(Debug)]
pub(super) struct Look {
    pub entries: Vec<Entry>,
    /// Partitions that hold more, and up to which key they were seen.
    cut: Vec<(u8, Key)>,
}

impl Look {
    /// A look that saw everything.
    #[cfg(test)]
    pub fn complete(entries: Vec<Entry>) -> Self {
        Self { entries, cut: Vec::new() }
    }

    /// A look that saw every partition only up to this key.
    #[cfg(test)]
    pub fn cut_after(entries: Vec<Entry>, last: Key) -> Self {
        Self { entries, cut: (0..SHARDS).map(|shard| (shard, last)).collect() }
    }

    /// Everything was seen.
    pub fn is_complete(&self) -> bool {
        self.cut.is_empty()
    }

    /// An entry with this key would have been seen.
    pub fn reaches(&self, key: Key) -> bool {
        self.cut.iter().all(|(shard, last)| *shard != key.shard() || key <= *last)
    }
}

/// Looks at every partition, `most` entries of each, those of the earliest steps.
pub(super) async fn look(dynamo: &Dynamo, most: usize) -> Result<Look, Fault> {
    let shards = (0..SHARDS).map(|shard| async move {
        let query = Query::of(Table::Events, "PK", s(partition(shard))).limit(most);
        let found = dynamo.query(query).await?;
        let entries = found.iter().map(Entry::decode).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, Fault>((shard, entries))
    });
    let mut look = Look { entries: Vec::new(), cut: Vec::new() };
    for (shard, entries) in try_join_all(shards).await? {
        if entries.len() >= most
            && let Some(last) = entries.last()
        {
            look.cut.push((shard, last.key));
        }
        look.entries.extend(entries);
    }
    Ok(look)
}

#[cfg(test)]
mod tests {
    use runvoy_model::event::{Entity, EntityType, EventType};
    use runvoy_model::id::Id;
    use serde_json::json;

    use super::*;

    fn event(text: &str) -> Event {
        Event {
            id: Id::from_bytes([7; 16]),
            entity: Entity { kind: EntityType::User, id: "ann@x".into() },
            number: 1,
            kind: EventType::Audit,
            at: UnixMs(5),
            context: json!({}),
            properties: json!({"text": text, "small": 5e-324}),
            mac: [9; 32],
        }
    }

    #[test]
    fn events_come_back_in_order_from_items_of_bounded_size() {
        let step = StepId::from_bytes([3; 16]);
        let mut events: Vec<Event> = (0..90).map(|i| event(&format!("{i}"))).collect();
        events.extend((0..3).map(|i| event(&format!("{i}").repeat(200_000))));
        let mut items = journal_items(step, UnixMs(5), &events);
        assert_eq!(items.len(), 5, "40, 40, 10 with a large one, and two large ones");
        follow(&mut items, &[StepId::from_bytes([2; 16])]);
        let decoded: Vec<Entry> = items.iter().map(|item| Entry::decode(item).expect("an entry")).collect();
        assert!(decoded.iter().all(|entry| entry.bytes <= MOST_BYTES && entry.after == [StepId::from_bytes([2; 16])]));
        assert!(decoded.iter().enumerate().all(|(i, entry)| entry.key == Key { step, piece: u16::try_from(i).expect("few") }));
        assert_eq!(decoded.into_iter().flat_map(|entry| entry.events).collect::<Vec<_>>(), events);
        assert!(journal_items(step, UnixMs(5), &[]).is_empty());
    }
}
