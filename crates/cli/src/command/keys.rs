//! `keys`: the API keys of a user. Rotating the key that is in use makes the new one, saves it, and only then ends the old one with it:
//! whatever breaks off in between, one of the two still works and is in the user file.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_client::Client;
use runvoy_wire::{CreateKeyRequest, CreateKeyResponse, Key};

use crate::complete;
use crate::config_file::UserFile;
use crate::duration::{Human, Seconds};
use crate::failure::Failure;
use crate::private_file::PrivateFile;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::settings::Origin;
use crate::table::{Cell, list};
use crate::terminal::Tone;
use crate::times::Times;

const EXAMPLES: &str = "\
Examples:
  runvoy keys list
  runvoy keys create --name ci --expires 90d   # prints the key, once
  runvoy keys rotate                           # replace and save the key in use
  runvoy keys revoke rv_1a2b3c --user ana@example.com";

/// What every key of a server's making begins with.
const MARK: &str = "rv_";
/// So many characters of a key after its mark can tell it from others.
const FEWEST_CHARS: usize = 4;
/// So much of a key may be shown.
const MOST_SHOWN_CHARS: usize = 11;

/// Arguments of `keys`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
    /// Owner of the keys; admins only [default: you]
    #[arg(short, long, global = true, value_name = "EMAIL", add = ArgValueCompleter::new(complete::users))]
    user: Option<String>,
}

/// What to do with keys.
#[derive(Debug, Clone, Subcommand)]
enum KeysCommand {
    /// List the keys
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy keys list\n  runvoy keys list --user ana@example.com --json")]
    List,
    /// Create a key, and print it once
    #[command(before_help = "Examples:\n  runvoy keys create --name laptop\n  runvoy keys create --name ci --expires 90d")]
    Create(NewKeyArgs),
    /// Revoke a key
    #[command(before_help = "Examples:\n  runvoy keys revoke rv_1a2b3c\n  runvoy keys revoke rv_1a2b --user ana@example.com --yes")]
    Revoke {
        /// First characters of the key, as `keys list` shows them
        #[arg(add = ArgValueCompleter::new(complete::keys))]
        prefix: String,
    },
    /// Replace a key with a new one
    #[command(before_help = "Examples:\n  runvoy keys rotate             # the key in use; saves the new one\n  \
        runvoy keys rotate rv_1a2b3c   # another key; prints the new one once")]
    #[command(mut_arg("expires", |arg| arg.help("Lifetime, such as 90d [default: that of the old key]")))]
    Rotate {
        /// First characters of the key [default: the key in use]
        #[arg(add = ArgValueCompleter::new(complete::keys))]
        prefix: Option<String>,
        #[command(flatten)]
        new: NewKeyArgs,
    },
}

/// What a new key is to be.
#[derive(Debug, Clone, Default, Args)]
struct NewKeyArgs {
    /// Name of the key
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Lifetime, such as 90d [default: no limit]
    #[arg(long, value_name = "DURATION")]
    expires: Option<Seconds>,
}

impl KeysArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            KeysCommand::List => false,
            KeysCommand::Create(_) | KeysCommand::Revoke { .. } | KeysCommand::Rotate { .. } => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let email = match self.user {
            Some(email) => email,
            None => client.whoami().await?.email,
        };
        match self.command {
            KeysCommand::List => show_all(session, &client, &email).await,
            KeysCommand::Create(new) => {
                let made = client.create_key(&email, &new.request(None)).await?;
                hand_over(session, &email, &made)
            }
            KeysCommand::Revoke { prefix } => {
                let keys = client.keys(&email).await?;
                let prefix = &find(&keys, &prefix, &email)?.prefix;
                session.confirm(&format!("Revoke key {prefix} of {email}"))?;
                let answer = client.revoke_key(&email, prefix).await?;
                session.report_on(&answer, ("key", prefix), &answer.message)
            }
            KeysCommand::Rotate { prefix, new } => Rotation { session, client: &client, email: &email }.run(prefix, new).await,
        }
    }
}

impl NewKeyArgs {
    /// The request; what is not said is as it was with the old key.
    fn request(self, old: Option<&Key>) -> CreateKeyRequest {
        let lifetime = old.and_then(|old| Some(old.expires_at?.ms_since(old.created_at) / 1_000));
        CreateKeyRequest {
            name: self.name.or_else(|| old.and_then(|old| old.name.clone())),
            expires_in: self.expires.map(|expires| expires.0).or(lifetime),
        }
    }
}

