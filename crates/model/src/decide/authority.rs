//! Whether whoever asked for a step still may, at the moment of the step. Who calls was told when their request came in; that may be a while ago, and a
//! revocation in between must count. What a command needs is said here for all of them, so that no caller can name too little.

use crate::change::Change;
use crate::command::{Command, Refusal};
use crate::record::{Kind, Record};
use crate::role::{Action, Reach, reach};
use crate::step::{Authority, Step};
use crate::view::View;

/// Why the step is not its user's to take any more, if so. Steps of workers and of the platform itself are nobody's.
pub(super) fn lost<V: View>(view: &mut V, step: &Step, command: &Command) -> Result<Option<Refusal>, V::Error> {
    let (Some(authority), Some(action)) = (&step.authority, needed(command)) else { return Ok(None) };
    let record = view.record(Kind::User, &authority.email)?;
    Ok(judge(record.as_ref(), step, authority, action))
}

fn judge(record: Option<&Record>, step: &Step, authority: &Authority, action: Action) -> Option<Refusal> {
    let works = |hash: &[u8; 32], user: &crate::user::User| user.key(hash).is_some_and(|key| key.works(step.at));
    let user = record.and_then(Record::user).filter(|user| user.revoked_at.is_none());
    let Some(user) = user.filter(|user| authority.key_hash.as_ref().is_none_or(|hash| works(hash, user))) else {
        return Some(Refusal::Revoked);
    };
    if reach(user.role, action) == Reach::None {
        return Some(Refusal::NotAllowed(user.role));
    }
    // What a request may touch was looked up with the role it came in with; with another one that says nothing.
    (user.role != authority.role).then_some(Refusal::RoleChanged(user.role))
}

/// What a user's role must allow for a command. `None` where it is not a matter of roles: what workers and agents do, what a token or the owner of
/// the machine answers for, and the note that somebody was refused, which is kept of the revoked too.
const fn needed(command: &Command) -> Option<Action> {
    Some(match command {
        Command::Submit(_) | Command::StageTasks(_) | Command::OpenJob(_) | Command::OpenTasks(_) | Command::ResumeJob(..) => Action::Run,
        Command::Redrive(_) => Action::Redrive,
        Command::Kill(_) | Command::CancelJob(_) => Action::Kill,
        Command::ReleaseLock(_) => Action::ReleaseLock,
        Command::NoteLink(..) => Action::ShareLog,
        Command::Change(change, _) => return needed_for_change(change),
        Command::Lease(_)
        | Command::Begin(_)
        | Command::Extend(_)
        | Command::GiveBack(_)
        | Command::EndAttempt(_)
        | Command::Reap(_)
        | Command::ConfirmKill(_)
        | Command::ExpireWait(_)
        | Command::GiveUp(..)
        | Command::AdvanceJob(_)
        | Command::ForgetStaged(_)
        | Command::FreeLock(..) => return None,
    })
}

const fn needed_for_change(change: &Change) -> Option<Action> {
    Some(match change {
        Change::InviteUser(_)
        | Change::RevokeUser(_)
        | Change::SetRole(..)
        | Change::PutGroup(_)
        | Change::RemoveGroup(_)
        | Change::PutRule(_)
        | Change::RemoveRule(_) => Action::ManageUsers,
        Change::AddKey(..) | Change::RevokeKey(..) | Change::RotateKey(..) => Action::ManageKeys,
        Change::RegisterImage(_) | Change::UnregisterImage(_) => Action::ManageImages,
        Change::CreateSecret(_) | Change::UpdateSecret(_) | Change::DeleteSecret(_) => Action::WriteSecrets,
        Change::NoteRevealed(_) => Action::ReadSecrets,
        Change::ResealSecret(..) | Change::NoteRotated(_) => Action::RotateSealingKey,
        Change::PushPlaybook(..) | Change::RemovePlaybook(_) => Action::ManagePlaybooks,
        // Whatever they call for, they must be who they were.
        Change::NoteCall(_) => Action::KnowSelf,
        Change::CreateFirstAdmin(_)
        | Change::ClaimKey(_)
        | Change::RecoverAdmin(_)
        | Change::ForgetUnclaimed(_)
        | Change::Checkpoint(_)
        | Change::NoteHealth(_)
        | Change::MoveIncidents(_)
        | Change::NoteDenied(_) => return None,
    })
}
