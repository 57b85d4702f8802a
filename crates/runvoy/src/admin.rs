//! The first admin of an empty store, and the file with their key.

use anyhow::{Context, Result};
use runvoy_model::id::StepId;
use runvoy_model::key::{key_hash, key_prefix, key_text};
use runvoy_model::role::Role;
use runvoy_model::step::Step;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::identity::{IdentityStore, NewUser};

use crate::data_dir::{DataDir, write_private};
use crate::keys::random;

/// Makes the admin if there is no user yet. The key file is written before the user: a crash between the two leaves
/// a file that the next start writes anew, never an admin whose key nobody has.
pub async fn ensure_admin(data: &DataDir, email: &str, identity: &dyn IdentityStore, clock: &dyn Clock, ids: &dyn IdSource) -> Result<()> {
    if !identity.users().await.context("cannot read the users")?.is_empty() {
        return Ok(());
    }
    let text = key_text(&random()?);
    write_private(&data.admin_key(), format!("{text}\n").as_bytes())?;
    let user = NewUser { email: email.to_owned(), role: Role::Admin, key_hash: key_hash(&text), key_prefix: key_prefix(&text) };
    let step = Step::system(StepId(ids.next_id()), clock.now(), "setup");
    identity.create_first_user(step, user).await.context("cannot make the first admin")?;
    tracing::info!(email, key_file = %data.admin_key().display(), "the first admin was made");
    Ok(())
}
