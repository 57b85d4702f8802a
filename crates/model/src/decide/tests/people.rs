//! Random histories of what people manage: three people, many keys, a clock that runs on, repeats. After every step every invariant holds.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::cast::{admin, answer, hash, id_of, image, key, prefix, sealed, secret, update, with_key, with_token};
use super::world::{KEY, World, name};
use crate::chain::ChainHead;
use crate::change::{Change, Denied, NewKey, SecretUpdate};
use crate::command::{Answer, Command, SubmitKey};
use crate::group::Group;
use crate::record::{Body, Kind, ONLY, Record, hash_name};
use crate::role::Role;
use crate::rule::{Effect, Rule};
use crate::step::Step;
use crate::time::UnixMs;
use crate::user::User;

/// One move; numbers pick among what exists when it is played.
#[derive(Debug, Clone)]
enum Move {
    Person(Act, u8, Role, usize, Option<i64>),
    Thing(Change, Option<u8>),
    Repeat(usize),
    Clock(i64),
}

/// What somebody does with a person.
#[derive(Debug, Clone, Copy)]
enum Act {
    CreateFirst,
    Invite,
    Admit,
    Claim,
    Revoke,
    SetRole,
    AddKey,
    RevokeKey,
    RotateKey,
    Recover,
    Forget,
    Deny,
}

fn acts() -> impl Strategy<Value = Act> {
    use Act::{AddKey, Admit, Claim, CreateFirst, Deny, Forget, Invite, Recover, Revoke, RevokeKey, RotateKey, SetRole};
    let mut acts = vec![CreateFirst, Admit, Revoke, Recover, Forget, Deny];
    acts.extend([Invite, Claim, SetRole].repeat(2));
    acts.extend([AddKey, RevokeKey, RotateKey].repeat(3));
    prop::sample::select(acts)
}

fn roles() -> impl Strategy<Value = Role> {
    prop::sample::select(vec![Role::Admin, Role::Admin, Role::Developer])
}

fn lives() -> impl Strategy<Value = Option<i64>> {
    prop::option::weighted(0.5, prop::sample::select(vec![0, 1_000, 600_000]))
}

fn things() -> impl Strategy<Value = Change> {
    let words = prop::sample::select(vec!["one", "two"]);
    let images = (prop::sample::select(vec!["alpine:3", "debian:12"]), any::<bool>()).prop_map(|(text, default)| image(text, default));
    let group = |text: &str| Group { name: name(text), members: Vec::new(), created_at: UnixMs(1), created_by: "ann@x".into() };
    let changed = |text: &str| SecretUpdate { sealed: Some(sealed("b")), ..update(text) };
    let push = |text: &str| Change::PushPlaybook(name(text), Box::default());
    prop_oneof![
        words.clone().prop_map(move |text| Change::PutGroup(group(text))),
        words.clone().prop_map(|text| Change::RemoveGroup(name(text))),
        words.clone().prop_map(|text| Change::PutRule(Box::new(Rule::new(text, Effect::Deny)))),
        words.clone().prop_map(|text| Change::RemoveRule(name(text))),
        images.clone().prop_map(Change::RegisterImage),
        images.prop_map(|image| Change::UnregisterImage(id_of(&image))),
        words.clone().prop_map(|text| Change::CreateSecret(Box::new(secret(text, "a")))),
        words.clone().prop_map(move |text| Change::UpdateSecret(Box::new(changed(text)))),
        words.clone().prop_map(|text| Change::ResealSecret(name(text), sealed("a"), sealed("c"))),
        words.clone().prop_map(|text| Change::DeleteSecret(name(text))),
        words.clone().prop_map(push),
        words.prop_map(|text| Change::RemovePlaybook(name(text))),
    ]
}

fn moves() -> impl Strategy<Value = Move> {
    let person = (acts(), 0..3u8, roles(), 0..64usize, lives());
    prop_oneof![
        10 => person.prop_map(|(act, who, role, pick, lives)| Move::Person(act, who, role, pick, lives)),
        3 => (things(), prop::option::weighted(0.3, 0..6u8)).prop_map(|(change, key)| Move::Thing(change, key)),
        1 => (0..64usize).prop_map(Move::Repeat),
        2 => prop::sample::select(vec![1, 1_000, 600_000, 1_000_000]).prop_map(Move::Clock),
    ]
}

