//! `users`: inviting, listing, changing and revoking users.

use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_client::Client;
use runvoy_wire::{Code, CreateUserRequest, CreateUserResponse, ProbeStatus, RenewInvitationRequest, Rfc3339, User};

use crate::complete;
use crate::duration::Seconds;
use crate::failure::Failure;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::table::{Cell, list};
use crate::terminal::Tone;
use crate::times::Times;

const EXAMPLES: &str = "\
Examples:
  runvoy users create ana@example.com --role developer
  runvoy users renew ana@example.com           # invite again: a new token
  runvoy users role ana@example.com operator
  runvoy users revoke ana@example.com --kill   # and kill their executions";

/// How long the server may take to say what a second user changes.
const REMARK_LIMIT: Duration = Duration::from_secs(2);

/// What a user may be.
pub(crate) const ROLES: [&str; 4] = ["admin", "operator", "developer", "viewer"];

/// Arguments of `users`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct UsersArgs {
    #[command(subcommand)]
    command: UsersCommand,
}

/// What to do with users.
#[derive(Debug, Clone, Subcommand)]
enum UsersCommand {
    /// Invite a user, and print the invitation token
    #[command(
        before_help = "Examples:\n  runvoy users create ana@example.com --role developer\n  runvoy users create ana@example.com --role viewer --expires 2d"
    )]
    Create {
        /// E-mail of the user
        email: String,
        /// Role of the user
        #[arg(long, value_parser = ROLES)]
        role: String,
        /// Lifetime of the token, at most 7d [default: 15m]
        #[arg(long, value_name = "DURATION")]
        expires: Option<Seconds>,
    },
    /// Replace the token of an invitation
    #[command(before_help = "Examples:\n  runvoy users renew ana@example.com\n  runvoy users renew ana@example.com --expires 2d")]
    Renew {
        /// E-mail of the user
        #[arg(add = ArgValueCompleter::new(complete::users))]
        email: String,
        /// Lifetime of the token, at most 7d [default: 15m]
        #[arg(long, value_name = "DURATION")]
        expires: Option<Seconds>,
    },
    /// List the users
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy users list\n  runvoy users list --json")]
    List,
    /// Revoke a user: all keys stop working
    #[command(before_help = "Examples:\n  runvoy users revoke ana@example.com\n  runvoy users revoke ana@example.com --kill --yes")]
    Revoke {
        /// E-mail of the user
        #[arg(add = ArgValueCompleter::new(complete::users))]
        email: String,
        /// Kill the user's executions, too
        #[arg(long)]
        kill: bool,
    },
    /// Change the role of a user
    #[command(before_help = "Examples:\n  runvoy users role ana@example.com operator")]
    Role {
        /// E-mail of the user
        #[arg(add = ArgValueCompleter::new(complete::users))]
        email: String,
        /// New role
        #[arg(value_parser = ROLES)]
        role: String,
    },
}

impl UsersArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            UsersCommand::List => false,
            UsersCommand::Create { .. } | UsersCommand::Renew { .. } | UsersCommand::Revoke { .. } | UsersCommand::Role { .. } => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            UsersCommand::Create { email, role, expires } => create(session, email, role, expires).await,
            UsersCommand::Renew { email, expires } => {
                let client = session.connect().await?;
                let request = RenewInvitationRequest { expires_in: expires.map(|expires| expires.0) };
                let made = client.renew_invitation(&email, &request).await?;
                hand_over(session, &client, &made)?;
                Ok(0)
            }
            UsersCommand::List => show_all(session).await,
            UsersCommand::Revoke { email, kill } => {
                let fate = if kill { "and kill their executions" } else { "and leave their executions running" };
                session.confirm(&format!("Revoke {email} {fate}"))?;
                let answer = session.connect().await?.revoke_user(&email, kill).await?;
                session.report(&answer, &answer.email, &answer.message)
            }
            UsersCommand::Role { email, role } => {
                let answer = session.connect().await?.set_role(&email, &role).await?;
                session.report(&answer, &answer.email, &answer.message)
            }
        }
    }
}

async fn create(session: &Session, email: String, role: String, expires: Option<Seconds>) -> Result<u8, Failure> {
    let client = session.connect().await?;
    let expires_in = expires.map(|expires| expires.0);
    let mut request = CreateUserRequest { email, role, api_key: None, confirm: session.global.yes, expires_in };
    let made = match client.create_user(&request).await {
        Err(error) if error.asks_to_confirm() => {
            session.confirm_refused(&error, &format!("Invite {} anyway: this server then refuses to run commands", request.email))?;
            request.confirm = true;
            client.create_user(&request).await
        }
        made => made,
    };
    let made = made.map_err(|error| exists(error.into(), &request))?;
    hand_over(session, &client, &made)?;
    if session.global.quiet == 0 {
        note_shared_uid(session, &client).await;
    }
    Ok(0)
}

