//! What incidents and looks at what runs promise: each move counts once however often it is made, what is forgotten leaves nothing, and none of it
//! makes anybody read anew what people manage.

use runvoy_model::change::Change;
use runvoy_model::command::Answer;
use runvoy_model::event::EventType;
use runvoy_model::health::{Check, Summary};
use runvoy_model::incident::{Incident, IncidentKind, Move, Phase, Told};
use runvoy_model::record::{Body, Kind, ONLY};
use runvoy_model::time::UnixMs;
use runvoy_ports::record::{IncidentMark, IncidentQuery};

use super::office::Office;
use crate::harness::Records;
use crate::stage::BEGINNING;

const NAME: &str = "dead:x";

fn begin(at: UnixMs) -> Move {
    Move::Begin(Box::new(Incident::begun(IncidentKind::Dead, "x", "é \"gave up\"", at)))
}

fn end(why: &str) -> Move {
    Move::End { name: NAME.into(), why: why.into() }
}

fn told(began_at: UnixMs, what: Told) -> Move {
    Move::Told { name: NAME.into(), began_at, what }
}

async fn moved(office: &mut Office<'_>, moves: &[Move]) {
    let answer = office.play(Change::MoveIncidents(moves.to_vec()), None).await;
    assert_eq!(answer, Answer::Unchanged);
}

/// The incident, and how often its record was changed.
async fn incident(office: &Office<'_>) -> Option<(Incident, u64)> {
    let record = office.read(Kind::Incident, NAME).await?;
    match record.body {
        Some(Body::Incident(incident)) => Some((incident, record.version)),
        other => panic!("not an incident: {other:?}"),
    }
}

/// Begun, told, over and told of that: each once, whoever says it again; and as it was after a reopen.
pub async fn every_move_of_an_incident_counts_once(harness: Records<'_>) {
    let mut office = Office::new(harness);
    moved(&mut office, &[end("nothing to end"), told(BEGINNING, Told::Begin)]).await;
    assert_eq!(incident(&office).await, None);
    for (version, moves) in [
        (1, vec![begin(BEGINNING), begin(UnixMs(9))]),
        (2, vec![told(BEGINNING, Told::Begin), told(UnixMs(9), Told::Begin), told(UnixMs(9), Told::Over)]),
        (3, vec![end("redriven"), end("again")]),
        (4, vec![told(BEGINNING, Told::Over), told(BEGINNING, Told::Begin)]),
    ] {
        for _ in 0..2 {
            moved(&mut office, &moves).await;
            let (_, changes) = incident(&office).await.expect("an incident");
            assert_eq!(changes, version, "{moves:?}");
            office.reopen().await;
        }
        office.now = office.now.plus_ms(1_000);
    }
    let (incident, _) = incident(&office).await.expect("an incident");
    let over = incident.over.clone().expect("it is over");
    assert_eq!((incident.began_at, incident.told_at), (BEGINNING, Some(BEGINNING.plus_ms(1_000))));
    assert_eq!((over.at, over.why.as_str(), over.told_at), (BEGINNING.plus_ms(2_000), "redriven", Some(BEGINNING.plus_ms(3_000))));
    assert!(!incident.is_to_be_told());
}

/// What begins again before anybody heard that it was over goes on; after that it is a new one.
pub async fn an_incident_that_comes_back_is_told_again_only_if_it_was_told_over(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let (first, later) = (BEGINNING, BEGINNING.plus_ms(60_000));
    moved(&mut office, &[begin(first), told(first, Told::Begin), end("healthy"), begin(later)]).await;
    let (known, _) = incident(&office).await.expect("an incident");
    assert_eq!((known.began_at, known.over.clone(), known.is_to_be_told()), (first, None, false));
    moved(&mut office, &[end("healthy"), told(first, Told::Over), begin(later)]).await;
    let (new, _) = incident(&office).await.expect("an incident");
    assert_eq!((new.began_at, new.is_to_be_told()), (later, true));
    moved(&mut office, &[told(first, Told::Begin)]).await;
    assert!(incident(&office).await.expect("an incident").0.is_to_be_told(), "another one was told of");
}

/// What came back while people were being told that it was over is told again: for them it is over.
pub async fn an_incident_that_comes_back_while_it_is_told_over_is_told_again(harness: Records<'_>) {
    let mut office = Office::new(harness);
    moved(&mut office, &[begin(BEGINNING), told(BEGINNING, Told::Begin), end("healthy")]).await;
    moved(&mut office, &[begin(BEGINNING.plus_ms(60_000))]).await;
    for _ in 0..2 {
        moved(&mut office, &[told(BEGINNING, Told::Over)]).await;
        let (back, version) = incident(&office).await.expect("an incident");
        assert!(back.is_open() && back.is_to_be_told(), "{back:?}");
        assert_eq!((version, marks(&office, Phase::Begun, None).await), (3, vec![NAME.to_owned()]));
        office.reopen().await;
    }
}

