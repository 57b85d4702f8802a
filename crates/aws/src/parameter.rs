//! Small texts in the Parameter Store of SSM, under the path of one installation; and the server's own keys among them: made once, with an
//! empty store, and by one of several servers that start at once. A store without its keys is refused.

use std::fmt;
use std::time::Duration;

use aws_sdk_ssm::error::ProvideErrorMetadata;
use aws_sdk_ssm::types::ParameterType;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use runvoy_model::chain::AuditKey;

use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;
use crate::setup;
use crate::table::Table;

const SERVICE: &str = "SSM";
/// What another server has just made is read again so often until it shows.
const LOOKS: u32 = 50;
const LOOK_EVERY: Duration = Duration::from_millis(200);
const PAGE: i32 = 10;

/// The parameters of one installation: everything under `/{prefix}/keys/`. A clone shares the connections.
#[derive(Clone)]
pub(crate) struct Parameters {
    client: aws_sdk_ssm::Client,
    root: String,
}

/// A parameter as it is.
pub(crate) struct Parameter {
    /// The last part of its name.
    pub name: String,
    pub value: String,
    /// Rises with every change.
    pub version: i64,
    /// When it was last changed, by the clock of SSM, in milliseconds.
    pub modified_ms: i64,
}

impl Parameters {
    pub fn new(clients: &Clients, config: &Config) -> Self {
        Self { client: clients.ssm.clone(), root: format!("/{}/keys", config.prefix) }
    }

    /// The whole name of a parameter.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// One of them, if it is there.
    pub async fn get(&self, name: &str) -> Result<Option<Parameter>, Fault> {
        match self.client.get_parameter().name(self.path(name)).with_decryption(true).send().await {
            Ok(found) => Ok(found.parameter.map(parameter)),
            Err(error) if error.code() == Some("ParameterNotFound") => Ok(None),
            Err(error) => Err(Fault::of(SERVICE, error)),
        }
    }

    /// All of them below a path.
    pub async fn below(&self, path: &str) -> Result<Vec<Parameter>, Fault> {
        let (mut found, mut next) = (Vec::new(), None);
        loop {
            let request = self.client.get_parameters_by_path().path(self.path(path)).with_decryption(true).max_results(PAGE);
            let page = request.set_next_token(next).send().await.map_err(|error| Fault::of(SERVICE, error))?;
            found.extend(page.parameters.unwrap_or_default().into_iter().map(parameter));
            next = page.next_token;
            if next.is_none() {
                return Ok(found);
            }
        }
    }

    /// Makes one, encrypted; `false` where there is one already, which stays as it is.
    pub async fn put_new_secret(&self, name: &str, value: &str) -> Result<bool, Fault> {
        self.put_new(name, value, ParameterType::SecureString).await
    }

    /// Makes one that is no secret.
    pub async fn put_new_text(&self, name: &str, value: &str) -> Result<bool, Fault> {
        self.put_new(name, value, ParameterType::String).await
    }

    async fn put_new(&self, name: &str, value: &str, kind: ParameterType) -> Result<bool, Fault> {
        let request = self.client.put_parameter().name(self.path(name)).value(value).r#type(kind).overwrite(false);
        match request.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("ParameterAlreadyExists") => Ok(false),
            Err(error) => Err(Fault::of(SERVICE, error)),
        }
    }

    /// Changes one that is no secret; its new version.
    pub async fn put_text(&self, name: &str, value: &str) -> Result<i64, Fault> {
        let request = self.client.put_parameter().name(self.path(name)).value(value).r#type(ParameterType::String).overwrite(true);
        Ok(request.send().await.map_err(|error| Fault::of(SERVICE, error))?.version)
    }

    /// Removes one, if it is there.
    pub async fn delete(&self, name: &str) -> Result<(), Fault> {
        match self.client.delete_parameter().name(self.path(name)).send().await {
            Ok(_) => Ok(()),
            Err(error) if error.code() == Some("ParameterNotFound") => Ok(()),
            Err(error) => Err(Fault::of(SERVICE, error)),
        }
    }
}

fn parameter(found: aws_sdk_ssm::types::Parameter) -> Parameter {
    let name = found.name.unwrap_or_default();
    let modified_ms = found.last_modified_date.and_then(|at| at.to_millis().ok()).unwrap_or_default();
    Parameter {
        name: name.rsplit('/').next().unwrap_or_default().to_owned(),
        value: found.value.unwrap_or_default(),
        version: found.version,
        modified_ms,
    }
}

/// The keys of a store on AWS.
pub struct ServerKeys {
    /// Links events.
    pub audit: AuditKey,
    /// Signs tickets.
    pub signing: [u8; 32],
}

impl fmt::Debug for ServerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerKeys(…)")
    }
}

impl ServerKeys {
    /// Reads the keys, or makes them where the tables are empty.
    pub async fn load_or_make(clients: &Clients, config: &Config) -> Result<Self, Fault> {
        let parameters = Parameters::new(clients, config);
        Ok(Self {
            audit: AuditKey::new(key(clients, config, &parameters, "audit").await?),
            signing: key(clients, config, &parameters, "signing").await?,
        })
    }
}

async fn key(clients: &Clients, config: &Config, parameters: &Parameters, name: &str) -> Result<[u8; 32], Fault> {
    if let Some(found) = parameters.get(name).await? {
        return decoded(parameters, &found);
    }
    let is_empty = is_empty(clients, config).await?;
    if is_empty {
        let made = random()?;
        if parameters.put_new_secret(name, &encoded(&made)).await? {
            return Ok(made);
        }
    }
    // Another server made it since it was first looked for: then it shows soon. In a store that has data it is there or it is lost.
    for _ in 0..if is_empty { LOOKS } else { 1 } {
        if let Some(found) = parameters.get(name).await? {
            return decoded(parameters, &found);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let path = parameters.path(name);
    Err(Fault::Damaged(format!(
        "the tables {}-… hold data that was written with the key {path}, which is not in the Parameter Store of SSM: put it back",
        config.prefix
    )))
}

/// Whether nothing was ever stored.
async fn is_empty(clients: &Clients, config: &Config) -> Result<bool, Fault> {
    for table in [Table::Records, Table::ApiKeys, Table::Events, Table::Executions] {
        let request = clients.dynamo.scan().table_name(setup::name(config, table)).consistent_read(true).limit(1);
        let found = request.send().await.map_err(|error| Fault::of("DynamoDB", error))?;
        if found.count > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A key as the text of a parameter.
pub(crate) fn encoded(key: &[u8; 32]) -> String {
    BASE64_STANDARD.encode(key)
}

/// The key in a parameter.
pub(crate) fn decoded(parameters: &Parameters, found: &Parameter) -> Result<[u8; 32], Fault> {
    let bytes = BASE64_STANDARD.decode(found.value.trim()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| {
        Fault::Damaged(format!("the parameter {} below {} is not a key: it must be 32 bytes in base64", found.name, parameters.root))
    })
}

/// 256 bits that nobody can guess.
pub(crate) fn random() -> Result<[u8; 32], Fault> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Fault::Damaged(format!("the system gives no randomness: {error}")))?;
    Ok(bytes)
}
