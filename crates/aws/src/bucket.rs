//! Which bucket the blobs of an installation lie in. Its marks say so from the first start on: in an empty bucket of another name everything would
//! look lost, and be given up.

use std::sync::Arc;

use crate::clients::Clients;
use crate::config::Config;
use crate::dynamo::Dynamo;
use crate::fault::Fault;
use crate::item::{Item, Read, item, s};
use crate::mark::key;
use crate::table::Table;

/// The name of the mark.
const MARK: &str = "bucket";
const SERVICE: &str = "S3";

/// The bucket of an installation, whatever its configuration says so far: the one that its marks name, else the one that is asked for, else one
/// named after it. An error where another one is asked for than its marks name.
pub async fn choose_bucket(clients: &Clients, config: &Config, asked: Option<&str>) -> Result<String, Fault> {
    let dynamo = Dynamo::new(clients, Arc::new(config.clone()));
    let (is_new, found) = match dynamo.get(Table::Marks, key(MARK)).await {
        // There are no tables yet.
        Err(Fault::Refused { code, .. }) if code == "ResourceNotFoundException" => (true, None),
        found => (false, found?),
    };
    let marked = found.as_ref().map(name_of).transpose()?;
    match (asked, marked) {
        (Some(asked), Some(marked)) if asked != marked => Err(another(marked, asked)),
        (Some(name), _) | (None, Some(name)) => Ok(name.to_owned()),
        (None, None) => {
            // Names of buckets are everybody's: with the number of the account it is ours. Older installations have one without it.
            let (account, older) = (clients.account().await?, format!("{}-data", config.prefix));
            let newer = format!("{older}-{account}");
            if is_new || !is_own(clients, &older, &account).await? {
                return Ok(newer);
            }
            if is_own(clients, &newer, &account).await? {
                return Err(ambiguous(&older, &newer));
            }
            Ok(older)
        }
    }
}

/// Makes the configured bucket the installation's for good; an error where it has another.
pub async fn claim_bucket(clients: &Clients, config: &Arc<Config>) -> Result<(), Fault> {
    let dynamo = Dynamo::new(clients, Arc::clone(config));
    if dynamo.get(Table::Marks, key(MARK)).await?.is_none() && !is_own(clients, &config.bucket, &clients.account().await?).await? {
        return Err(unusable(&config.bucket));
    }
    match dynamo.put_new(Table::Marks, item([("mark", s(MARK)), ("name", s(&config.bucket))])).await {
        Err(Fault::Conflict) => {}
        done => return done,
    }
    let found = dynamo.get(Table::Marks, key(MARK)).await?.unwrap_or_default();
    let marked = name_of(&found)?;
    if marked == config.bucket { Ok(()) } else { Err(another(marked, &config.bucket)) }
}

fn name_of(mark: &Item) -> Result<&str, Fault> {
    mark.text("name")
}

fn another(marked: &str, asked: &str) -> Fault {
    let message = format!("what this installation has stored lies in bucket {marked}, not in {asked}: set aws.bucket back");
    Fault::Refused { service: SERVICE, code: "AnotherBucket".to_owned(), message }
}

fn ambiguous(older: &str, newer: &str) -> Fault {
    let message = format!("there are {older} and {newer}, and this installation does not record which is its own: set it in aws.bucket");
    Fault::Refused { service: SERVICE, code: "TwoBuckets".to_owned(), message }
}

fn unusable(bucket: &str) -> Fault {
    let message = format!("bucket {bucket} does not exist in this account, or this server may not read it (s3:ListBucket)");
    Fault::Refused { service: SERVICE, code: "NoSuchBucket".to_owned(), message }
}

async fn is_own(clients: &Clients, bucket: &str, account: &str) -> Result<bool, Fault> {
    match clients.s3.head_bucket().bucket(bucket).expected_bucket_owner(account).send().await {
        Ok(_) => Ok(true),
        // It is not there, somebody else's, or none that this server may use. Such an answer has no code.
        Err(error) if error.raw_response().is_some_and(|answer| (300..500).contains(&answer.status().as_u16())) => Ok(false),
        Err(error) => Err(Fault::of(SERVICE, error)),
    }
}
