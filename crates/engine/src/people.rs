//! People as admins manage them: who there is, who is invited, what they are, whose rights end and what becomes of their work.

use runvoy_model::change::{Change, Invitation, InvitedBy, NewUser, Renewal};
use runvoy_model::command::Refusal;
use runvoy_model::hex::hex;
use runvoy_model::id::ExecutionId;
use runvoy_model::job::JobStatus;
use runvoy_model::key::{check_new_key, key_hash, key_text};
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::{Action, Role};
use runvoy_model::status::Status;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_model::user::{CLAIM_LIVES_MS, MAX_CLAIM_LIVES_MS, User, email as checked_email};
use runvoy_ports::job::JobQuery;
use runvoy_ports::store::{ListQuery, StoreError};
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::claim::{ClaimedKey, claim_token};
use crate::error::EngineError;
use crate::execution::KILL;
use crate::key::new_key;
use crate::repeat::submit_key;
use crate::token::Token;

/// How many open executions are looked at in one page.
const PAGE: usize = 200;
/// How many keys are looked up at once.
const KEYS_AT_ONCE: usize = 500;

/// Somebody, with what is known beside their record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The record.
    pub user: User,
    /// The groups they are in.
    pub groups: Vec<String>,
    /// When each of their keys was last used, in the order of the keys.
    pub key_uses: Vec<Option<UnixMs>>,
}

impl Account {
    /// When any key of theirs was last used.
    pub fn last_used(&self) -> Option<UnixMs> {
        self.key_uses.iter().flatten().max().copied()
    }
}

/// Somebody to invite.
#[derive(Clone, PartialEq, Eq)]
pub struct InviteRequest {
    /// Who.
    pub email: String,
    /// What they will be: the word.
    pub role: String,
    /// A key that they have already; else they claim one.
    pub api_key: Option<String>,
    /// They are invited although this server then runs no more commands.
    pub confirm: bool,
    /// Seconds for which they can claim it; 15 minutes where that is not said.
    pub expires_in: Option<u64>,
    /// The client's own key for the request.
    pub idempotency_key: Option<String>,
}

/// Somebody who was invited.
#[derive(Clone, PartialEq, Eq)]
pub struct Invited {
    /// Who.
    pub account: Account,
    /// What they claim their key with; absent where they brought one.
    pub token: Option<String>,
}

/// Somebody whose rights ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedUser {
    /// Who.
    pub email: String,
    /// How many of their executions go on.
    pub open: u64,
    /// How many of their executions are being ended.
    pub killed: u64,
    /// How many of their jobs go on, and start tasks in their name.
    pub open_jobs: u64,
    /// How many of their jobs were cancelled.
    pub cancelled_jobs: u64,
}

/// What becomes of an execution of somebody whose rights ended.
enum Work {
    GoesOn,
    IsKilled,
    HasEnded,
}

/// What a key is called that brought an admin back in.
const RECOVERED: &str = "recovered";

impl Engine {
    /// Everybody there is, by e-mail.
    pub async fn users(&self, caller: &Caller) -> Result<Vec<Account>, EngineError> {
        caller.may(Action::ManageUsers)?;
        let now = self.now();
        let records = self.all(Kind::User).await?;
        let users: Vec<User> = records.iter().filter_map(Record::user).filter(|user| user.exists(now)).cloned().collect();
        self.accounts(users).await
    }

    /// Invites somebody: they claim their key with the token in the answer, unless they bring one.
    pub async fn invite(&self, caller: &Caller, request: &InviteRequest) -> Result<Invited, EngineError> {
        caller.may(Action::ManageUsers)?;
        let email = checked_email(&request.email).map_err(|error| EngineError::invalid("email", error.to_string()))?;
        let role = role("role", &request.role)?;
        let brought = request.api_key.as_deref().filter(|key| !key.is_empty());
        if let Some(key) = brought {
            check_new_key(key)
                .map_err(|error| EngineError::invalid("api_key", format!("{error}; leave it out to send an invitation instead")))?;
            if Token::looks_like(key) {
                return Err(EngineError::invalid("api_key", "looks like a signed token: use a random key"));
            }
        }
        let lives_ms = claim_lives_ms(request.expires_in)?;
        if brought.is_some() && request.expires_in.is_some() {
            return Err(EngineError::invalid("expires_in", "is for an invitation: leave it out together with api_key"));
        }
        let key_hash_of = brought.map(|key| hex(&key_hash(key)));
        let mut asked = json!({"email": email, "role": role, "key": key_hash_of});
        if let Some(seconds) = request.expires_in {
            asked["expiresIn"] = seconds.into();
        }
        let key = submit_key(caller, request.idempotency_key.as_deref(), "users.create", &asked)?;
        let (by, token) = match brought {
            Some(text) => (InvitedBy::Key(new_key(text, None, None)), None),
            None => {
                let token = claim_token(&self.ports.ids.random());
                (InvitedBy::Token(key_hash(&token), self.latest_now().plus_ms(lives_ms)), Some(token))
            }
        };
        self.refuse_second_user(request.confirm).await?;
        let change = Change::InviteUser(Invitation { email: email.clone(), role, by });
        let (record, repeated) = self.ports.store.change(self.user_step(caller, "users.create"), change, key).await?;
        if repeated && token.is_some() {
            return Err(EngineError::ShownOnce(format!("the invitation of {email}")));
        }
        let user = record.user().cloned().ok_or_else(|| no_user(&email))?;
        Ok(Invited { account: self.account(user).await?, token })
    }

