//! Pages of events, and of those that somebody may see: the same pages as a store that holds everything in one order would give.

use runvoy_ports::store::{EventPage, EventQuery, Sight, StoredEvent};

use super::EventLog;
use super::owner::Owners;
use crate::fault::Fault;

impl EventLog {
    /// A page of events.
    pub async fn events(&self, query: EventQuery) -> Result<Vec<StoredEvent>, Fault> {
        let limit = query.limit;
        let mut walk = self.walk(query).await?;
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(events) = walk.next(limit - found.len()).await?
        {
            found.extend(events);
        }
        found.truncate(limit);
        Ok(found)
    }

    /// A page of those that somebody may see.
    pub async fn seen_events(&self, query: EventQuery, sight: Sight) -> Result<EventPage, Fault> {
        let (after, limit, descending) = (query.after, query.limit, query.descending);
        let mut walk = self.walk(query).await?;
        let mut page = EventPage { looked: after.unwrap_or(0), ..EventPage::default() };
        let mut owners = Owners::new(&self.dynamo, sight.owner.clone());
        let (mut looked_at, mut bytes) = (0, 0);
        let want = limit.min(sight.most_looked_at).saturating_add(1);
        'page: while let Some(events) = walk.next(want).await? {
            owners.look_up(&events).await?;
            let mut events = events.into_iter();
            while let Some(stored) = events.next() {
                (page.looked, looked_at) = (stored.place, looked_at + 1);
                if (sight.trail || !stored.event.kind.is_trail()) && owners.is_theirs(&stored.event.entity) {
                    bytes += stored.event.properties.to_string().len() + stored.event.context.to_string().len();
                    page.events.push(stored);
                }
                if page.events.len() >= limit || looked_at >= sight.most_looked_at || bytes >= sight.most_bytes {
                    page.more = events.next().is_some();
                    while !page.more
                        && let Some(further) = walk.next(1).await?
                    {
                        page.more = !further.is_empty();
                    }
                    break 'page;
                }
            }
        }
        if !page.more && !descending {
            page.looked = page.looked.max(walk.end);
        }
        Ok(page)
    }
}
