//! What people are told of incidents: which of them make up the next message, and its words. Pure; a message names the worst and counts the rest, so
//! that a thousand incidents are one message.

use runvoy_model::incident::{Incident, IncidentKind, Move, Subject, Told, one_line};
use runvoy_model::time::UnixMs;
use runvoy_ports::alert::{Entry, Line, Notice, Tone};
use runvoy_ports::record::IncidentMark;

use crate::health::elapsed;

/// So many are named in one message, of what began and of what is over.
pub(crate) const MOST_NAMED: usize = 10;

/// So much is said of how one was over, so that all that are named fit into a message.
const MOST_WHY: usize = 150;

/// What waits to be told.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// What began: the worst, whole.
    pub(crate) begun: Vec<Incident>,
    /// What began beside that.
    pub(crate) more_begun: Vec<IncidentMark>,
    /// What is over: the worst, whole.
    pub(crate) over: Vec<Incident>,
    /// What is over beside that.
    pub(crate) more_over: Vec<IncidentMark>,
    /// How many were forgotten before anybody could be told, because they were too many.
    pub(crate) forgotten: usize,
}

/// A message, and what is true once somebody has got it.
#[derive(Debug)]
pub(crate) struct Composed {
    pub(crate) notice: Notice,
    pub(crate) told: Vec<Move>,
}

/// The next message; `None` where everybody was told of everything. Whatever it marks as told is in it, by name or in a number.
pub(crate) fn compose(waiting: &Waiting, now: UnixMs, web_url: &str) -> Option<Composed> {
    let Waiting { begun, more_begun, over, more_over, forgotten } = waiting;
    if begun.is_empty() && over.is_empty() && *forgotten == 0 {
        return None;
    }
    let mut lines: Vec<Line> = over.iter().map(|incident| line(incident, web_url)).collect();
    if !more_over.is_empty() {
        lines.push(Line { text: format!("and {} more are resolved", more_over.len()), why: None, command: None, link: None });
    }
    let notice = Notice {
        title: title(waiting),
        begun: begun.iter().map(|incident| entry(incident, now, web_url)).collect(),
        more: more(more_begun, *forgotten),
        over: lines,
    };
    let named = begun.iter().chain(over).map(|incident| (incident.name(), incident.began_at, incident.is_open()));
    let counted = more_begun.iter().map(|mark| (mark, true)).chain(more_over.iter().map(|mark| (mark, false)));
    let all = named.chain(counted.map(|(mark, is_open)| (mark.name.clone(), mark.began_at, is_open)));
    let told = all.map(|(name, began_at, is_open)| Move::Told { name, began_at, what: if is_open { Told::Begin } else { Told::Over } });
    Some(Composed { notice, told: told.collect() })
}

fn title(waiting: &Waiting) -> String {
    let over = waiting.over.len() + waiting.more_over.len();
    match (&waiting.begun[..], &waiting.over[..]) {
        ([one], []) if waiting.more_begun.is_empty() => headline(one.kind).to_owned(),
        ([], [one]) if over == 1 => format!("Resolved: {}", noun(one.kind, 1)),
        ([], []) => format!("{} could not be reported in time", incidents(waiting.forgotten, "")),
        ([], _) => format!("Resolved: {}", incidents(over, "")),
        (begun, _) => {
            let kinds: Vec<_> = begun.iter().map(|incident| incident.kind).chain(waiting.more_begun.iter().map(|mark| mark.kind)).collect();
            let more = if over == 0 { String::new() } else { format!("; {over} resolved") };
            format!("{}{more}", counts(&kinds).join(", "))
        }
    }
}

fn incidents(count: usize, which: &str) -> String {
    format!("{count} {which}{}", if count == 1 { "incident" } else { "incidents" })
}

fn counts(kinds: &[IncidentKind]) -> Vec<String> {
    let count = |kind: IncidentKind| kinds.iter().filter(|one| **one == kind).count();
    let counted = IncidentKind::ALL.map(|kind| (kind, count(kind)));
    counted.into_iter().filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{count} {}", noun(kind, count))).collect()
}

fn more(rest: &[IncidentMark], forgotten: usize) -> Vec<String> {
    let kinds: Vec<_> = rest.iter().map(|mark| mark.kind).collect();
    let mut more = Vec::new();
    if !kinds.is_empty() {
        more.push(format!("and {} more: {}", kinds.len(), counts(&kinds).join(", ")));
    }
    if forgotten > 0 {
        more.push(format!("{} could not be reported in time, and not counted here", incidents(forgotten, "older ")));
    }
    if kinds.contains(&IncidentKind::Dead) || forgotten > 0 {
        more.push("to list dead letters: runvoy queues dead QUEUE".to_owned());
    }
    if kinds.iter().any(|kind| matches!(kind, IncidentKind::Critical | IncidentKind::Overtime)) {
        more.push("to see running tasks: runvoy health tasks".to_owned());
    }
    more
}

