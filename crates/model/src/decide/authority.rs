//! Whether whoever asked for a step still may, at the moment of the step. Who calls was told when their request came in; that may be a while ago, and a
//! revocation in between must count. What a command needs is said here for all of them, so that no caller can name too little.

use crate::change::Change;
use crate::command::{Command, Refusal};
use crate::record::{Body, Record, owner_record};
use crate::role::{Action, Reach, Role, reach_of};
use crate::step::{Authority, Step};
use crate::view::View;

/// Why the step is not its caller's to take any more, if so. Steps of the in-process worker and of the platform itself are nobody's.
pub(super) fn lost<V: View>(view: &mut V, step: &Step, command: &Command) -> Result<Option<Refusal>, V::Error> {
    let (Some(authority), Some(action)) = (&step.authority, needed(command)) else { return Ok(None) };
    let (kind, name) = owner_record(&authority.email);
    let record = view.record(kind, name)?;
    Ok(judge(record.as_ref(), step, authority, action))
}

fn judge(record: Option<&Record>, step: &Step, authority: &Authority, action: Action) -> Option<Refusal> {
    let Some((role, may_submit)) = standing(record, step, authority) else { return Some(Refusal::Revoked) };
    if reach_of(role, may_submit, action) == Reach::None {
        return Some(Refusal::NotAllowed(role));
    }
    // What a request may touch was looked up with the role it came in with; with another one that says nothing.
    ((role, may_submit) != (authority.role, authority.may_submit)).then_some(Refusal::RoleChanged(role))
}

/// What the caller is now, and whether it is a worker that may submit, if their key still works.
fn standing(record: Option<&Record>, step: &Step, authority: &Authority) -> Option<(Role, bool)> {
    let hash = authority.key_hash.as_ref();
    match record?.body.as_ref()? {
        Body::User(user) if user.revoked_at.is_none() => {
            let works = |hash: &[u8; 32]| user.key(hash).is_some_and(|key| key.works(step.at));
            hash.is_none_or(works).then_some((user.role, false))
        }
        // The machine answers for nobody who is a worker: there is always a key.
        Body::Worker(account) => hash.is_some_and(|hash| account.has_key(hash)).then_some((account.role, account.may_submit)),
        _ => None,
    }
}

/// What a caller's role must allow for a command. `None` where it is not a matter of roles: what agents do, what a token or the owner of
/// the machine answers for, and the note that somebody was refused, which is kept of the revoked too.
const fn needed(command: &Command) -> Option<Action> {
    Some(match command {
        Command::Submit(_)
        | Command::StageTasks(_)
        | Command::OpenJob(_)
        | Command::OpenTasks(_)
        | Command::ResumeJob(..)
        | Command::ReviseJob(_) => Action::Run,
        Command::Redrive(_) => Action::Redrive,
        Command::Kill(_) | Command::CancelJob(_) => Action::Kill,
        Command::ReleaseLock(_) => Action::ReleaseLock,
        Command::NoteLink(..) => Action::ShareLog,
        Command::Change(change, _) => return needed_for_change(change),
        // The in-process worker has no authority that could be looked at.
        Command::Lease(_)
        | Command::Begin(_)
        | Command::Send(_)
        | Command::Extend(_)
        | Command::GiveBack(_)
        | Command::Unsend(_)
        | Command::EndAttempt(_) => Action::Lease,
        Command::Reap(_)
        | Command::ConfirmKill(..)
        | Command::ExpireWait(_)
        | Command::GiveUp(..)
        | Command::AdvanceJob(_)
        | Command::ForgetStaged(_)
        | Command::FreeLock(..)
        | Command::FreePermit(..) => return None,
    })
}

const fn needed_for_change(change: &Change) -> Option<Action> {
    Some(match change {
        Change::InviteUser(_)
        | Change::RenewInvitation(_)
        | Change::RevokeUser(_)
        | Change::SetRole(..)
        | Change::PutGroup(_)
        | Change::RemoveGroup(_)
        | Change::PutRule(_)
        | Change::RemoveRule(_) => Action::ManageUsers,
        Change::AddKey(..) | Change::RevokeKey(..) | Change::RotateKey(..) => Action::ManageKeys,
        Change::PutQueue(_) | Change::RemoveQueue(_) => Action::ManageQueues,
        Change::RegisterImage(_) | Change::UnregisterImage(_) => Action::ManageImages,
        Change::CreateSecret(_) | Change::UpdateSecret(_) | Change::DeleteSecret(_) => Action::WriteSecrets,
        Change::NoteRevealed(_) => Action::ReadSecrets,
        Change::ResealSecret(..) | Change::NoteRotated(_) => Action::RotateSealingKey,
        Change::PushPlaybook(..) | Change::RemovePlaybook(_) => Action::ManagePlaybooks,
        Change::CreateWorker(_)
        | Change::RotateWorker(..)
        | Change::RevokeWorker(_)
        | Change::DrainWorker(_)
        | Change::ResumeWorker(_)
        | Change::NoteSigningKey(_) => Action::ManageWorkers,
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
