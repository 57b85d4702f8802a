//! The first admin of an empty store, and the file with their key.

use anyhow::{Context, Result};
use runvoy_model::change::{Change, NewKey, NewUser};
use runvoy_model::command::Refusal;
use runvoy_model::id::StepId;
use runvoy_model::key::{key_hash, key_prefix, key_text};
use runvoy_model::record::{Kind, ONLY};
use runvoy_model::role::Role;
use runvoy_model::step::Step;
use runvoy_model::user;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::record::RecordStore;
use runvoy_ports::store::{ExecutionStore, StoreError};

use crate::data_dir::{DataDir, write_private};
use crate::keys::random;

/// Makes the admin if there is no user yet. The key file is written before the user: a crash between the two leaves
/// a file that the next start writes anew, never an admin whose key nobody has.
pub async fn ensure_admin<S>(data: &DataDir, email: &str, store: &S, clock: &dyn Clock, ids: &dyn IdSource) -> Result<()>
where
    S: ExecutionStore + RecordStore,
{
    if store.record(Kind::Admins, ONLY).await.context("cannot read the users")?.is_some() {
        return Ok(());
    }
    let email = user::email(email).context("--admin-email")?;
    let text = key_text(&random()?);
    write_private(&data.admin_key(), format!("{text}\n").as_bytes())?;
    let key = NewKey { hash: key_hash(&text), prefix: key_prefix(&text), name: None, expires_at: None };
    let change = Change::CreateFirstAdmin(NewUser { email: email.clone(), role: Role::Admin, key });
    let step = Step::system(StepId(ids.next_id()), clock.now(), "setup");
    match store.change(step, change, None).await {
        Ok(_) | Err(StoreError::Refused(Refusal::Taken(..))) => {}
        Err(error) => return Err(error).context("cannot make the first admin"),
    }
    tracing::info!(email, key_file = %data.admin_key().display(), "the first admin was made");
    Ok(())
}