const fn headline(kind: IncidentKind) -> &'static str {
    match kind {
        IncidentKind::Critical => "Critical: a running execution stopped reporting",
        IncidentKind::Delivery => "Events could not be delivered to the event bus",
        IncidentKind::Dead => "Dead letter: an execution used up its retries",
        IncidentKind::Overtime => "Overtime: an execution runs unusually long",
    }
}

const fn noun(kind: IncidentKind, count: usize) -> &'static str {
    match (kind, count) {
        (IncidentKind::Critical, 1) => "critical execution",
        (IncidentKind::Critical, _) => "critical executions",
        (IncidentKind::Delivery, 1) => "event delivery failure",
        (IncidentKind::Delivery, _) => "event delivery failures",
        (IncidentKind::Dead, 1) => "dead letter",
        (IncidentKind::Dead, _) => "dead letters",
        (IncidentKind::Overtime, 1) => "execution in overtime",
        (IncidentKind::Overtime, _) => "executions in overtime",
    }
}

fn entry(incident: &Incident, now: UnixMs, web_url: &str) -> Entry {
    let id = &incident.about;
    let mut facts = Vec::new();
    if let Some(subject) = &incident.subject {
        facts.push(("Execution", id.clone()));
        facts.push(("User", subject.created_by.clone()));
        facts.push(("Queue", subject.queue.clone()));
        if let Some((job, task)) = &subject.task {
            facts.push(("Task", format!("{task} of job {job}")));
        }
    }
    facts.push(("Why", incident.message.clone()));
    facts.push(("Duration", elapsed(now.ms_since(incident.began_at))));
    Entry {
        tone: if incident.kind == IncidentKind::Overtime { Tone::Warning } else { Tone::Bad },
        headline: headline(incident.kind).to_owned(),
        since: incident.began_at,
        command: incident.subject.as_ref().map(|subject| subject.command.clone()),
        facts,
        next: next(incident.kind, id, incident.subject.as_ref()),
        link: link(incident, web_url),
    }
}

fn next(kind: IncidentKind, id: &str, subject: Option<&Subject>) -> Vec<String> {
    let queue = subject.map_or("QUEUE", |subject| subject.queue.as_str());
    match kind {
        IncidentKind::Critical => vec![format!("runvoy health tasks {id}"), format!("runvoy logs -f {id}"), format!("runvoy kill {id}")],
        IncidentKind::Overtime => vec![format!("runvoy logs -f {id}"), format!("runvoy kill {id}")],
        IncidentKind::Dead => vec![format!("runvoy logs {id}"), format!("runvoy queues redrive {queue} --task {id}")],
        IncidentKind::Delivery => vec!["runvoy doctor".to_owned(), "runvoy audit verify".to_owned()],
    }
}

fn line(incident: &Incident, web_url: &str) -> Line {
    let (at, why) = incident.over.as_ref().map_or((incident.began_at, ""), |over| (over.at, over.why.as_str()));
    let lasted = elapsed(at.ms_since(incident.began_at));
    let unheard = if incident.told_at.is_none() { ", before it could be reported" } else { "" };
    let text = format!("{} {}: over after {lasted}{unheard}", noun(incident.kind, 1), incident.about);
    let why = Some(one_line(why.lines().next().unwrap_or_default(), MOST_WHY)).filter(|why| !why.is_empty());
    Line { text, why, command: incident.subject.as_ref().map(|subject| subject.command.clone()), link: link(incident, web_url) }
}

fn link(incident: &Incident, web_url: &str) -> Option<String> {
    let base = web_url.trim_end_matches('/');
    (incident.subject.is_some() && !base.is_empty()).then(|| format!("{base}/logs?execution_id={}", incident.about))
}

#[cfg(test)]
mod tests {
    use runvoy_model::incident::Over;

    use super::*;

    fn incident(kind: IncidentKind, number: i64) -> Incident {
        let subject = Subject { command: "make".into(), created_by: "ada@x".into(), queue: "default".into(), task: None };
        Incident { subject: Some(subject), ..Incident::begun(kind, format!("id{number}"), "why", UnixMs(number)) }
    }

    fn over(incident: Incident, told: bool, why: &str) -> Incident {
        let over = Some(Over { at: UnixMs(60_000), why: why.into(), told_at: None });
        Incident { told_at: told.then_some(UnixMs(500)), over, ..incident }
    }

