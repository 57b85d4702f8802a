//! Calls about locks.

use http::Method;
use runvoy_wire::Lock;

use crate::call::Call;
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

impl Client {
    /// Every lock that is held.
    pub async fn locks(&self) -> Result<Vec<Lock>, ClientError> {
        Ok(self.fetch::<Option<Vec<Lock>>>(&Call::get(Target::new(&["locks"]))).await?.unwrap_or_default())
    }

    /// Takes a lock away from its holder.
    pub async fn release_lock(&self, name: &str) -> Result<(), ClientError> {
        self.answer(&Call::new(Method::DELETE, Target::new(&["locks", name]))).await.map(drop)
    }
}
