//! Random changes of what people manage: few people, few names, so that they meet each other often.

use runvoy_model::change::{
    Change, Checkpoint, ClaimKey, Denied, Invitation, InvitedBy, NewImage, NewKey, NewSecret, NewUser, NewWorker, Renewal, SecretUpdate,
};
use runvoy_model::command::{Command, SubmitKey};
use runvoy_model::event::EventType;
use runvoy_model::group::Group;
use runvoy_model::health::{Check, Health, TaskHealth};
use runvoy_model::id::{ExecutionId, WorkerAccountId, WorkerId};
use runvoy_model::image::{ImageSettings, Reference, image_id};
use runvoy_model::incident::{Incident, IncidentKind, Move, Told};
use runvoy_model::name::Name;
use runvoy_model::playbook::PlaybookBody;
use runvoy_model::queue::QueueUpdate;
use runvoy_model::role::Role;
use runvoy_model::rule::{Effect, Rule};
use runvoy_model::secret::Sealed;
use runvoy_model::time::UnixMs;
use runvoy_model::user::CLAIM_LIVES_MS;
use runvoy_model::worker::WorkerKey;

use crate::chance::Chance;
use crate::dump::QUEUES;
use crate::stage::name;

/// A change, sometimes with a client's own key.
pub(crate) fn change(chance: &mut Chance, now: UnixMs) -> Command {
    let key = chance.percent(15).then(|| SubmitKey {
        user: email(chance),
        // The same keys as submits have, so that the two meet.
        key: format!("key-{}", chance.below(3)),
        fingerprint: [u8::from(chance.percent(20)); 32],
    });
    let change = match chance.below(10) {
        0..6 => of_people(chance, now),
        6..8 => of_things(chance),
        8 => of_workers(chance, now),
        _ => of_incidents(chance, now),
    };
    Command::Change(change, key)
}

fn of_people(chance: &mut Chance, now: UnixMs) -> Change {
    let who = email(chance);
    match chance.below(26) {
        0..3 => Change::CreateFirstAdmin(NewUser { email: who, role: Role::Admin, key: new_key(chance, now) }),
        3..6 => Change::InviteUser(Invitation { email: who, role: role(chance), by: InvitedBy::Token(hash(chance), token_end(now)) }),
        6..9 => Change::InviteUser(Invitation { email: who, role: role(chance), by: InvitedBy::Key(new_key(chance, now)) }),
        9..12 => Change::ClaimKey(ClaimKey { token_hash: hash(chance), key: new_key(chance, now), from: "10.0.0.9".into() }),
        12..14 => Change::RevokeUser(who),
        14..16 => Change::SetRole(who, role(chance)),
        16..18 => Change::AddKey(who, new_key(chance, now)),
        18..20 => Change::RevokeKey(who, new_key(chance, now).prefix),
        20 => Change::RotateKey(who, new_key(chance, now).prefix, new_key(chance, now)),
        21 => Change::RecoverAdmin(NewUser { email: who, role: Role::Admin, key: new_key(chance, now) }),
        22 => Change::ForgetUnclaimed(who),
        23..25 => Change::RenewInvitation(Renewal { email: who, token_hash: hash(chance), expires_at: token_end(now) }),
        _ => Change::NoteDenied(Denied { email: who, code: "FORBIDDEN".into(), why: "é: rule \"no-prod\"".into(), ..Denied::default() }),
    }
}

fn of_things(chance: &mut Chance) -> Change {
    let text = word(chance);
    match chance.below(16) {
        0 => {
            let members = (0..chance.below(3)).map(|_| email(chance)).collect();
            Change::PutGroup(Group { name: text, members, created_at: UnixMs(1), created_by: "ann@x".into() })
        }
        1 => Change::RemoveGroup(text),
        2 => Change::PutRule(Box::new(Rule { commands: vec!["rm *".into()], ..Rule::new(text.as_str(), Effect::Deny) })),
        3 => Change::RemoveRule(text),
        4 => Change::RegisterImage(image(chance)),
        5 => {
            let image = image(chance);
            Change::UnregisterImage(image_id(&image.reference, &image.settings))
        }
        6 => Change::CreateSecret(Box::new(NewSecret {
            name: text,
            key_name: "DB".into(),
            description: chance.percent(50).then(|| "é\n".into()),
            use_by: Vec::new(),
            sealed: sealed(chance),
        })),
        7 => Change::UpdateSecret(Box::new(SecretUpdate {
            name: text,
            key_name: chance.percent(50).then(|| "PG".into()),
            description: None,
            use_by: chance.percent(50).then(|| vec!["group:one".into()]),
            sealed: Some(sealed(chance)),
        })),
        8 => Change::ResealSecret(text, sealed(chance), sealed(chance)),
        9 => Change::DeleteSecret(text),
        10 => Change::PushPlaybook(text, Box::new(PlaybookBody { command: format!("echo {}", chance.below(9)), ..Default::default() })),
        11 => Change::RemovePlaybook(text),
        12 | 13 => {
            let (all, each) = (1 + u32::try_from(chance.below(4)).expect("small"), 1 + u32::try_from(chance.below(2)).expect("small"));
            Change::PutQueue(QueueUpdate {
                name: queue(chance),
                paused: chance.percent(60).then(|| chance.percent(30)),
                reason: chance.percent(30).then(|| "é\n".into()),
                concurrency: chance.percent(60).then(|| chance.percent(60).then_some(all)),
                per_user: chance.percent(60).then(|| chance.percent(60).then_some(each)),
            })
        }
        14 => Change::RemoveQueue(queue(chance)),
        _ => Change::Checkpoint(Checkpoint { up_to: 1, leaves: 1, root: [7; 32], peaks: vec!["07".into()] }),
    }
}

