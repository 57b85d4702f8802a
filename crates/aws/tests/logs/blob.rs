//! Blobs in a bucket.

use aws_sdk_s3::primitives::ByteStream;
use runvoy_aws::S3BlobStore;
use runvoy_model::hex::hex;
use runvoy_ports::blob::BlobStore;
use runvoy_ports::store::StoreError;
use sha2::{Digest as _, Sha256};

use super::stage::installation;
use crate::emulator::Emulator;

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

async fn a_blob_comes_back_or_is_told_to_be_damaged(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let (store, bytes) = (S3BlobStore::new(&clients, &config), vec![7; 300_000]);
    let key = digest(&bytes);
    assert!(store.get(&key).await.expect("asked").is_none());
    for _ in 0..2 {
        store.put(&key, bytes.clone()).await.expect("kept");
        assert_eq!(S3BlobStore::new(&clients, &config).get(&key).await.expect("asked").as_ref(), Some(&bytes));
    }
    store.put(&digest(b""), Vec::new()).await.expect("kept");
    assert_eq!(store.get(&digest(b"")).await.expect("asked"), Some(Vec::new()));
    let name = format!("blobs/{key}");
    clients.s3.put_object().bucket(&config.bucket).key(name).body(ByteStream::from_static(b"other")).send().await.expect("damaged");
    assert!(matches!(store.get(&key).await, Err(StoreError::Damaged(_))));
    store.put(&key, bytes.clone()).await.expect("kept anew");
    assert_eq!(store.get(&key).await.expect("asked"), Some(bytes));
    for bad in ["../x", "", "AB", &"g".repeat(64)] {
        assert!(store.get(bad).await.is_err(), "{bad}");
    }
    assert!(store.put(&digest(b"a"), b"b".to_vec()).await.is_err(), "another's key");
}

#[tokio::test]
async fn a_blob_comes_back_or_is_told_to_be_damaged_on_ministack() {
    a_blob_comes_back_or_is_told_to_be_damaged(Emulator::ministack()).await;
}

#[tokio::test]
async fn a_blob_comes_back_or_is_told_to_be_damaged_on_moto() {
    a_blob_comes_back_or_is_told_to_be_damaged(Emulator::moto()).await;
}
