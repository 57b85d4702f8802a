//! Makes what an installation needs and does not have yet: tables, the bucket, the bus. Whatever is there stays as it is, so that it can be
//! run again at any time, and by several at once.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, LocalSecondaryIndex, Projection, ProjectionType,
    ScalarAttributeType, TableStatus, TimeToLiveSpecification,
};
use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;

use crate::clients::Clients;
use crate::config::{Config, EventLayout};
use crate::fault::Fault;
use crate::table::{Holds, Index, Kind, Table};

/// How often a table that is being made is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// And for how long.
const LOOKS: u32 = 600;

/// Makes everything. When it comes back all tables can be used.
pub async fn set_up(clients: &Clients, config: &Config) -> Result<(), Fault> {
    for table in Table::ALL {
        create(clients, config, table).await?;
    }
    for table in Table::ALL {
        await_active(clients, config, table).await?;
        expire(clients, config, table).await?;
    }
    bucket(clients, config).await?;
    bus(clients, config).await
}

async fn create(clients: &Clients, config: &Config, table: Table) -> Result<(), Fault> {
    let (hash, range) = table.key();
    let mut types = BTreeMap::from([(hash, Kind::Text)]);
    types.extend(range);
    let mut request = clients
        .dynamo
        .create_table()
        .table_name(name(config, table))
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(schema(hash, range.map(|(name, _)| name))));
    for index in table.indexes(config.layout == EventLayout::Seed) {
        types.extend([Some(index.hash), index.range].into_iter().flatten());
        let built = GlobalSecondaryIndex::builder()
            .index_name(index.name)
            .set_key_schema(Some(schema(index.hash.0, index.range.map(|(name, _)| name))))
            .projection(projection(&index))
            .build();
        request = request.global_secondary_indexes(built.expect("an index has a name and keys"));
    }
    for index in table.local_indexes() {
        types.extend([Some(index.hash), index.range].into_iter().flatten());
        let built = LocalSecondaryIndex::builder()
            .index_name(index.name)
            .set_key_schema(Some(schema(index.hash.0, index.range.map(|(name, _)| name))))
            .projection(projection(index))
            .build();
        request = request.local_secondary_indexes(built.expect("an index has a name and keys"));
    }
    for (name, kind) in types {
        let kind = match kind {
            Kind::Text => ScalarAttributeType::S,
            Kind::Number => ScalarAttributeType::N,
        };
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build();
        request = request.attribute_definitions(attribute.expect("an attribute has a name and a type"));
    }
    match request.send().await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some("ResourceInUseException") => Ok(()),
        Err(error) => Err(Fault::of("DynamoDB", error)),
    }
}

fn schema(hash: &str, range: Option<&str>) -> Vec<KeySchemaElement> {
    let element = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    let keys = [Some(element(hash, KeyType::Hash)), range.map(|name| element(name, KeyType::Range))];
    keys.into_iter().flatten().map(|key| key.expect("a key has a name and a type")).collect()
}

fn projection(index: &Index) -> Projection {
    match index.holds {
        Holds::Keys => Projection::builder().projection_type(ProjectionType::KeysOnly).build(),
        Holds::All => Projection::builder().projection_type(ProjectionType::All).build(),
        Holds::These(names) => {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Projection::builder().projection_type(ProjectionType::Include).set_non_key_attributes(Some(names)).build()
        }
    }
}

async fn await_active(clients: &Clients, config: &Config, table: Table) -> Result<(), Fault> {
    for _ in 0..LOOKS {
        let found = clients.dynamo.describe_table().table_name(name(config, table)).send().await;
        let found = found.map_err(|error| Fault::of("DynamoDB", error))?;
        if found.table().and_then(|table| table.table_status()) == Some(&TableStatus::Active) {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let message = format!("table {} is still not active", name(config, table));
    Err(Fault::Refused { service: "DynamoDB", code: "CREATING".to_owned(), message })
}

async fn expire(clients: &Clients, config: &Config, table: Table) -> Result<(), Fault> {
    let Some(attribute) = table.ttl() else { return Ok(()) };
    let specification = TimeToLiveSpecification::builder().enabled(true).attribute_name(attribute).build();
    let specification = specification.expect("a specification has both");
    let request = clients.dynamo.update_time_to_live().table_name(name(config, table)).time_to_live_specification(specification);
    match request.send().await {
        Ok(_) => Ok(()),
        // It is on already, or being switched on.
        Err(error) if error.code() == Some("ValidationException") => Ok(()),
        Err(error) => Err(Fault::of("DynamoDB", error)),
    }
}

async fn bucket(clients: &Clients, config: &Config) -> Result<(), Fault> {
    use aws_sdk_s3::types::{BucketLocationConstraint, CreateBucketConfiguration};
    let region = clients.s3.config().region().map(ToString::to_string).unwrap_or_default();
    // The oldest region is the one that must not be named.
    let place = (region != "us-east-1" && !region.is_empty())
        .then(|| CreateBucketConfiguration::builder().location_constraint(BucketLocationConstraint::from(region.as_str())).build());
    match clients.s3.create_bucket().bucket(&config.bucket).set_create_bucket_configuration(place).send().await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some("BucketAlreadyOwnedByYou") => Ok(()),
        // Names of buckets are the whole world's: this one is somebody else's, and nothing of ours may go there.
        Err(error) if error.code() == Some("BucketAlreadyExists") => {
            let message = format!("bucket {} belongs to another account: set one of your own (aws.bucket)", config.bucket);
            Err(Fault::Refused { service: "S3", code: "BucketAlreadyExists".to_owned(), message })
        }
        Err(error) => Err(Fault::of("S3", error)),
    }
}

async fn bus(clients: &Clients, config: &Config) -> Result<(), Fault> {
    match clients.events.create_event_bus().name(&config.event_bus).send().await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some("ResourceAlreadyExistsException") => Ok(()),
        Err(error) => Err(Fault::of("EventBridge", error)),
    }
}

/// The name of a table of this installation.
pub(crate) fn name(config: &Config, table: Table) -> String {
    let own = match table {
        Table::Executions => config.executions_table.clone(),
        Table::Events => config.events_table.clone(),
        _ => None,
    };
    own.unwrap_or_else(|| format!("{}-{}", config.prefix, table.suffix()))
}
