//! Every port on AWS: DynamoDB holds what must change together, S3 what is large, SQS wakes workers, EventBridge tells others, CloudWatch Logs
//! mirrors output. The only crate that sees the AWS SDK. Nothing is decided here: steps are decided by `runvoy_model::decide` over items that
//! were read consistently, and written by one conditional transaction.

mod blob;
mod clients;
mod config;
mod count;
mod day;
mod dead;
mod dependency;
mod dynamo;
mod event;
mod execution;
mod fault;
mod find;
mod item;
mod job;
mod known;
mod limit;
mod line;
mod list;
mod listener;
mod lists;
mod logs;
mod message;
mod mirror;
mod node;
mod parameter;
mod queue;
mod ready;
mod recent;
mod seal_keys;
mod setup;
mod stand;
mod standing;
mod stub;
mod sweep;
mod table;
mod walk;

pub use blob::S3BlobStore;
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
pub use stub::*;
pub use sweep::{ReadySource, Sweep, Waiting};
