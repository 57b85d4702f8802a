//! Where the promises about records are played: short verbs over a store, with a clock and ids that the play itself makes.

use std::sync::Arc;

use runvoy_model::chain::ChainHead;
use runvoy_model::change::{Change, Invitation, InvitedBy, NewImage, NewKey, NewSecret, NewUser};
use runvoy_model::command::{Answer, Command, Refusal, SubmitKey};
use runvoy_model::event::Event;
use runvoy_model::group::Group;
use runvoy_model::id::StepId;
use runvoy_model::image::{ImageSettings, Reference};
use runvoy_model::playbook::PlaybookBody;
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::Role;
use runvoy_model::rule::{Effect, Rule};
use runvoy_model::secret::Sealed;
use runvoy_model::step::{Actor, Audit, Step};
use runvoy_model::time::UnixMs;
use runvoy_ports::store::EventQuery;

use crate::harness::{AUDIT_KEY, Records, TransactionalStore};
use crate::stage::{BEGINNING, answered, id_bytes, name, refusal};

pub(crate) struct Office<'h> {
    harness: Records<'h>,
    pub now: UnixMs,
    made: u64,
}

impl<'h> Office<'h> {
    pub fn new(harness: Records<'h>) -> Self {
        Self { harness, now: BEGINNING, made: 0 }
    }

    pub fn store(&self) -> Arc<dyn TransactionalStore> {
        self.harness.store()
    }

    pub async fn reopen(&self) {
        self.harness.reopen().await;
    }

    pub fn step(&mut self) -> Step {
        self.made += 1;
        let id = StepId::from_bytes(id_bytes(BEGINNING, self.made));
        let audit = Some(Audit { action: "test".into(), from: "127.0.0.1".into(), ..Audit::default() });
        Step { id, at: self.now, actor: Actor::User { email: "ann@x".into() }, request_id: id.to_string(), audit, authority: None }
    }

    pub async fn play(&mut self, change: Change, key: Option<SubmitKey>) -> Answer {
        let step = self.step();
        self.apply(&step, change, key).await
    }

    pub async fn apply(&self, step: &Step, change: Change, key: Option<SubmitKey>) -> Answer {
        answered(self.store().apply(step.clone(), Command::Change(change, key)).await)
    }

    /// A change that is taken, and what is there afterwards.
    pub async fn changed(&mut self, change: Change) -> Record {
        record_of(self.play(change, None).await)
    }

    pub async fn refused(&mut self, change: Change) -> Refusal {
        refusal(self.play(change, None).await)
    }

    pub async fn read(&self, kind: Kind, name: &str) -> Option<Record> {
        self.store().record(kind, name).await.expect("a read")
    }

    pub async fn names(&self, kind: Kind) -> Vec<String> {
        self.store().records(kind).await.expect("records").into_iter().map(|record| record.name).collect()
    }

    pub async fn events_about(&self, kind: Kind, name: &str) -> Vec<Event> {
        let query = EventQuery { entity: Record::new(kind, name).entity(), limit: 100_000, ..EventQuery::default() };
        self.store().events(query).await.expect("events").into_iter().map(|stored| stored.event).collect()
    }

    /// Panics unless a record's events are the chain that it names.
    pub async fn verify_chain(&self, record: &Record) {
        let mut head = ChainHead::default();
        for event in self.events_about(record.kind, &record.name).await {
            head = AUDIT_KEY.link(&head, &event.canonical());
            assert_eq!((event.number, event.mac), (head.count, head.mac), "the chain breaks at {event:?}");
        }
        assert_eq!(record.chain, head, "{} names another head", record.name);
    }
}

pub(crate) fn record_of(answer: Answer) -> Record {
    match answer {
        Answer::Record { record, .. } => *record,
        other => panic!("not changed: {other:?}"),
    }
}

pub(crate) fn keyed(user: &str, key: &str, fingerprint: u8) -> Option<SubmitKey> {
    Some(SubmitKey { user: user.into(), key: key.into(), fingerprint: [fingerprint; 32] })
}

pub(crate) fn prefix(number: u8) -> String {
    format!("rv_{number:08}")
}

pub(crate) fn key(number: u8) -> NewKey {
    NewKey { hash: [number; 32], prefix: prefix(number), name: Some("laptop".into()), expires_at: None }
}

pub(crate) fn admin(email: &str, number: u8) -> NewUser {
    NewUser { email: email.into(), role: Role::Admin, key: key(number) }
}

pub(crate) fn with_key(email: &str, role: Role, number: u8) -> Change {
    Change::InviteUser(Invitation { email: email.into(), role, by: InvitedBy::Key(key(number)) })
}

pub(crate) fn group(text: &str, members: &[&str]) -> Change {
    let members = members.iter().map(|member| (*member).to_owned()).collect();
    Change::PutGroup(Group { name: name(text), members, created_at: BEGINNING, created_by: "ann@x".into() })
}

pub(crate) fn rule(text: &str) -> Change {
    Change::PutRule(Box::new(Rule { commands: vec!["rm *".into(), "é \"x\"".into()], ..Rule::new(text, Effect::Deny) }))
}

pub(crate) fn secret(text: &str) -> Change {
    Change::CreateSecret(Box::new(NewSecret {
        name: name(text),
        key_name: "DB_URL".into(),
        description: Some("é\n\u{1f980}".into()),
        use_by: vec!["group:ops".into()],
        sealed: Sealed { key_id: "k1".into(), data: "c2VhbGVk".into() },
    }))
}

pub(crate) fn image(text: &str, is_default: bool) -> NewImage {
    let reference = Reference::parse(text).expect("a reference");
    NewImage { image: text.into(), reference, settings: ImageSettings { cpu: Some(512), ..ImageSettings::default() }, is_default }
}

pub(crate) fn playbook(text: &str, command: &str) -> Change {
    Change::PushPlaybook(name(text), Box::new(PlaybookBody { command: command.into(), ..PlaybookBody::default() }))
}
