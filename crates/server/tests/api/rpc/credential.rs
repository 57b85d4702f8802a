//! Public keys of workers.

use runvoy_model::role::Role;
use runvoy_rpc::connectrpc::client::HttpClient;
use runvoy_rpc::connectrpc::{ErrorCode, Protocol};
use runvoy_rpc::principal::v1::{CredentialServiceClient, ImportCredentialRequest, ListCredentialsRequest, RevokeCredentialRequest};

use super::{over_both, refusal, spoken};
use crate::app::{Served, TestApp, key_of};

fn credentials(served: &Served, protocol: Protocol, role: Role) -> CredentialServiceClient<HttpClient> {
    let (transport, config) = spoken(served, protocol, &key_of(role));
    CredentialServiceClient::new(transport, config)
}

/// A public key, as those who have one give it.
fn blob() -> String {
    let key = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n-----END PUBLIC KEY-----\n";
    serde_json::json!({"name": "ci", "public_key": key}).to_string()
}

#[tokio::test]
async fn a_public_key_is_registered_listed_and_revoked() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = credentials(&served, protocol, Role::Admin);
        let import = |blob: String| client.import_credential(ImportCredentialRequest { blob, ..ImportCredentialRequest::default() });
        let made = import(blob()).await.expect("it is taken").into_owned();
        assert_eq!((made.name.as_str(), made.roles.as_slice(), made.org_id.as_str()), ("ci", &["worker".to_owned()][..], "default"));
        let (code, message) = refusal(import("nonsense!".into()).await);
        assert!(code == ErrorCode::InvalidArgument && message.starts_with("blob: "), "{message}");

        let list = async |principal_type: &str| {
            let request = ListCredentialsRequest { principal_type: principal_type.into(), ..ListCredentialsRequest::default() };
            client.list_credentials(request).await.expect("a list").into_owned().credentials
        };
        let listed = list("").await;
        assert_eq!((listed.len(), &listed[0].principal_id, &listed[0].fingerprint), (1, &made.principal_id, &made.fingerprint));
        assert_eq!((list("worker").await.len(), list("person").await.len()), (1, 0));

        let revoke = |id: &str| RevokeCredentialRequest { principal_id: id.into(), ..RevokeCredentialRequest::default() };
        client.revoke_credential(revoke(&made.principal_id)).await.expect("it was there");
        assert!(list("").await.is_empty());
        assert_eq!(refusal(client.revoke_credential(revoke("x")).await).0, ErrorCode::InvalidArgument);
        assert_eq!(refusal(client.revoke_credential(revoke("019200000000700080000000000000ff")).await).0, ErrorCode::NotFound);
    })
    .await;
}

#[tokio::test]
async fn only_an_admin_registers_keys() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = credentials(&served, Protocol::Grpc, Role::Operator);
    assert_eq!(refusal(client.list_credentials(ListCredentialsRequest::default()).await).0, ErrorCode::PermissionDenied);
}
