//! The break-glass: whoever owns the machine makes somebody an admin with a new key. Through the socket of the server that runs, as its own user;
//! else in the store itself, with the data directory taken. Either way it is one step that the audit trail keeps.

use std::io::Write;
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result, bail};
use runvoy_cli::global::Format;
use runvoy_client::{Client, Endpoint, Options};
use runvoy_model::change::{Change, NewKey, NewUser};
use runvoy_model::id::StepId;
use runvoy_model::key::{key_hash, key_prefix, key_text};
use runvoy_model::record::{Body, Kind, ONLY};
use runvoy_model::role::Role;
use runvoy_model::step::{Actor, Audit, Step};
use runvoy_model::user;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::record::RecordStore;
use runvoy_ports::store::ExecutionStore;
use runvoy_sqlite::SqliteStore;
use serde_json::json;

use crate::clock::{SystemClock, UuidSource};
use crate::data_check::{check_all, own_uid};
use crate::data_dir::{DataDir, write_private_for};
use crate::keys::{audit_key, random};

/// Who is made an admin where nobody is named and there is none.
const DEFAULT_EMAIL: &str = "admin@localhost";

/// Makes somebody an admin and writes their new key to the data directory. Without an e-mail it is the first of the admins.
pub async fn recover(data: &DataDir, email: Option<&str>, format: Format) -> Result<()> {
    // A server whose store is elsewhere is asked through its socket; without one there is nothing here to recover.
    if !data.is_locked() && !data.store().exists() {
        bail!(
            "there is no store in {}: `runvoy serve` creates one, with its first admin; a server that keeps its store elsewhere must run",
            data.path().display()
        );
    }
    let email = email.map(user::email).transpose().context("--email")?;
    let (email, api_key) = if data.is_locked() {
        through_the_server(data, email).await?
    } else {
        in_the_store(data, email).await.context("cannot recover")?
    };
    // The step comes first: a file that cannot be written costs one more recovery, a key that opens nothing would cost trust in the file.
    let directory = std::fs::metadata(data.path())?;
    // Root writes it for the server's user.
    let owner = (own_uid() == 0).then(|| (directory.uid(), directory.gid()));
    write_private_for(&data.admin_key(), format!("{api_key}\n").as_bytes(), owner)
        .context("the admin has a new key, which could not be written: repeat this")?;
    let key_file = data.admin_key();
    let told = json!({"email": email, "key_file": key_file});
    let mut stdout = std::io::stdout();
    match format {
        Format::Json => writeln!(stdout, "{told}")?,
        Format::Yaml => write!(stdout, "{}", serde_saphyr::to_string(&told)?)?,
        Format::Name => writeln!(stdout, "{}", key_file.display())?,
        Format::Table => {
            eprintln!("{email} is an admin. The new key is in:");
            writeln!(stdout, "{}", key_file.display())?;
        }
    }
    Ok(())
}

async fn through_the_server(data: &DataDir, email: Option<String>) -> Result<(String, String)> {
    let client = Client::new(Options::new(Endpoint::Unix(data.socket())))?;
    let recovered = client.recover_admin(email).await;
    let recovered = recovered.with_context(|| format!("the server of {} did not do it", data.path().display()))?;
    Ok((recovered.email, recovered.api_key.into_exposed()))
}

async fn in_the_store(data: &DataDir, email: Option<String>) -> Result<(String, String)> {
    // What this user writes beside a store of another, the server's user could not open.
    check_all(data)?;
    let (_lock, own) = (data.lock()?, own_uid());
    let store = SqliteStore::open(data.store(), runvoy_sqlite::Options::new(audit_key(data)?)).context("cannot open the store")?;
    let recovered = change(&store, email, own).await;
    store.close().await.context("the store was not closed")?;
    recovered
}

async fn change(store: &SqliteStore, email: Option<String>, own: u32) -> Result<(String, String)> {
    let email = match email {
        Some(email) => email,
        None => first_admin(store).await?.unwrap_or_else(|| DEFAULT_EMAIL.to_owned()),
    };
    let api_key = key_text(&random()?);
    let key = NewKey { hash: key_hash(&api_key), prefix: key_prefix(&api_key), name: Some("recovered".into()), expires_at: None };
    let id = StepId(UuidSource.next_id());
    let step = Step {
        id,
        at: SystemClock::new().now(),
        actor: Actor::System("recovery"),
        request_id: id.to_string(),
        audit: Some(Audit { action: "admin.recover".into(), from: format!("unix:uid={own}"), ..Audit::default() }),
        authority: None,
    };
    store.change(step, Change::RecoverAdmin(NewUser { email: email.clone(), role: Role::Admin, key }), None).await?;
    Ok((email, api_key))
}

async fn first_admin(store: &SqliteStore) -> Result<Option<String>> {
    let record = store.record(Kind::Admins, ONLY).await?;
    Ok(match record.and_then(|record| record.body) {
        Some(Body::Admins(admins)) => admins.into_iter().next(),
        _ => None,
    })
}
