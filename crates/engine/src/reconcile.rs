//! Looks for what should not be: executions that nobody runs, locks without a holder, places that nobody has, people without a way in, secrets that do not open. What
//! can be repaired without a person is; the rest is told.

use std::collections::BTreeSet;

use runvoy_model::change::Change;
use runvoy_model::command::Reap;
use runvoy_model::name::Name;
use runvoy_model::record::{Body, Kind, ONLY, Record};
use runvoy_model::role::{Action, Role};
use runvoy_model::user::User;
use runvoy_ports::store::StoreError;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

/// What came of a look at everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Open executions and held locks that were looked at.
    pub compute: u64,
    /// Secrets that were looked at.
    pub secrets: u64,
    /// People that were looked at.
    pub users: u64,
    /// Images, secrets, groups and playbooks whose owners were looked at.
    pub owned: u64,
    /// What was not as it should be.
    pub findings: Vec<Finding>,
}

/// Something that was not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub area: Area,
    /// What kind of thing: `execution`, `lock`, `user`, `secret`, …
    pub what: &'static str,
    /// Which.
    pub id: String,
    /// What is wrong, for a person.
    pub message: String,
    /// What was done about it.
    pub remedy: Remedy,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// Executions and locks.
    Compute,
    /// Secrets.
    Secrets,
    /// People and the list of admins.
    People,
    /// Things that belong to nobody.
    Owners,
}

/// What was done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// It is right now.
    Repaired,
    /// It harms nobody.
    Reported,
    /// Somebody has to.
    NeedsSomebody,
}

impl Engine {
    /// Looks at everything and repairs what it can.
    pub async fn reconcile(&self, caller: &Caller) -> Result<Reconciliation, EngineError> {
        caller.may(Action::Reconcile)?;
        let note = Change::NoteCall(caller.email.clone());
        self.ports.store.change(self.user_step(caller, "health.reconcile"), note, None).await?;
        let mut seen = Reconciliation::default();
        self.reconcile_leases(&mut seen).await?;
        self.reconcile_locks(&mut seen).await?;
        self.reconcile_permits(&mut seen).await?;
        self.expire_waits().await?;
        self.reconcile_people(&mut seen).await?;
        self.reconcile_secrets(&mut seen).await?;
        self.reconcile_images(&mut seen).await?;
        Ok(seen)
    }

    /// Leases of in-process workers that are gone: the start has reaped them, unless it could not.
    async fn reconcile_leases(&self, seen: &mut Reconciliation) -> Result<(), EngineError> {
        let now = self.now();
        for open in self.ports.store.open_leases().await? {
            seen.compute += 1;
            let (lease, id) = (&open.lease, open.execution);
            let runs = self.slots.get().is_some_and(|slots| slots.runs(id));
            let is_own = lease.in_process && lease.worker == self.worker.id;
            let orphaned = !runs && (self.is_predecessors(lease) || (is_own && lease.deadline < now));
            if !orphaned {
                continue;
            }
            let message = "no process runs it".to_owned();
            let reap = Reap {
                execution: id,
                lease: lease.id,
                extensions: lease.extensions,
                message: message.clone(),
                log_end: 0,
                with_server: false,
                cost_micro_usd: 0,
            };
            self.reap(reap).await?;
            seen.add(Area::Compute, "execution", id, message, Remedy::Repaired);
        }
        Ok(())
    }

    async fn reconcile_locks(&self, seen: &mut Reconciliation) -> Result<(), EngineError> {
        for line in self.ports.store.locks().await? {
            seen.compute += 1;
            let Some(holder) = &line.lock.holder else { continue };
            let execution = self.ports.store.get(holder.execution).await?;
            if execution.is_some_and(|execution| !execution.status.is_terminal()) {
                continue;
            }
            let name = line.lock.name.clone();
            // The lock may have changed hands since; then there was nothing wrong.
            if self.ports.store.free_lock(self.system_step("reconcile"), name.clone(), holder.execution).await?.is_none() {
                continue;
            }
            self.hub.work();
            let message = format!("its holder, execution {}, has finished", holder.execution);
            seen.add(Area::Compute, "lock", name, message, Remedy::Repaired);
        }
        Ok(())
    }