/// Shows the token of an invitation.
fn hand_over(session: &Session, client: &Client, made: &CreateUserResponse) -> Result<(), Failure> {
    let token = made.claim_token.expose();
    // The token is shown only now: with `-o name` it is the one word to print.
    session.show(made, || vec![token.to_owned()], || format!("{token}\n"))?;
    // Where stdout goes elsewhere the token is not written a second time: stderr may be kept by others.
    let shown = if session.terminal.stdout_tty { token } else { "TOKEN" };
    let until = made.user.claim_expires_at.map(|at| format!(", until {at}")).unwrap_or_default();
    let text = format!("Invited {} ({}). The token works once{until}.", made.user.email, made.user.role);
    session.note(Tone::Plain, &format!("{}\n  the user runs: runvoy claim {shown} --endpoint {}", one_line(&text), client.endpoint()));
    Ok(())
}

/// Says what a second user changes, where the server has something to say about it: else the next command is refused out of the blue.
async fn note_shared_uid(session: &Session, client: &Client) {
    // The user was made, whatever comes of this question.
    let Ok(Ok(found)) = tokio::time::timeout(REMARK_LIMIT, client.doctor()).await else { return };
    if let Some(probe) = found.probes.iter().find(|probe| probe.name == "uid" && probe.status != ProbeStatus::Ok) {
        session.note(Tone::Warning, &one_line(&format!("This server now has several users: {}", probe.detail)));
    }
}

/// What can be done for a user that exists already.
fn exists(failure: Failure, request: &CreateUserRequest) -> Failure {
    let CreateUserRequest { email, role, .. } = request;
    if !failure.has_code(Code::Conflict) {
        return failure;
    }
    failure
        .next(format!("create another key: runvoy keys create --user {email}"))
        .next(format!("or replace an unclaimed invitation: runvoy users renew {email}"))
        .next(format!("or start over: runvoy users revoke {email}, then runvoy users create {email} --role {role}"))
}

async fn show_all(session: &Session) -> Result<u8, Failure> {
    let users = session.connect().await?.users().await?;
    let table = || {
        let rows: Vec<Vec<Cell>> = users.iter().map(|user| row(user, session.times())).collect();
        list(&["EMAIL", "ROLE", "STATUS", "KEYS", "LAST USED", "GROUPS"], &rows, session.terminal)
    };
    session.show(&users, || users.iter().map(|user| user.email.clone()).collect(), table)?;
    Ok(0)
}

fn row(user: &User, times: Times) -> Vec<Cell> {
    let now = times.now;
    let time = |at: Option<Rfc3339>| at.map_or_else(|| "-".to_owned(), |at| times.show(at));
    let state = match user.claim_expires_at {
        _ if user.revoked => Cell::new("revoked", Tone::Bad),
        Some(until) if until <= now => Cell::new("invitation expired", Tone::Bad),
        Some(_) => Cell::new("invited", Tone::Warning),
        None => Cell::new("active", Tone::Good),
    };
    let works = |key: &&runvoy_wire::Key| !user.revoked && !key.revoked && key.expires_at.is_none_or(|at| at > now);
    let keys = user.keys.iter().filter(works).count();
    let groups = if user.groups.is_empty() { "-".to_owned() } else { user.groups.join(" ") };
    vec![(&user.email).into(), (&user.role).into(), state, keys.to_string().into(), time(user.last_used).into(), groups.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_state_is_told() {
        let text = r#"[{"email":"ana@example.com","role":"admin","created_at":"2026-01-03T14:22:19Z","last_used":"2026-01-04T10:00:00Z",
            "keys":[{"prefix":"rv_a","created_at":"2026-01-03T14:22:19Z"},{"prefix":"rv_b","created_at":"2026-01-03T14:22:19Z","revoked":true},
            {"prefix":"rv_c","created_at":"2026-01-03T14:22:19Z","expires_at":"2026-01-03T14:30:00Z"}],
            "groups":["ops","dev"]},
            {"email":"bo@example.com","role":"viewer","created_at":"2026-01-03T14:22:19Z","claim_expires_at":"2026-01-03T14:37:19Z"},
            {"email":"cy@example.com","role":"viewer","created_at":"2026-01-03T14:22:19Z","revoked":true,
            "keys":[{"prefix":"rv_d","created_at":"2026-01-03T14:22:19Z"}]},
            {"email":"di@example.com","role":"viewer","created_at":"2026-01-03T14:22:19Z","claim_expires_at":"2026-01-03T14:30:00Z"}]"#;
        let users: Vec<User> = serde_json::from_str(text).expect("the contract's fields");
        let times = Times { now: "2026-01-03T14:35:00Z".parse().expect("a time"), is_compact: false };
        let rows: Vec<Vec<Cell>> = users.iter().map(|user| row(user, times)).collect();
        insta::assert_snapshot!(crate::table::render(&["EMAIL", "ROLE", "STATUS", "KEYS", "LAST USED", "GROUPS"], &rows, None, false), @r"
        EMAIL            ROLE    STATUS              KEYS  LAST USED                 GROUPS
        ana@example.com  admin   active              1     2026-01-04T10:00:00.000Z  ops dev
        bo@example.com   viewer  invited             0     -                         -
        cy@example.com   viewer  revoked             0     -                         -
        di@example.com   viewer  invitation expired  0     -                         -
        ");
    }
}