#[derive(Default)]
struct Play {
    /// How many keys and tokens were made so far.
    keys: u8,
    tokens: u8,
    steps: Vec<(Step, Command)>,
    /// Keys that opened something once and then no longer, though they had not expired.
    revoked: HashSet<[u8; 32]>,
}

impl Play {
    /// A key that nobody had; seldom one that somebody has or had.
    fn key(&mut self, now: UnixMs, pick: usize, lives: Option<i64>) -> NewKey {
        let number = if pick < 4 && self.keys > 0 { old(self.keys, pick) } else { self.keys + 1 };
        self.keys = self.keys.max(number);
        NewKey { expires_at: lives.map(|ms| now.plus_ms(ms)), ..key(number) }
    }

    fn change(&mut self, world: &World, play: (Act, u8, Role, usize, Option<i64>)) -> Change {
        let (act, who, role, pick, lives) = play;
        let email = format!("user-{who}@x");
        let prefixes: Vec<_> = world.user(&email).into_iter().flat_map(|user| user.keys.iter().map(|key| key.prefix.clone())).collect();
        let prefix = prefixes.get(pick % prefixes.len().max(1)).cloned().unwrap_or_else(|| prefix(250));
        match act {
            Act::CreateFirst => Change::CreateFirstAdmin(admin(&email, self.keys + 1)),
            Act::Invite => {
                self.tokens = if pick < 4 { self.tokens.max(1) } else { self.tokens + 1 };
                with_token(&email, role, self.tokens, world.now)
            }
            Act::Admit => with_key(&email, role, self.key(world.now, pick, None)),
            Act::Claim => {
                let token = if pick % 3 == 0 { old(self.tokens, pick) } else { self.tokens };
                answer(token, self.key(world.now, pick, None))
            }
            Act::Revoke => Change::RevokeUser(email),
            Act::SetRole => Change::SetRole(email, role),
            Act::AddKey => Change::AddKey(email, self.key(world.now, pick, lives)),
            Act::RevokeKey => Change::RevokeKey(email, prefix),
            Act::RotateKey => Change::RotateKey(email, prefix, self.key(world.now, pick, lives)),
            Act::Recover => {
                self.keys += 1;
                Change::RecoverAdmin(admin(&email, self.keys))
            }
            Act::Forget => Change::ForgetUnclaimed(email),
            Act::Deny => Change::NoteDenied(Denied { email, code: "FORBIDDEN".into(), why: "no".into(), ..Denied::default() }),
        }
    }

    fn step(&mut self, world: &mut World, change: Change, key: Option<u8>) {
        let key = key.map(|key| SubmitKey { user: "ann@x".into(), key: format!("key-{}", key / 2), fingerprint: [key; 32] });
        let (step, command) = (world.step(), Command::Change(change, key));
        let (events, records) = (world.events.len(), world.records.clone());
        let (admins, open) = (working_admins(world), self.open_keys(world));
        match world.apply(&step, &command) {
            Answer::Record { repeated: false, .. } => {
                assert_eq!(world.events.len(), events + 1, "one change, one event: {command:?}");
                check_versions(&records, world);
                self.steps.push((step, command));
            }
            Answer::Record { repeated: true, .. } | Answer::Refused(_) => {
                assert_eq!((world.events.len(), &world.records), (events, &records), "nothing is written: {command:?}");
            }
            other => panic!("{other:?}"),
        }
        assert!(admins == 0 || working_admins(world) > 0, "the last admin is lost");
        self.revoked.extend(open.difference(&self.open_keys(world)));
    }

    fn open_keys(&self, world: &World) -> HashSet<[u8; 32]> {
        (1..=self.keys).map(hash).filter(|hash| world.opens(hash).is_some()).collect()
    }

    fn repeat(&self, world: &mut World, at: usize) {
        let Some((step, command)) = (!self.steps.is_empty()).then(|| self.steps[at % self.steps.len()].clone()) else { return };
        let (events, records) = (world.events.len(), world.records.clone());
        assert!(matches!(world.apply(&step, &command), Answer::Record { repeated: true, .. }));
        assert_eq!((world.events.len(), &world.records), (events, &records), "a repeat wrote something: {command:?}");
    }