/// The one key that works and begins with what was typed, or is what was typed.
fn find<'a>(keys: &'a [Key], typed: &str, email: &str) -> Result<&'a Key, Failure> {
    let wanted = if typed.starts_with(MARK) { typed.to_owned() } else { format!("{MARK}{typed}") };
    // A key that was brought from elsewhere has no mark.
    let wanted_of = |key: &Key| if key.prefix.starts_with(MARK) { wanted.as_str() } else { typed };
    if let Some(exact) = keys.iter().find(|key| key.prefix == wanted_of(key) && !key.revoked) {
        return Ok(exact);
    }
    // A whole key is longer than what is listed of it, and is not repeated.
    let fits = |key: &&Key| key.prefix.starts_with(wanted_of(key)) || wanted_of(key).starts_with(&key.prefix);
    let (ended, working): (Vec<&Key>, Vec<&Key>) = keys.iter().filter(fits).partition(|key| key.revoked);
    let list = format!("runvoy keys list --user {email}");
    let shown: String = wanted.chars().take(MOST_SHOWN_CHARS).collect();
    match (working.as_slice(), ended.as_slice()) {
        ([], [ended]) => Err(Failure::other(format!("key {} of {email} is already revoked", ended.prefix))),
        ([], _) => Err(Failure::other(format!("{email} has no key {shown}")).next(format!("list the keys: {list}"))),
        _ if wanted.chars().count() < MARK.len() + FEWEST_CHARS => {
            Err(Failure::usage(format!("`{typed}` is too short for a key")).why("give at least four characters after rv_"))
        }
        ([key], _) => Ok(key),
        (several, _) => {
            let choice = |key: &&Key| format!("{}  {}", key.prefix, key.name.as_deref().unwrap_or("-"));
            Err(Failure::other(format!("`{typed}` matches several keys of {email}"))
                .choices(several.iter().map(choice).collect())
                .next("use more characters"))
        }
    }
}

/// Prints a key that is given once.
fn hand_over(session: &Session, email: &str, made: &CreateKeyResponse) -> Result<u8, Failure> {
    let key = made.api_key.expose();
    session.show(made, || vec![key.to_owned()], || format!("{key}\n"))?;
    session.note(
        Tone::Plain,
        &one_line(&format!("Created key {}… of {email}. It cannot be shown again: keep it in a safe place.", made.key.prefix)),
    );
    Ok(0)
}

/// Where a key is kept, ready for another one.
enum Place {
    UserFile { file: UserFile, profile: Option<String> },
    KeyFile { file: PrivateFile, path: PathBuf },
}

impl Place {
    /// Puts the key there; gives the file.
    fn keep(self, key: &str) -> Result<PathBuf, Failure> {
        match self {
            Self::UserFile { mut file, profile } => {
                file.set(profile.as_deref(), "api_key", Some(key))?;
                file.save()?;
                Ok(file.path)
            }
            Self::KeyFile { file, path } => match file.write(&format!("{key}\n")) {
                Ok(()) => Ok(path),
                Err(error) => Err(Failure::other(format!("cannot write {}", path.display())).why(error.to_string())),
            },
        }
    }
}

struct Rotation<'a> {
    session: &'a Session,
    client: &'a Client,
    email: &'a str,
}