    /// Gives an invitation that nobody has answered another token and another end. The token before it works no longer; the role stays.
    pub async fn renew_invitation(
        &self,
        caller: &Caller,
        email: &str,
        expires_in: Option<u64>,
        idempotency_key: Option<&str>,
    ) -> Result<Invited, EngineError> {
        const ACTION: &str = "users.renew";
        caller.may(Action::ManageUsers)?;
        let email = checked_email(email).map_err(|_| no_user(email))?;
        let lives_ms = claim_lives_ms(expires_in)?;
        let key = submit_key(caller, idempotency_key, ACTION, &json!({"email": email, "expiresIn": expires_in}))?;
        let token = claim_token(&self.ports.ids.random());
        let renewal = Renewal { email: email.clone(), token_hash: key_hash(&token), expires_at: self.latest_now().plus_ms(lives_ms) };
        let changed = self.ports.store.change(self.user_step(caller, ACTION), Change::RenewInvitation(renewal), key).await;
        let (record, repeated) = changed.map_err(|error| match error {
            StoreError::Refused(Refusal::Claimed) => EngineError::conflict(
                format!("{email} has already used the invitation"),
                "nothing was changed; create another key with `runvoy keys create --user EMAIL`",
            ),
            error => error.into(),
        })?;
        if repeated {
            return Err(EngineError::ShownOnce(format!("the invitation of {email}")));
        }
        let user = record.user().cloned().ok_or_else(|| no_user(&email))?;
        Ok(Invited { account: self.account(user).await?, token: Some(token) })
    }

    /// Ends a user's rights, and says what becomes of their open executions: they go on, or are killed one by one. Asking again changes nothing, and
    /// with `kill` ends what went on the first time.
    pub async fn revoke_user(&self, caller: &Caller, email: &str, kill: bool) -> Result<RevokedUser, EngineError> {
        caller.may(Action::ManageUsers)?;
        let email = checked_email(email).map_err(|error| EngineError::invalid("email", error.to_string()))?;
        self.ports.store.change(self.user_step(caller, "users.revoke"), Change::RevokeUser(email.clone()), None).await?;
        // Jobs first: a task that is killed must not make room for the next.
        let (open_jobs, cancelled_jobs) = self.end_jobs(caller, &email, kill).await?;
        let open = self.open_executions(&email).await?;
        let (mut going_on, mut killed) = (0, 0);
        for id in open {
            match self.end_work(caller, id, kill).await {
                Work::GoesOn => going_on += 1,
                Work::IsKilled => killed += 1,
                Work::HasEnded => {}
            }
        }
        Ok(RevokedUser { email, open: going_on, killed, open_jobs, cancelled_jobs })
    }

