//! Calls about users and their keys, and the claim that gives a new user theirs.

use http::Method;
use runvoy_wire::{
    ClaimResponse, CreateKeyRequest, CreateKeyResponse, CreateUserRequest, CreateUserResponse, Key, KeysResponse, RenewInvitationRequest,
    RevokeKeyResponse, RevokeUserRequest, RevokeUserResponse, SetRoleRequest, SetRoleResponse, User, UsersResponse,
};

use crate::call::{Call, fresh_id};
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

fn keys(email: &str, rest: &[&str]) -> Target {
    Target::new(&[&["users", email, "keys"], rest].concat())
}

impl Client {
    /// Turns a one-time token into a key. The client needs no key of its own for it.
    pub async fn claim(&self, token: &str) -> Result<ClaimResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["claim", token]))).await
    }

    /// Every user, by e-mail; only for admins.
    pub async fn users(&self) -> Result<Vec<User>, ClientError> {
        Ok(self.fetch::<UsersResponse>(&Call::get(Target::new(&["users"]))).await?.users)
    }

    /// Invites a user. The token in the answer is given once.
    pub async fn create_user(&self, request: &CreateUserRequest) -> Result<CreateUserResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["users", "create"])).json(request).keyed(fresh_id())).await
    }

    /// Gives an invitation that nobody has answered another token, once, and another end.
    pub async fn renew_invitation(&self, email: &str, request: &RenewInvitationRequest) -> Result<CreateUserResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["users", email, "renew"])).json(request).keyed(fresh_id())).await
    }

    /// Ends the rights of a user, and their open executions where asked to.
    pub async fn revoke_user(&self, email: &str, kill: bool) -> Result<RevokeUserResponse, ClientError> {
        let request = RevokeUserRequest { email: email.to_owned(), kill };
        self.fetch(&Call::new(Method::POST, Target::new(&["users", "revoke"])).json(&request)).await
    }

    /// Makes a user something else: `admin`, `operator`, `developer` or `viewer`.
    pub async fn set_role(&self, email: &str, role: &str) -> Result<SetRoleResponse, ClientError> {
        let request = SetRoleRequest { role: role.to_owned() };
        self.fetch(&Call::new(Method::POST, Target::new(&["users", email, "role"])).json(&request)).await
    }

    /// The keys of a user, oldest first; for admins and the user.
    pub async fn keys(&self, email: &str) -> Result<Vec<Key>, ClientError> {
        Ok(self.fetch::<KeysResponse>(&Call::get(keys(email, &[]))).await?.keys)
    }

    /// Makes one more key. The key in the answer is given once.
    pub async fn create_key(&self, email: &str, request: &CreateKeyRequest) -> Result<CreateKeyResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, keys(email, &[])).json(request).keyed(fresh_id())).await
    }

    /// Makes a key that takes the place of another one, which ends in the same step. Whoever rotates the key that they call with is safer
    /// with [`Client::create_key`], [`Client::with_key`] and [`Client::revoke_replaced_key`]: there a lost answer costs no access.
    pub async fn rotate_key(&self, email: &str, prefix: &str, request: &CreateKeyRequest) -> Result<CreateKeyResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, keys(email, &[prefix, "rotate"])).json(request).keyed(fresh_id())).await
    }

    /// Ends one key whose place the key of this client takes.
    pub async fn revoke_replaced_key(&self, email: &str, prefix: &str) -> Result<RevokeKeyResponse, ClientError> {
        self.fetch(&Call::new(Method::DELETE, keys(email, &[prefix]).with("replaced", 1))).await
    }

    /// Ends one key.
    pub async fn revoke_key(&self, email: &str, prefix: &str) -> Result<RevokeKeyResponse, ClientError> {
        self.fetch(&Call::new(Method::DELETE, keys(email, &[prefix]))).await
    }
}
