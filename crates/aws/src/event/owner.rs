//! Whose executions and jobs events are about, read from what they are about.

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_model::event::{Entity, EntityType};
use runvoy_ports::store::StoredEvent;

use crate::dynamo::Dynamo;
use crate::fault::Fault;
use crate::item::{Item, Read, item, s};
use crate::table::Table;

/// What is somebody's.
pub(super) struct Owners<'d> {
    dynamo: &'d Dynamo,
    /// `None`: everything is looked at.
    owner: Option<String>,
    known: HashMap<Entity, bool>,
}

impl<'d> Owners<'d> {
    pub fn new(dynamo: &'d Dynamo, owner: Option<String>) -> Self {
        Self { dynamo, owner, known: HashMap::new() }
    }

    /// Whether this is theirs; asked only of what was looked up.
    pub fn is_theirs(&self, entity: &Entity) -> bool {
        self.owner.is_none() || self.known.get(entity).copied().unwrap_or(false)
    }

    /// Looks up what these events are about.
    pub async fn look_up(&mut self, events: &[StoredEvent]) -> Result<(), Fault> {
        let Some(owner) = &self.owner else { return Ok(()) };
        let new: HashSet<&Entity> =
            events.iter().map(|stored| &stored.event.entity).filter(|entity| !self.known.contains_key(entity)).collect();
        let new: HashSet<Entity> = new.into_iter().cloned().collect();
        for (kind, table) in [(EntityType::Task, Table::Executions), (EntityType::Job, Table::Jobs)] {
            let keys: Vec<Item> = new.iter().filter(|entity| entity.kind == kind).map(key).collect();
            if keys.is_empty() {
                continue;
            }
            for found in self.dynamo.get_parts(table, keys, &[table.key().0, "user_email", "owners"]).await? {
                let entity = Entity { kind, id: found.text(table.key().0)?.to_owned() };
                let is_theirs = is_owned_by(&found, kind, owner);
                self.known.insert(entity, is_theirs);
            }
        }
        // What is not there, and whatever is no execution and no job, is nobody's.
        for entity in new {
            self.known.entry(entity).or_insert(false);
        }
        Ok(())
    }
}

fn key(entity: &Entity) -> Item {
    match entity.kind {
        EntityType::Job => item([("job_id", s(&*entity.id)), ("entry", s("job"))]),
        _ => item([("execution_id", s(&*entity.id))]),
    }
}

fn is_owned_by(found: &Item, kind: EntityType, owner: &str) -> bool {
    let is_co_owner = match found.get("owners") {
        Some(AttributeValue::L(owners)) => owners.iter().any(|one| one.as_s().is_ok_and(|one| one == owner)),
        Some(AttributeValue::Ss(owners)) => owners.iter().any(|one| one == owner),
        _ => false,
    };
    found.text_if("user_email") == Some(owner) || kind == EntityType::Task && is_co_owner
}