    fn check(&self, world: &World) {
        check_people(world);
        check_claims(world);
        if let Some(Body::DefaultImage(id)) = world.live(Kind::DefaultImage, ONLY).and_then(|record| record.body.as_ref()) {
            assert!(world.live(Kind::Image, id).is_some(), "the default is an image that is not there");
        }
        assert!(self.revoked.is_disjoint(&self.open_keys(world)), "a revoked key works again");
    }
}

fn users(world: &World) -> impl Iterator<Item = &User> {
    world.records.values().filter_map(Record::user)
}

/// One of the numbers up to `last`.
fn old(last: u8, pick: usize) -> u8 {
    1 + u8::try_from(pick % usize::from(last.max(1))).expect("below a u8")
}

fn working_admins(world: &World) -> usize {
    users(world).filter(|user| user.role == Role::Admin && user.has_key(world.now)).count()
}

/// Whatever was written has the next version, and nothing was forgotten.
fn check_versions(before: &std::collections::HashMap<(Kind, String), Record>, world: &World) {
    for (name, record) in &world.records {
        let version = before.get(name).map_or(0, |before| before.version);
        let same = before.get(name) == Some(record);
        assert_eq!(record.version, version + u64::from(!same), "{name:?}");
    }
    assert!(before.keys().all(|name| world.records.contains_key(name)), "a record is gone");
}

fn check_people(world: &World) {
    let admins = world.admins();
    for email in &admins {
        let user = world.user(email).expect("an admin is somebody");
        assert!(user.role == Role::Admin && user.revoked_at.is_none(), "{email} is listed and no admin");
        assert!(user.keys.iter().any(|key| key.revoked_at.is_none()), "{email} is listed without a key");
    }
    assert_eq!(admins.iter().collect::<HashSet<_>>().len(), admins.len(), "each is listed once");
    for user in users(world) {
        let counts = user.role == Role::Admin && user.has_key(world.now);
        assert!(!counts || admins.contains(&user.email), "{} is an admin and not listed", user.email);
        assert!(user.revoked_at.is_none() || user.keys.iter().all(|key| key.revoked_at.is_some()) && user.claim.is_none());
        for key in &user.keys {
            let owner = world.live(Kind::Key, &hash_name(&key.hash)).and_then(|record| record.body.as_ref());
            assert_eq!(owner, Some(&Body::Key(user.email.clone())), "a key knows whose it is");
        }
    }
    for record in world.records.values().filter(|record| record.kind == Kind::Key) {
        let Some(Body::Key(owner)) = &record.body else { panic!("a key is never removed") };
        assert!(world.records.contains_key(&(Kind::User, owner.clone())), "the owner of a key was never there");
    }
}

/// A pending claim and its user know each other, one to one.
fn check_claims(world: &World) {
    let of_users: BTreeMap<_, _> =
        users(world).filter_map(|user| Some((hash_name(&user.claim.as_ref()?.token_hash), &user.email))).collect();
    let mut open = BTreeMap::new();
    for record in world.records.values() {
        if let Some(Body::Claim(claim)) = &record.body
            && claim.claimed.is_none()
        {
            open.insert(record.name.clone(), &claim.email);
        }
    }
    assert_eq!(of_users, open);
    let emails: HashSet<_> = open.values().collect();
    assert_eq!(emails.len(), open.len(), "nobody has two invitations");
}

fn check_chain(world: &World, record: &Record) {
    let mut head = ChainHead::default();
    if record.kind.entity().is_some() {
        for event in world.events_about(record.kind, &record.name) {
            head = KEY.link(&head, &event.canonical());
            assert_eq!((event.number, event.mac), (head.count, head.mac), "the chain of {} holds", record.name);
        }
    }
    assert_eq!(record.chain, head, "the head of {}", record.name);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_of_changes_keeps_every_invariant(history in prop::collection::vec(moves(), 1..120)) {
        let mut world = World::new();
        let mut play = Play::default();
        for next in history {
            match next {
                Move::Clock(ms) => world.now = world.now.plus_ms(ms),
                Move::Repeat(at) => play.repeat(&mut world, at),
                Move::Thing(change, key) => play.step(&mut world, change, key),
                Move::Person(act, who, role, pick, lives) => {
                    let change = play.change(&world, (act, who, role, pick, lives));
                    play.step(&mut world, change, None);
                }
            }
            play.check(&world);
        }
        // A chain that broke stays broken, so that it is enough to look at the end.
        world.records.values().for_each(|record| check_chain(&world, record));
    }
}
