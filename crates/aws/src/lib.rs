//! Every port on AWS: DynamoDB holds what must change together, S3 what is large, SQS wakes workers, EventBridge tells others, CloudWatch Logs
//! mirrors output. The only crate that sees the AWS SDK. Nothing is decided here: steps are decided by `runvoy_model::decide` over items that
//! were read consistently, and written by one conditional transaction.

mod blob;
mod bucket;
mod clients;
mod commit;
mod config;
mod cost;
mod count;
mod day;
mod dead;
mod dependency;
mod desk;
mod dynamo;
#[cfg(test)]
#[expect(dead_code, reason = "the tests beside this crate use more of it")]
#[path = "../tests/emulator/process.rs"]
mod emulator;
mod event;
mod execution;
mod fault;
mod fetch;
mod find;
mod heads;
mod item;
mod job;
mod known;
mod limit;
mod line;
mod list;
mod listener;
mod lists;
mod lock;
mod logs;
mod lost;
mod mark;
mod message;
mod mirror;
mod node;
mod parameter;
mod port;
mod queue;
mod ready;
mod recent;
mod record;
mod roster;
mod seal_keys;
mod setup;
mod signing_keys;
mod stand;
mod standing;
mod store;
mod sweep;
mod table;
mod timestamp;
mod transaction;
mod turn;
mod walk;

pub use blob::{S3BlobStore, blob_place};
pub use bucket::{choose_bucket, claim_bucket};
pub use clients::Clients;
pub use config::{Config, EventLayout};
pub use dependency::{Dependencies, Dependency, check_queue};
pub use event::{BucketWitnesses, Consumer, Publisher};
pub use fault::Fault;
pub use listener::Listener;
pub use logs::{DynamoLogStore, LogConfig};
pub use mirror::{Mirror, MirrorConfig};
pub use parameter::ServerKeys;
pub use queue::{MessageCounts, Queues};
pub use seal_keys::SsmSealKeys;
pub use setup::set_up;
pub use signing_keys::SsmSigningKeys;
pub use store::{DynamoStore, Wakes};
pub use sweep::{ReadySource, Sweep, Waiting};
