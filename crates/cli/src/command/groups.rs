//! `groups`: names for several users, for rules and secrets to speak of. The server takes a group as a whole, so that adding and removing
//! members reads it first.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_client::Client;
use runvoy_wire::PutGroupRequest;

use crate::complete;
use crate::failure::Failure;
use crate::session::Session;
use crate::table::{Cell, list};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy groups create ops ana@example.com bo@example.com
  runvoy groups add ops cy@example.com
  runvoy groups remove ops bo@example.com
  runvoy groups list
  runvoy groups delete ops --yes";

/// Arguments of `groups`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct GroupsArgs {
    #[command(subcommand)]
    command: GroupsCommand,
}

/// What to do with groups.
#[derive(Debug, Clone, Subcommand)]
enum GroupsCommand {
    /// List the groups
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy groups list --json")]
    List,
    /// Create a group
    #[command(before_help = "Examples:\n  runvoy groups create ops ana@example.com")]
    Create {
        /// Name of the group
        name: String,
        /// E-mail addresses of its members
        #[arg(value_name = "EMAIL", add = ArgValueCompleter::new(complete::users))]
        members: Vec<String>,
    },
    /// Add members to a group
    #[command(before_help = "Examples:\n  runvoy groups add ops bo@example.com")]
    Add(ChangeArgs),
    /// Remove members from a group
    #[command(before_help = "Examples:\n  runvoy groups remove ops bo@example.com")]
    Remove(ChangeArgs),
    /// Delete a group
    #[command(before_help = "Examples:\n  runvoy groups delete ops --yes")]
    Delete {
        /// Name of the group
        #[arg(add = ArgValueCompleter::new(complete::groups))]
        name: String,
    },
}

/// Whom to add or remove.
#[derive(Debug, Clone, Args)]
struct ChangeArgs {
    /// Name of the group
    #[arg(add = ArgValueCompleter::new(complete::groups))]
    name: String,
    /// E-mail addresses of the members
    #[arg(required = true, value_name = "EMAIL", add = ArgValueCompleter::new(complete::users))]
    members: Vec<String>,
}

impl GroupsArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            GroupsCommand::List => false,
            GroupsCommand::Create { .. } | GroupsCommand::Add(_) | GroupsCommand::Remove(_) | GroupsCommand::Delete { .. } => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            GroupsCommand::List => show_all(session).await,
            GroupsCommand::Create { name, members } => {
                let client = session.connect().await?;
                if members_of(&client, &name).await?.is_some() {
                    return Err(
                        Failure::other(format!("group {name} already exists")).next(format!("add members: runvoy groups add {name} EMAIL"))
                    );
                }
                put(session, &client, name, members).await
            }
            GroupsCommand::Add(ChangeArgs { name, members: added }) => {
                let client = session.connect().await?;
                let mut members = existing(&client, &name).await?;
                members.extend(added);
                put(session, &client, name, members).await
            }
            GroupsCommand::Remove(ChangeArgs { name, members: removed }) => {
                let client = session.connect().await?;
                let mut members = existing(&client, &name).await?;
                if let Some(stranger) = removed.iter().find(|email| !members.contains(email)) {
                    return Err(Failure::other(format!("{stranger} is not in group {name}")).next("list the groups: runvoy groups list"));
                }
                members.retain(|email| !removed.contains(email));
                put(session, &client, name, members).await
            }
            GroupsCommand::Delete { name } => {
                session.confirm(&format!("Delete group {name}, which rules and secrets may name"))?;
                let answer = session.connect().await?.remove_group(&name).await?;
                session.report_on(&answer, ("group", &answer.name), &answer.message)
            }
        }
    }
}

async fn members_of(client: &Client, name: &str) -> Result<Option<Vec<String>>, Failure> {
    Ok(client.groups().await?.into_iter().find(|group| group.name == name).map(|group| group.members))
}

async fn existing(client: &Client, name: &str) -> Result<Vec<String>, Failure> {
    let missing = || Failure::other(format!("no group {name}")).next(format!("create it: runvoy groups create {name} EMAIL"));
    members_of(client, name).await?.ok_or_else(missing)
}

async fn put(session: &Session, client: &Client, name: String, mut members: Vec<String>) -> Result<u8, Failure> {
    members.sort_unstable();
    members.dedup();
    let answer = client.put_group(&PutGroupRequest { name, members }).await?;
    session.report_on(&answer, ("group", &answer.name), &answer.message)
}

async fn show_all(session: &Session) -> Result<u8, Failure> {
    let groups = session.connect().await?.groups().await?;
    let table = || {
        let row = |group: &runvoy_wire::Group| vec![Cell::from(&group.name), group.members.join(" ").into()];
        list(&["GROUP", "MEMBERS"], &groups.iter().map(row).collect::<Vec<_>>(), session.terminal)
    };
    session.show(&groups, || groups.iter().map(|group| group.name.clone()).collect(), table)?;
    if groups.is_empty() {
        session.note(Tone::Dim, "No groups.");
    }
    Ok(0)
}