impl Rotation<'_> {
    async fn run(&self, prefix: Option<String>, new: NewKeyArgs) -> Result<u8, Failure> {
        let whoami = self.client.whoami().await?;
        let own = whoami.key_prefix.filter(|_| whoami.email == self.email);
        let Some(wanted) = prefix.or_else(|| own.clone()) else {
            return Err(Failure::usage("no key was given, and none of this user is in use here").next("choose one: runvoy keys list"));
        };
        let keys = self.client.keys(self.email).await?;
        let old = find(&keys, &wanted, self.email)?;
        self.session.confirm_at_terminal(&format!("Replace key {} of {}", old.prefix, self.email))?;
        let request = new.request(Some(old));
        if own.as_ref() == Some(&old.prefix) { self.own(&old.prefix, &request).await } else { self.other(&old.prefix, &request).await }
    }

    /// A key that is used elsewhere: the server exchanges it in one step, and the caller gets the new one.
    async fn other(&self, prefix: &str, request: &CreateKeyRequest) -> Result<u8, Failure> {
        let made = self.client.rotate_key(self.email, prefix, request).await?;
        self.tell_of_file(made.key_file.as_deref());
        self.renew_admin_key(prefix, made.api_key.expose());
        hand_over(self.session, self.email, &made)
    }

    /// The server says what became of a key file of its own.
    fn tell_of_file(&self, key_file: Option<&str>) {
        if let Some(said) = key_file {
            self.session.note(Tone::Plain, &one_line(said));
        }
    }

    /// The server of this machine put the key of its first admin into a file: where that is the old key, it gets the new one.
    fn renew_admin_key(&self, old: &str, new: &str) {
        let Some(path) = self.session.settings.data_dir.value.as_ref().map(|data_dir| data_dir.join("admin.key")) else { return };
        if !std::fs::read_to_string(&path).is_ok_and(|kept| kept.starts_with(old)) {
            return;
        }
        let renewed = PrivateFile::prepare(&path).and_then(|file| file.write(&format!("{new}\n")));
        let said = match renewed {
            Ok(()) => (Tone::Plain, format!("Saved the new key in {}, too.", path.display())),
            Err(error) => (Tone::Warning, format!("{} still has the old key: {error}", path.display())),
        };
        self.session.note(said.0, &one_line(&said.1));
    }

    /// Where the key in use is kept, and the new one is put.
    fn place(&self) -> Result<Place, Failure> {
        let session = self.session;
        match (&session.settings.api_key.origin, session.key_file()) {
            (Origin::User { profile, .. }, _) => {
                let file = session.user_file.clone();
                // Whether the file can be written is found out before there is a key to lose.
                file.save()?;
                Ok(Place::UserFile { file, profile: profile.clone() })
            }
            (_, Some(path)) => {
                let cannot = |error: std::io::Error| Failure::other(format!("cannot write {}", path.display())).why(error.to_string());
                Ok(Place::KeyFile { file: PrivateFile::prepare(path).map_err(cannot)?, path: path.to_owned() })
            }
            (origin, None) => Err(Failure::usage("the key in use is not stored in a file, so a new one cannot replace it")
                .why(format!("it comes from: {origin}"))
                .next("create a new one, store it there, then revoke the old one: runvoy keys create, runvoy keys revoke")),
        }
    }

    /// The key in use. It must be in a file, for nowhere else could the new one be put.
    async fn own(&self, old: &str, request: &CreateKeyRequest) -> Result<u8, Failure> {
        let (session, place) = (self.session, self.place()?);
        let made = self.client.create_key(self.email, request).await?;
        let path = match place.keep(made.api_key.expose()) {
            Ok(path) => path,
            Err(failure) => {
                // The new key is nowhere, so it is of no use; the old one is unchanged.
                let _ = self.client.revoke_key(self.email, &made.key.prefix).await;
                return Err(failure.why("the key was not rotated"));
            }
        };
        self.renew_admin_key(old, made.api_key.expose());
        let ended = self.client.with_key(made.api_key.expose())?.revoke_replaced_key(self.email, old).await;
        let kept = format!("Saved the new key {} in {}", made.key.prefix, path.display());
        match ended {
            Ok(ended) => {
                self.tell_of_file(ended.key_file.as_deref());
                session.report(&made.key, &made.key.prefix, &format!("{kept}, and revoked the old key {old}."))
            }
            Err(error) => {
                session.note(Tone::Warning, &one_line(&kept));
                Err(Failure::from(error).next(format!("the old key still works; revoke it: runvoy keys revoke {old}")))
            }
        }
    }
}

async fn show_all(session: &Session, client: &Client, email: &str) -> Result<u8, Failure> {
    let keys = client.keys(email).await?;
    let table = || {
        let rows: Vec<Vec<Cell>> = keys.iter().map(|key| row(key, session.times())).collect();
        list(&["PREFIX", "STATUS", "CREATED", "LAST USED", "NAME"], &rows, session.terminal)
    };
    session.show(&keys, || keys.iter().map(|key| key.prefix.clone()).collect(), table)?;
    if keys.is_empty() {
        session.note(Tone::Dim, &one_line(&format!("{email} has no keys.")));
    }
    Ok(0)
}

