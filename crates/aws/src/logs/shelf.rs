//! The objects of sealed logs: written whole, read whole, the last few kept at hand unpacked, so that whoever reads on does not fetch them
//! again.

use std::collections::VecDeque;
use std::sync::Arc;

use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;

use super::part::{Part, pack, unpack};
use super::piece::Piece;
use crate::blob;
use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;

const SERVICE: &str = "S3";

/// The objects of logs in one bucket.
#[derive(Debug)]
pub(super) struct Shelf {
    client: aws_sdk_s3::Client,
    bucket: String,
    at_hand: Mutex<VecDeque<(String, Pieces)>>,
    most_at_hand: usize,
}

/// The pieces of one object.
pub(super) type Pieces = Arc<Vec<Piece>>;

impl Shelf {
    pub fn new(clients: &Clients, config: &Config, most_at_hand: usize) -> Self {
        Self { client: clients.s3.clone(), bucket: config.bucket.clone(), at_hand: Mutex::new(VecDeque::new()), most_at_hand }
    }

    /// Writes pieces as an object. It is durable when this comes back.
    pub async fn put(&self, id: ExecutionId, pieces: Vec<Piece>) -> Result<Part, Fault> {
        let (part, object) = off_the_runtime(move || pack(id, &pieces)).await?;
        blob::put(&self.client, &self.bucket, &part.name(id), object).await?;
        Ok(part)
    }

    /// The pieces of an object; `None` if there is no such object, `Damaged` if it is not what was written.
    pub async fn get(&self, id: ExecutionId, part: Part) -> Result<Option<Pieces>, Fault> {
        let name = part.name(id);
        if let Some(pieces) = self.recall(&name) {
            return Ok(Some(pieces));
        }
        let Some(object) = blob::get(&self.client, &self.bucket, &name).await? else { return Ok(None) };
        let pieces = Arc::new(off_the_runtime(move || unpack(id, &part, &object)).await?);
        let mut at_hand = self.at_hand.lock();
        at_hand.push_front((name, Arc::clone(&pieces)));
        at_hand.truncate(self.most_at_hand);
        Ok(Some(pieces))
    }

    fn recall(&self, name: &str) -> Option<Pieces> {
        let mut at_hand = self.at_hand.lock();
        let place = at_hand.iter().position(|(known, _)| known == name)?;
        let found = at_hand.remove(place)?;
        at_hand.push_front(found);
        at_hand.front().map(|(_, pieces)| Arc::clone(pieces))
    }

    /// Removes one object.
    pub async fn remove(&self, id: ExecutionId, part: Part) -> Result<(), Fault> {
        let request = self.client.delete_object().bucket(&self.bucket).key(part.name(id));
        request.send().await.map(drop).map_err(|error| Fault::of(SERVICE, error))
    }

    /// Removes every object of a log, also those that no head points to.
    pub async fn remove_all(&self, id: ExecutionId) -> Result<(), Fault> {
        let prefix = Part::prefix(id);
        self.at_hand.lock().retain(|(name, _)| !name.starts_with(&prefix));
        loop {
            let request = self.client.list_objects_v2().bucket(&self.bucket).prefix(&prefix);
            let page = request.send().await.map_err(|error| Fault::of(SERVICE, error))?;
            let names: Vec<_> = page.contents().iter().filter_map(|object| object.key()).collect();
            if names.is_empty() {
                return Ok(());
            }
            let named = |name: &&str| ObjectIdentifier::builder().key(*name).build().expect("it has a key");
            let these =
                Delete::builder().set_objects(Some(names.iter().map(named).collect())).quiet(true).build().expect("there are objects");
            let request = self.client.delete_objects().bucket(&self.bucket).delete(these);
            let answer = request.send().await.map_err(|error| Fault::of(SERVICE, error))?;
            if let Some(error) = answer.errors().first() {
                let (code, message) = (error.code().unwrap_or_default().to_owned(), error.message().unwrap_or_default().to_owned());
                return Err(Fault::Refused { service: SERVICE, code, message });
            }
        }
    }
}

async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> Result<T, Fault> + Send + 'static) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Fault::Damaged(format!("a part cannot be handled: {error}"))))
}
