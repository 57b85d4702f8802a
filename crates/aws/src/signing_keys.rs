//! The keys that sign task tokens in the Parameter Store of SSM: `/{prefix}/keys/signing/{made at, in ms}`. None is ever removed or changed: of several servers
//! that make one of the same moment, the first makes it and the others read it.

use async_trait::async_trait;
use runvoy_model::signing::SigningKey;
use runvoy_model::time::UnixMs;
use runvoy_ports::signing::{SigningKeys, SigningKeysError};

use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;
use crate::parameter::{Parameter, Parameters, decoded, encoded, random};

const DIRECTORY: &str = "signing";
/// What another server has just made shows after so many looks.
const LOOKS: u32 = 10;

/// The ring of an installation.
pub struct SsmSigningKeys {
    parameters: Parameters,
}

impl SsmSigningKeys {
    /// The ring of this installation; it is made with its first key.
    pub fn new(clients: &Clients, config: &Config) -> Self {
        Self { parameters: Parameters::new(clients, config) }
    }

    async fn read(&self) -> Result<Vec<SigningKey>, Fault> {
        let found = self.parameters.below(DIRECTORY).await?;
        found.iter().filter_map(|one| Some((moment(one)?, one))).map(|(at, one)| self.key(at, one)).collect()
    }

    async fn put(&self, at: UnixMs) -> Result<SigningKey, Fault> {
        let (name, bytes) = (format!("{DIRECTORY}/{}", at.0), random()?);
        if self.parameters.put_new_secret(&name, &encoded(&bytes)).await? {
            return Ok(SigningKey::new(at, bytes));
        }
        for round in 0..LOOKS {
            if let Some(found) = self.parameters.get(&name).await? {
                return self.key(at, &found);
            }
            crate::dynamo::pause(round).await;
        }
        Err(Fault::Damaged(format!("the parameter {} was created by another process and cannot be read yet", self.parameters.path(&name))))
    }

    fn key(&self, at: UnixMs, found: &Parameter) -> Result<SigningKey, Fault> {
        Ok(SigningKey::new(at, decoded(&self.parameters, found)?))
    }
}

#[async_trait]
impl SigningKeys for SsmSigningKeys {
    async fn all(&self) -> Result<Vec<SigningKey>, SigningKeysError> {
        self.read().await.map_err(|fault| SigningKeysError(Box::new(fault)))
    }

    async fn make(&self, at: UnixMs) -> Result<SigningKey, SigningKeysError> {
        self.put(at).await.map_err(|fault| SigningKeysError(Box::new(fault)))
    }
}

/// The moment in the name of a key. What is called otherwise is none.
fn moment(found: &Parameter) -> Option<UnixMs> {
    let made_at: i64 = found.name.parse().ok()?;
    (made_at.to_string() == found.name).then_some(UnixMs(made_at))
}
