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
use runvoy_ports::store::StoreError;

use crate::backend::Backend;
use crate::data_dir::{DataDir, write_private};
use crate::keys::random;

/// Makes the admin if there is no user yet. The key file is written before the user: a crash between the two leaves
/// a file that the next start writes anew, never an admin whose key nobody has. Of several servers that start on one store at once, one makes
/// the admin, and only that one keeps its file. Gives whose key is in the file, where this call made it.
pub async fn ensure_admin(data: &DataDir, email: &str, backend: &Backend, clock: &dyn Clock, ids: &dyn IdSource) -> Result<Option<String>> {
    if backend.records.record(Kind::Admins, ONLY).await.context("cannot read the users")?.is_some() {
        return Ok(None);
    }
    let email = user::email(email).context("--admin-email")?;
    let text = key_text(&random()?);
    write_private(&data.admin_key(), format!("{text}\n").as_bytes())?;
    let key = NewKey { hash: key_hash(&text), prefix: key_prefix(&text), name: None, expires_at: None };
    let change = Change::CreateFirstAdmin(NewUser { email: email.clone(), role: Role::Admin, key });
    let step = Step::system(StepId(ids.next_id()), clock.now(), "setup");
    match backend.store.change(step, change, None).await {
        Ok(_) => {
            tracing::info!(email, key_file = %data.admin_key().display(), "the first admin was created");
            Ok(Some(email))
        }
        Err(StoreError::Refused(Refusal::Taken(..))) => {
            // A key that opens nothing must not lie about.
            std::fs::remove_file(data.admin_key()).with_context(|| format!("cannot remove {}", data.admin_key().display()))?;
            tracing::info!("another server created the first admin: the key is in its data directory");
            Ok(None)
        }
        Err(error) => Err(error).context("cannot create the first admin"),
    }
}

/// Keeps the file with the first admin's key right when a key has ended: the command line of this machine goes on with the key that took its place.
/// Without one the file goes, because a key that opens nothing must not lie about. What became of the file; nothing where it holds another key.
pub fn key_ended(data: &DataDir, prefix: &str, instead: Option<&str>) -> Option<String> {
    let path = data.admin_key();
    let kept = std::fs::read_to_string(&path).ok()?;
    if key_prefix(kept.trim()) != prefix {
        return None;
    }
    let (done, said) = match instead {
        Some(key) => (write_private(&path, format!("{key}\n").as_bytes()), "has the new key too"),
        None => (std::fs::remove_file(&path).map_err(Into::into), "was removed: its key is no longer valid"),
    };
    match done {
        Ok(()) => {
            tracing::info!(key_file = %path.display(), "the file {said}");
            Some(format!("admin.key in the server's data directory {said}"))
        }
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), key_file = %path.display(), "the file still has a key that is no longer valid");
            Some("admin.key in the server's data directory could not be written, and still has the old key".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::embedded;
    use crate::clock::{SystemClock, UuidSource};
    use crate::open_files::OpenFiles;
    use crate::settings::Settings;

    #[test]
    fn the_key_file_follows_its_own_key_and_no_other() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = DataDir::new(dir.path().join("data"));
        data.create().expect("a directory");
        assert_eq!(key_ended(&data, "rv_12345678", None), None, "there is no file");
        let (old, new) = (key_text(&[1; 32]), key_text(&[2; 32]));
        write_private(&data.admin_key(), format!("{old}\n").as_bytes()).expect("written");
        let kept = || std::fs::read_to_string(data.admin_key()).expect("a file");
        assert_eq!(key_ended(&data, &key_prefix(&new), None), None, "another key has ended");
        assert!(key_ended(&data, &key_prefix(&old), Some(&new)).is_some_and(|said| said.contains("has the new key")));
        let mode = std::fs::metadata(data.admin_key()).expect("a file").permissions().mode();
        assert_eq!((kept(), mode & 0o777), (format!("{new}\n"), 0o600));
        assert!(key_ended(&data, &key_prefix(&new), None).is_some_and(|said| said.contains("was removed")));
        assert!(!data.admin_key().exists());
    }

    #[tokio::test]
    async fn of_two_servers_that_start_at_once_only_the_one_that_made_the_admin_keeps_a_key() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (one, two) = (DataDir::new(dir.path().join("one")), DataDir::new(dir.path().join("two")));
        one.create().and(two.create()).expect("directories");
        let backend = embedded::open(&one, &Settings::of_defaults(), OpenFiles::raise()).await.expect("a store");
        let (clock, ids) = (SystemClock::new(), UuidSource);
        // Both have seen that there is nobody before either writes.
        let (first, second) = tokio::join!(
            ensure_admin(&one, "ana@localhost", &backend, &clock, &ids),
            ensure_admin(&two, "bo@localhost", &backend, &clock, &ids)
        );
        let told = [first.expect("it goes on"), second.expect("it goes on")];
        assert_eq!(told.iter().flatten().count(), 1, "one says where its key is");
        let users = backend.records.records(Kind::User).await.expect("users");
        let [made] = users.as_slice() else { panic!("one admin, not {users:?}") };
        let (keeps, other) = if made.name == "ana@localhost" { (&one, &two) } else { (&two, &one) };
        assert!(keeps.admin_key().exists() && !other.admin_key().exists());
    }
}