fn row(key: &Key, times: Times) -> Vec<Cell> {
    let now = times.now;
    let state = match key.expires_at {
        _ if key.revoked => Cell::new("revoked", Tone::Bad),
        Some(at) if at <= now => Cell::new("expired", Tone::Bad),
        Some(at) => Cell::new(format!("expires in {}", Human::from_ms(at.ms_since(now))), Tone::Warning),
        None => Cell::new("active", Tone::Good),
    };
    // The server keeps the minute of the last use, which began before a key that was made in it.
    let used = key.last_used.map_or_else(|| "-".to_owned(), |at| times.show(at.max(key.created_at)));
    let name = key.name.clone().unwrap_or_else(|| "-".to_owned());
    vec![Cell::whole(&key.prefix), state, times.show(key.created_at).into(), used.into(), name.into()]
}

#[cfg(test)]
mod tests {
    use runvoy_wire::Rfc3339;

    use super::*;

    fn key(expires_at: Option<i64>) -> Key {
        let name = Some("ci".to_owned());
        Key {
            prefix: "rv_a".into(),
            name,
            created_at: Rfc3339(1_000),
            expires_at: expires_at.map(Rfc3339),
            last_used: None,
            revoked: false,
        }
    }

    #[test]
    fn no_key_was_used_before_it_was_made() {
        let rows = [row(&Key { last_used: Some(Rfc3339(0)), ..key(None) }, Times { now: Rfc3339(2_000), is_compact: false })];
        let shown = crate::table::render(&[], &rows, None, false);
        assert_eq!(shown.matches("1970-01-01T00:00:01.000Z").count(), 2, "{shown}");
    }

    #[test]
    fn a_key_is_found_by_its_unique_beginning() {
        let named = |prefix: &str, revoked| Key { prefix: prefix.into(), revoked, ..key(None) };
        let keys = [
            named("rv_abcdefgh", false),
            named("rv_abcdxxxx", false),
            named("rv_abzzzzzz", true),
            named("rv_qrstuvwx", false),
            named("correct-", false),
        ];
        let found = |typed: &str| match find(&keys, typed, "ana@x") {
            Ok(key) => key.prefix.clone(),
            Err(failure) => failure.text(false),
        };
        for (typed, prefix) in [
            ("rv_abcde", "rv_abcdefgh"),
            ("qrst", "rv_qrstuvwx"),
            ("rv_qrstuvwx-and-the-rest", "rv_qrstuvwx"),
            ("rv_abcdxxxx", "rv_abcdxxxx"),
            ("corr", "correct-"),
            ("correct-horse-battery", "correct-"),
        ] {
            assert_eq!(found(typed), prefix, "{typed}");
        }
        assert!(found("rv_qrs").contains("too short"));
        assert!(found("rv_abzz").contains("rv_abzzzzzz of ana@x is already revoked"));
        let unknown = found("rv_nonesuch-and-the-rest");
        assert!(unknown.contains("has no key rv_nonesuch\n") && unknown.contains("runvoy keys list"), "{unknown}");
        let several = found("rv_abcd");
        assert!(several.contains("rv_abcdefgh") && several.contains("rv_abcdxxxx") && !several.contains("rv_abzz"), "{several}");
    }

    #[test]
    fn a_new_key_is_as_the_old_one_unless_told() {
        let (lasting, ending) = (key(None), key(Some(91_000)));
        let request = |new: NewKeyArgs, old| new.request(old);
        let untold = NewKeyArgs::default();
        assert_eq!(request(untold.clone(), None), CreateKeyRequest::default());
        assert_eq!(request(untold.clone(), Some(&lasting)), CreateKeyRequest { name: Some("ci".into()), expires_in: None });
        assert_eq!(request(untold, Some(&ending)), CreateKeyRequest { name: Some("ci".into()), expires_in: Some(90) });
        let told = NewKeyArgs { name: Some("x".into()), expires: Some(Seconds(5)) };
        assert_eq!(request(told, Some(&ending)), CreateKeyRequest { name: Some("x".into()), expires_in: Some(5) });
    }
}