    /// Places of limited queues that are taken by what is with no worker: a store that was put back from an older copy may have some.
    async fn reconcile_permits(&self, seen: &mut Reconciliation) -> Result<(), EngineError> {
        for record in self.ports.records.records(Kind::Permits).await? {
            let Ok(queue) = Name::new(record.name.as_str()) else { continue };
            for permit in record.permits() {
                seen.compute += 1;
                let holder = self.ports.store.get(permit.execution).await?;
                if holder.is_some_and(|holder| holder.lease.is_some_and(|lease| lease.permit)) {
                    continue;
                }
                // It may have been given back since; then there was nothing wrong.
                if self.ports.store.free_permit(self.system_step("reconcile"), queue.clone(), permit.execution).await? {
                    self.hub.work();
                    let message = format!("one of its slots is taken by execution {}, which no worker runs", permit.execution);
                    seen.add(Area::Compute, "queue", &queue, message, Remedy::Repaired);
                }
            }
        }
        Ok(())
    }

    async fn reconcile_people(&self, seen: &mut Reconciliation) -> Result<(), EngineError> {
        let now = self.now();
        let records = self.ports.records.records(Kind::User).await?;
        let users: Vec<&User> = records.iter().filter_map(Record::user).collect();
        seen.users = users.len() as u64;
        let (gone, users): (Vec<&User>, Vec<&User>) = users.into_iter().partition(|user| !user.exists(now));
        for user in gone {
            let step = self.system_step("reconcile");
            match self.ports.store.change(step, Change::ForgetUnclaimed(user.email.clone()), None).await {
                Ok(_) => {}
                // They were invited again, or forgotten, in the meantime.
                Err(StoreError::Refused(_)) => continue,
                Err(error) => return Err(error.into()),
            }
            seen.add(Area::People, "user", &user.email, "the invitation was never answered".into(), Remedy::Repaired);
        }
        let listed: BTreeSet<String> = match self.ports.records.record(Kind::Admins, ONLY).await?.and_then(|record| record.body) {
            Some(Body::Admins(admins)) => admins.into_iter().collect(),
            _ => BTreeSet::new(),
        };
        let is_admin = |user: &&&User| user.role == Role::Admin && user.has_key(now);
        if !users.iter().any(|user| is_admin(&user)) {
            let message = "no admin has a key that works: run `runvoy admin recover` on the server's own machine".to_owned();
            seen.add(Area::People, "admins", ONLY, message, Remedy::NeedsSomebody);
        }
        for user in users.iter().filter(is_admin).filter(|user| !listed.contains(&user.email)) {
            seen.add(Area::People, "user", &user.email, "is an admin, but not on the list of admins".into(), Remedy::NeedsSomebody);
        }
        for email in listed.iter().filter(|email| !users.iter().any(|user| user.email == **email && user.role == Role::Admin)) {
            seen.add(Area::People, "user", email, "is on the list of admins, but is not an admin".into(), Remedy::NeedsSomebody);
        }
        Ok(())
    }

    async fn reconcile_secrets(&self, seen: &mut Reconciliation) -> Result<(), EngineError> {
        for secret in self.ports.records.records(Kind::Secret).await?.iter().filter_map(Record::secret) {
            seen.secrets += 1;
            seen.owned += 1;
            if let Err(error) = self.open_secret(secret).await {
                let message = format!("it cannot be decrypted ({error}): restore its encryption key, or set its value again");
                seen.add(Area::Secrets, "secret", &secret.name, message, Remedy::NeedsSomebody);
            }
            self.reconcile_owner("secret", secret.name.as_str(), &secret.created_by, seen).await?;
        }
        Ok(())
    }

    async fn reconcile_images(&self, seen: &mut Reconciliation) -> Result<(), EngineError> {
        let images = self.ports.records.records(Kind::Image).await?;
        for image in images.iter().filter_map(Record::image) {
            seen.owned += 1;
            self.reconcile_owner("image", &image.image_id, &image.created_by, seen).await?;
        }
        if let Some(default) = self.default_image().await?
            && !images.iter().any(|image| image.name == default)
        {
            let message = "the default image is not registered: set another one".to_owned();
            seen.add(Area::Owners, "image", &default, message, Remedy::NeedsSomebody);
        }
        Ok(())
    }

    async fn reconcile_owner(&self, what: &'static str, id: &str, owner: &str, seen: &mut Reconciliation) -> Result<(), EngineError> {
        if self.standing_of(owner).await?.is_none() {
            seen.add(Area::Owners, what, id, format!("its owner {owner} is no longer a user"), Remedy::Reported);
        }
        Ok(())
    }
}

impl Reconciliation {
    fn add(&mut self, area: Area, what: &'static str, id: impl ToString, message: String, remedy: Remedy) {
        self.findings.push(Finding { area, what, id: id.to_string(), message, remedy });
    }
}