async fn marks(office: &Office<'_>, phase: Phase, kind: Option<IncidentKind>) -> Vec<String> {
    let found = office.store().incidents(IncidentQuery { phase, kind, limit: 3 }).await.expect("incidents");
    found.into_iter().map(|mark| mark.name).collect()
}

/// Incidents are found by where they stand, the worst and then the oldest first, no more than asked for; and counted.
pub async fn incidents_are_found_by_where_they_stand(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let at = |ms| BEGINNING.plus_ms(ms);
    let new = |kind, about: &str, ms| Move::Begin(Box::new(Incident::begun(kind, about, "why", at(ms))));
    let [critical, dead, overtime] = [IncidentKind::Critical, IncidentKind::Dead, IncidentKind::Overtime];
    let begun = [new(overtime, "o", 1), new(dead, "b", 3), new(dead, "a", 3), new(dead, "c", 2), new(critical, "x", 9)];
    moved(&mut office, &begun).await;
    assert_eq!(marks(&office, Phase::Begun, None).await, ["critical:x", "dead:c", "dead:a"]);
    assert_eq!(marks(&office, Phase::Begun, Some(dead)).await, ["dead:c", "dead:a", "dead:b"]);
    office.now = at(50);
    let told = |name: &str, ms, what| Move::Told { name: name.into(), began_at: at(ms), what };
    let end = |name: &str| Move::End { name: name.into(), why: "well".into() };
    moved(&mut office, &[told("dead:c", 2, Told::Begin), end("dead:a"), end("overtime:o"), told("overtime:o", 1, Told::Over)]).await;
    for _ in 0..2 {
        assert_eq!(marks(&office, Phase::Begun, None).await, ["critical:x", "dead:b"]);
        assert_eq!(marks(&office, Phase::Closed, None).await, ["overtime:o"]);
        assert_eq!(marks(&office, Phase::Closed, Some(dead)).await, [""; 0]);
        let query = IncidentQuery { phase: Phase::Over, kind: Some(dead), limit: 3 };
        let over = office.store().incidents(query).await.expect("incidents");
        assert_eq!(over, [IncidentMark { name: "dead:a".into(), kind: dead, began_at: at(3), since: at(50) }]);
        let counts = office.store().incident_counts().await.expect("counts");
        let expected =
            [(Phase::Begun, critical), (Phase::Begun, dead), (Phase::Told, dead), (Phase::Over, dead), (Phase::Closed, overtime)];
        assert_eq!(counts, expected.map(|(phase, kind)| (phase, kind, 1)));
        office.reopen().await;
    }
    moved(&mut office, &[Move::Forget { name: "dead:c".into(), began_at: at(2) }]).await;
    assert_eq!(marks(&office, Phase::Told, None).await, [""; 0]);
}

/// A forgotten incident is gone, and one of the same name begins at the beginning.
pub async fn a_forgotten_incident_leaves_nothing(harness: Records<'_>) {
    let mut office = Office::new(harness);
    moved(&mut office, &[begin(BEGINNING)]).await;
    moved(&mut office, &[end("redriven")]).await;
    let forget = |began_at| Move::Forget { name: NAME.into(), began_at };
    moved(&mut office, &[forget(UnixMs(9))]).await;
    assert_eq!(office.names(Kind::Incident).await, [NAME], "another one was meant");
    for _ in 0..2 {
        moved(&mut office, &[forget(BEGINNING)]).await;
        assert_eq!((incident(&office).await, office.names(Kind::Incident).await.len()), (None, 0));
        office.reopen().await;
    }
    moved(&mut office, &[begin(BEGINNING)]).await;
    assert_eq!(incident(&office).await.map(|(_, version)| version), Some(1));
}

/// A look at what runs is a link of the one chain of looks; neither looks nor incidents change the number that memories rest on.
pub async fn a_look_at_what_runs_is_chained_and_makes_nobody_read_anew(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let before = office.store().authority();
    let check = Check { summary: Summary { total_processing: 4, healthy: 3, critical: 1, ..Summary::default() }, tasks: Vec::new() };
    for count in 1..=3 {
        let record = office.changed(Change::NoteHealth(Box::new(check.clone()))).await;
        assert_eq!((record.body.clone(), record.version, record.chain.count), (Some(Body::Health(count)), count, count));
        moved(&mut office, &[begin(BEGINNING)]).await;
        office.verify_chain(&record).await;
    }
    let events = office.events_about(Kind::Health, ONLY).await;
    assert!(events.iter().all(|event| event.kind == EventType::TaskHealthCheck));
    assert_eq!((events.len(), &events[0].properties["summary"]["totalProcessing"]), (3, &4.into()));
    assert_eq!(office.store().authority(), before);
}
