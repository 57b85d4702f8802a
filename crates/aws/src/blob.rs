//! Blobs as objects: one a blob, named after the digest of its bytes, and checked against its name whenever it is read. None is ever
//! removed: whatever names one is kept as long.

use async_trait::async_trait;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use runvoy_model::event::BlobPlace;
use runvoy_model::hex::{hex, unhex};
use runvoy_ports::blob::BlobStore;
use runvoy_ports::store::StoreError;
use sha2::{Digest as _, Sha256};

use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;

const SERVICE: &str = "S3";

/// What stands before the key of a blob in the name of its object.
const PREFIX: &str = "blobs/";

/// Where the blobs of a bucket lie, for those who read it themselves.
pub fn blob_place(bucket: &str) -> BlobPlace {
    BlobPlace { bucket: bucket.to_owned(), prefix: PREFIX.to_owned() }
}

/// Blobs in a bucket, below `blobs/`.
#[derive(Debug, Clone)]
pub struct S3BlobStore {
    client: aws_sdk_s3::Client,
    bucket: String,
}

impl S3BlobStore {
    /// The blobs of an installation.
    pub fn new(clients: &Clients, config: &Config) -> Self {
        Self { client: clients.s3.clone(), bucket: config.bucket.clone() }
    }
}

#[async_trait]
impl BlobStore for S3BlobStore {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        let name = name(key)?;
        if digest(&bytes) != key {
            return Err(refused(format!("{key} is not the digest of its blob")).into());
        }
        put(&self.client, &self.bucket, &name, bytes).await.map_err(StoreError::from)
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(bytes) = get(&self.client, &self.bucket, &name(key)?).await? else { return Ok(None) };
        if digest(&bytes) != key {
            return Err(StoreError::Damaged(format!("blob {key} is not what was written")));
        }
        Ok(Some(bytes))
    }
}

/// Writes an object, whatever was there.
pub(crate) async fn put(client: &aws_sdk_s3::Client, bucket: &str, name: &str, bytes: Vec<u8>) -> Result<(), Fault> {
    let request = client.put_object().bucket(bucket).key(name).body(ByteStream::from(bytes));
    request.send().await.map(drop).map_err(|error| Fault::of(SERVICE, error))
}

/// The bytes of an object, if there is one.
pub(crate) async fn get(client: &aws_sdk_s3::Client, bucket: &str, name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let answer = match client.get_object().bucket(bucket).key(name).send().await {
        Ok(answer) => answer,
        Err(error) if error.code() == Some("NoSuchKey") => return Ok(None),
        Err(error) => return Err(Fault::of(SERVICE, error)),
    };
    let bytes = answer.body.collect().await.map_err(|error| Fault::Unavailable {
        service: SERVICE,
        code: "half an answer".to_owned(),
        source: Box::new(error),
    })?;
    Ok(Some(bytes.to_vec()))
}

fn name(key: &str) -> Result<String, Fault> {
    match unhex::<32>(key) {
        Some(_) => Ok(format!("{PREFIX}{key}")),
        None => Err(refused(format!("{key:?} is no key of a blob"))),
    }
}

fn refused(message: String) -> Fault {
    Fault::Refused { service: SERVICE, code: "InvalidKey".to_owned(), message }
}

fn digest(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    hex(&digest)
}
