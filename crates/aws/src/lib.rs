//! Every port on AWS: DynamoDB holds what must change together, S3 what is large, SQS wakes workers, EventBridge tells others, CloudWatch Logs
//! mirrors output. The only crate that sees the AWS SDK. Nothing is decided here: steps are decided by `runvoy_model::decide` over items that
//! were read consistently, and written by one conditional transaction.

mod clients;
mod config;
mod dynamo;
mod event;
mod fault;
mod item;
mod setup;
mod table;

pub use clients::Clients;
pub use config::{Config, EventLayout};
pub use event::{BucketWitnesses, Consumer, Publisher};
pub use fault::Fault;
pub use setup::set_up;
