//! Pages of events for somebody: everything is looked at, one by one, as far as their sight goes.

use runvoy_model::event::{EntityType, Event};
use runvoy_ports::store::{EventPage, EventQuery, Sight, StoredEvent};

use crate::state::State;
use crate::store::asked_for;

/// A page of what somebody may see.
pub(crate) fn seen(state: &State, query: &EventQuery, sight: &Sight) -> EventPage {
    let (first, last) = match query.after {
        Some(after) if query.descending => (0, after),
        Some(after) => (after.saturating_add(1), u64::MAX),
        None => (0, u64::MAX),
    };
    let within = state.events.range(first..last).filter(|(_, event)| asked_for(query, event));
    let mut asked: Box<dyn Iterator<Item = (&u64, &Event)>> = if query.descending { Box::new(within.rev()) } else { Box::new(within) };
    let mut page = EventPage { looked: query.after.unwrap_or(0), ..EventPage::default() };
    let (mut looked_at, mut bytes) = (0, 0);
    while let Some((place, event)) = asked.next() {
        (page.looked, looked_at) = (*place, looked_at + 1);
        if sees(state, sight, event) {
            bytes += event.properties.to_string().len() + event.context.to_string().len();
            page.events.push(StoredEvent { place: *place, event: event.clone() });
        }
        if page.events.len() >= query.limit || looked_at >= sight.most_looked_at || bytes >= sight.most_bytes {
            page.more = asked.next().is_some();
            break;
        }
    }
    if !page.more && !query.descending {
        page.looked = page.looked.max(state.last_place);
    }
    page
}

fn sees(state: &State, sight: &Sight, event: &Event) -> bool {
    let is_owned = |owner: &String| match event.entity.kind {
        EntityType::Task => {
            let execution = event.entity.id.parse().ok().and_then(|id| state.get(id));
            execution.is_some_and(|execution| execution.created_by == *owner || execution.owned_by.contains(owner))
        }
        EntityType::Job => event.entity.id.parse().ok().and_then(|id| state.jobs.get(id)).is_some_and(|job| job.created_by == *owner),
        _ => false,
    };
    (sight.trail || !event.kind.is_trail()) && sight.owner.as_ref().is_none_or(is_owned)
}