    /// How many jobs of somebody go on, and how many were cancelled.
    async fn end_jobs(&self, caller: &Caller, email: &str, kill: bool) -> Result<(u64, u64), EngineError> {
        let (mut going_on, mut cancelled) = (0, 0);
        let mut query = JobQuery { owner: Some(email.to_owned()), statuses: vec![JobStatus::Running], limit: PAGE, ..JobQuery::default() };
        loop {
            let page = self.ports.jobs.jobs(query.clone()).await?;
            for job in &page {
                let step = Step { authority: None, ..self.user_step(caller, "jobs.cancel") };
                match if kill { self.ports.store.cancel_job(step, job.id).await.map(Some) } else { Ok(None) } {
                    Ok(None) => going_on += 1,
                    Ok(Some(_)) => cancelled += 1,
                    Err(StoreError::Refused(_)) => {}
                    Err(error) => {
                        tracing::warn!(job = %job.id, %error, "a job of a revoked user was not cancelled");
                        going_on += 1;
                    }
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => query.after = Some(last.id),
                _ => break,
            }
        }
        self.moved();
        Ok((going_on, cancelled))
    }

    async fn end_work(&self, caller: &Caller, id: ExecutionId, kill: bool) -> Work {
        if !kill {
            return Work::GoesOn;
        }
        // Whoever revokes themselves may still end what they left: that was asked for while they could.
        let step = Step { authority: None, ..self.user_step(caller, KILL) };
        match self.kill_in(step, caller, &id.to_string(), false).await {
            Ok(_) => Work::IsKilled,
            Err(EngineError::Ended(_) | EngineError::NotFound { .. }) => Work::HasEnded,
            // The rights have ended, and that is what is answered; this one still runs, and is counted as such.
            Err(error) => {
                tracing::warn!(execution = %id, %error, "an execution of a revoked user was not killed");
                Work::GoesOn
            }
        }
    }

    /// The way back in for whoever owns the machine: somebody is an admin afterwards, with one more key. Without an e-mail it is the first of the
    /// admins. The edge lets nobody call this but the server's own user, over its socket.
    pub async fn recover_admin(&self, caller: &Caller, email: Option<&str>) -> Result<ClaimedKey, EngineError> {
        caller.may(Action::ManageUsers)?;
        let email = checked_email(email.unwrap_or(&caller.email)).map_err(|error| EngineError::invalid("email", error.to_string()))?;
        let api_key = key_text(&self.ports.ids.random());
        let key = new_key(&api_key, Some(RECOVERED.to_owned()), None);
        let change = Change::RecoverAdmin(NewUser { email: email.clone(), role: Role::Admin, key });
        self.ports.store.change(self.user_step(caller, "admin.recover"), change, None).await?;
        Ok(ClaimedKey { email, api_key })
    }

    /// Makes somebody something else.
    pub async fn set_role(&self, caller: &Caller, email: &str, word: &str) -> Result<User, EngineError> {
        caller.may(Action::ManageUsers)?;
        let email = checked_email(email).map_err(|_| no_user(email))?;
        let change = Change::SetRole(email.clone(), role("role", word)?);
        let (record, _) = self.ports.store.change(self.user_step(caller, "users.role"), change, None).await?;
        record.user().cloned().ok_or_else(|| no_user(&email))
    }

    /// Keeps that somebody called for what leaves no other mark.
    pub async fn note_call(&self, caller: &Caller, action: &str) -> Result<(), EngineError> {
        let change = Change::NoteCall(caller.email.clone());
        self.ports.store.change(self.user_step(caller, action), change, None).await?;
        Ok(())
    }

    /// The executions that somebody submitted and that have not ended.
    async fn open_executions(&self, email: &str) -> Result<Vec<ExecutionId>, EngineError> {
        let statuses: Vec<Status> = Status::ALL.into_iter().filter(|status| !status.is_terminal()).collect();
        let mut query = ListQuery { statuses, created_by: Some(email.to_owned()), limit: PAGE, ..ListQuery::default() };
        let mut open = Vec::new();
        loop {
            let page = self.ports.store.list(query.clone()).await?;
            open.extend(page.iter().map(|execution| execution.id));
            match page.last() {
                Some(last) if page.len() == PAGE => query.after = Some(last.id),
                _ => return Ok(open),
            }
        }
    }

    /// A user with what is known beside their record.
    pub(crate) async fn account(&self, user: User) -> Result<Account, EngineError> {
        let mut accounts = self.accounts(vec![user]).await?;
        Ok(accounts.pop().expect("one account for each user"))
    }

    async fn accounts(&self, users: Vec<User>) -> Result<Vec<Account>, EngineError> {
        let hashes: Vec<[u8; 32]> = users.iter().flat_map(|user| user.keys.iter().map(|key| key.hash)).collect();
        let mut uses = Vec::with_capacity(hashes.len());
        for some in hashes.chunks(KEYS_AT_ONCE) {
            uses.extend(self.ports.records.key_uses(some).await?);
        }
        let mut uses = uses.into_iter();
        let mut accounts = Vec::with_capacity(users.len());
        for user in users {
            // Uses are kept to the minute, which may have begun before the key was made.
            let key_uses = user.keys.iter().zip(uses.by_ref()).map(|(key, used)| used.map(|at| at.max(key.created_at))).collect();
            let groups = self.groups_of(&user.email).await?;
            accounts.push(Account { user, groups, key_uses });
        }
        Ok(accounts)
    }
}

/// For how long an invitation can be answered.
fn claim_lives_ms(expires_in: Option<u64>) -> Result<i64, EngineError> {
    let Some(seconds) = expires_in else { return Ok(CLAIM_LIVES_MS) };
    let ms = i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(1_000));
    ms.filter(|ms| (1..=MAX_CLAIM_LIVES_MS).contains(ms))
        .ok_or_else(|| EngineError::invalid("expires_in", format!("must be from 1 to {} s, or left out", MAX_CLAIM_LIVES_MS / 1_000)))
}

/// No such user, or not one that the caller may hear of: both look the same.
pub(crate) fn no_user(email: &str) -> EngineError {
    EngineError::NotFound { what: format!("user {}", email.escape_default()) }
}

fn role(field: &str, word: &str) -> Result<Role, EngineError> {
    Role::parse(word).ok_or_else(|| {
        let words: Vec<&str> = Role::OF_PEOPLE.iter().map(|role| role.as_str()).collect();
        EngineError::invalid(field, format!("must be {}", runvoy_model::phrase::one_of(&words)))
    })
}