    fn mark(kind: IncidentKind, number: i64) -> IncidentMark {
        let Incident { kind, began_at, .. } = incident(kind, number);
        IncidentMark { name: incident(kind, number).name(), kind, began_at, since: began_at }
    }

    #[test]
    fn nothing_is_told_where_there_is_nothing() {
        assert!(compose(&Waiting::default(), UnixMs(0), "").is_none());
    }

    #[test]
    fn one_incident_is_told_with_what_helps() {
        let waiting = Waiting { begun: vec![incident(IncidentKind::Dead, 1)], ..Waiting::default() };
        let composed = compose(&waiting, UnixMs(90_001), "https://runvoy.example.com/").expect("a message");
        let entry = &composed.notice.begun[0];
        assert_eq!(composed.notice.title, "Dead letter: an execution used up its retries");
        assert_eq!((entry.tone, entry.link.as_deref()), (Tone::Bad, Some("https://runvoy.example.com/logs?execution_id=id1")));
        assert_eq!(entry.next[1], "runvoy queues redrive default --task id1");
        assert!(entry.facts.contains(&("User", "ada@x".into())) && entry.facts.contains(&("Duration", "1 min".into())));
        assert_eq!(composed.told, [Move::Told { name: "dead:id1".into(), began_at: UnixMs(1), what: Told::Begin }]);
    }

    #[test]
    fn a_thousand_are_one_message_that_names_the_worst() {
        let waiting = Waiting {
            begun: std::iter::once(incident(IncidentKind::Critical, 5_000))
                .chain((0..9).map(|number| incident(IncidentKind::Dead, number)))
                .collect(),
            more_begun: (9..1_000).map(|number| mark(IncidentKind::Dead, number)).collect(),
            over: vec![over(incident(IncidentKind::Overtime, 7), true, "it ended")],
            ..Waiting::default()
        };
        let Composed { notice, told } = compose(&waiting, UnixMs(9_000), "").expect("a message");
        assert_eq!(notice.title, "1 critical execution, 1000 dead letters; 1 resolved");
        assert_eq!((notice.begun.len(), notice.begun[0].headline.as_str()), (MOST_NAMED, headline(IncidentKind::Critical)));
        assert_eq!(notice.more[0], "and 991 more: 991 dead letters");
        assert_eq!((told.len(), notice.over.len()), (1_002, 1));
        assert_eq!(notice.begun[0].link, None, "no page is known");
    }

    #[test]
    fn what_was_over_before_anybody_was_told_is_one_line() {
        let waiting =
            Waiting { over: vec![over(incident(IncidentKind::Critical, 0), false, "it finished as SUCCEEDED")], ..Waiting::default() };
        let composed = compose(&waiting, UnixMs(9), "").expect("a message");
        assert_eq!(composed.notice.title, "Resolved: critical execution");
        assert!(composed.notice.begun.is_empty());
        let line = &composed.notice.over[0];
        assert_eq!(line.text, "critical execution id0: over after 1 min, before it could be reported");
        assert_eq!(line.why.as_deref(), Some("it finished as SUCCEEDED"));
        assert_eq!(composed.told, [Move::Told { name: "critical:id0".into(), began_at: UnixMs(0), what: Told::Over }]);
    }

    #[test]
    fn how_many_more_are_over_is_told_and_a_reason_is_a_short_line() {
        let long = format!("first {}\nNext: forged", "x".repeat(2_000));
        let waiting = Waiting {
            over: (0..10).map(|number| over(incident(IncidentKind::Critical, number), true, &long)).collect(),
            more_over: (10..50).map(|number| mark(IncidentKind::Critical, number)).collect(),
            ..Waiting::default()
        };
        let Composed { notice, told } = compose(&waiting, UnixMs(9), "").expect("a message");
        assert_eq!((notice.over.len(), notice.title.as_str(), told.len()), (MOST_NAMED + 1, "Resolved: 50 incidents", 50));
        assert_eq!(notice.over[10].text, "and 40 more are resolved");
        assert!(told.iter().all(|one| matches!(one, Move::Told { what: Told::Over, .. })));
        let why = notice.over[0].why.as_deref().expect("a reason");
        assert!(why.chars().count() <= MOST_WHY + 1 && !why.contains("forged"), "{why}");
    }

    #[test]
    fn what_was_forgotten_is_told_as_a_number() {
        let waiting = Waiting { forgotten: 7, ..Waiting::default() };
        let composed = compose(&waiting, UnixMs(9), "").expect("a message");
        assert_eq!((composed.notice.title.as_str(), composed.told.len()), ("7 incidents could not be reported in time", 0));
        assert!(composed.notice.more[0].starts_with("7 older incidents"), "{:?}", composed.notice.more);
    }
}