fn queue(chance: &mut Chance) -> Name {
    name(QUEUES[chance.below(QUEUES.len())])
}

fn of_workers(chance: &mut Chance, now: UnixMs) -> Change {
    let name = word(chance);
    let NewKey { hash, prefix, .. } = new_key(chance, now);
    let key = WorkerKey::Secret { hash, prefix };
    match chance.below(4) {
        0..2 => {
            let queues = (0..chance.below(3)).map(|_| word(chance)).collect();
            Change::CreateWorker(Box::new(NewWorker {
                name,
                id: WorkerAccountId::from_bytes([u8::try_from(chance.below(9)).expect("small"); 16]),
                role: Role::Worker,
                may_submit: false,
                queues,
                key,
                description: None,
            }))
        }
        2 => Change::RotateWorker(name, Box::new(key)),
        _ => Change::RevokeWorker(name),
    }
}

fn of_incidents(chance: &mut Chance, now: UnixMs) -> Change {
    if chance.percent(20) {
        let task = TaskHealth {
            execution: ExecutionId::from_bytes([7; 16]),
            health: Health::Warning,
            elapsed_ms: 400_000,
            silent_ms: 350_000,
            last_event: EventType::TaskHeartbeat,
            worker: WorkerId::from_bytes([8; 16]),
            task: None,
            is_silent: false,
            is_overtime: false,
        };
        return Change::NoteHealth(Box::new(Check::of(vec![task; chance.below(3)])));
    }
    // Few of them and few beginnings, so that moves meet what they are about.
    let began_at = UnixMs(now.0 - now.0.rem_euclid(3_600_000));
    let moves = (0..=chance.below(3)).map(|_| {
        let kind = [IncidentKind::Critical, IncidentKind::Dead][chance.below(2)];
        let incident = Incident::begun(kind, "one", "é", began_at);
        let name = incident.name();
        match chance.below(7) {
            0..3 => Move::Begin(Box::new(incident)),
            3 => Move::End { name, why: "redriven".into() },
            4 => Move::Told { name, began_at, what: Told::Begin },
            5 => Move::Told { name, began_at, what: Told::Over },
            _ => Move::Forget { name, began_at },
        }
    });
    Change::MoveIncidents(moves.collect())
}

fn email(chance: &mut Chance) -> String {
    ["ann@x", "bob@x", "carl@x"][chance.below(3)].into()
}

fn role(chance: &mut Chance) -> Role {
    [Role::Admin, Role::Developer][chance.below(2)]
}

fn word(chance: &mut Chance) -> Name {
    name(["one", "two"][chance.below(2)])
}

fn hash(chance: &mut Chance) -> [u8; 32] {
    [u8::try_from(chance.below(8)).expect("small"); 32]
}

fn token_end(now: UnixMs) -> UnixMs {
    now.plus_ms(CLAIM_LIVES_MS)
}

fn new_key(chance: &mut Chance, now: UnixMs) -> NewKey {
    let number = u8::try_from(chance.below(12)).expect("small");
    let expires_at = chance.percent(30).then(|| now.plus_ms(600_000));
    NewKey { hash: [number; 32], prefix: format!("rv_{number:08}"), name: chance.percent(30).then(|| "laptop".into()), expires_at }
}

fn image(chance: &mut Chance) -> NewImage {
    let text = ["alpine:3.20", "debian:12"][chance.below(2)];
    let settings = ImageSettings { cpu: chance.percent(30).then_some(1_024), ..ImageSettings::default() };
    let reference = Reference::parse(text).expect("a reference");
    NewImage { image: text.into(), reference, settings, is_default: chance.percent(40) }
}

fn sealed(chance: &mut Chance) -> Sealed {
    Sealed { key_id: "k1".into(), data: ["YQ==", "Yg=="][chance.below(2)].into() }
}
