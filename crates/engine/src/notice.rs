//! What people are told of incidents: which of them make up the next message, and its words. Pure; a message names the worst and counts the rest, so
//! that a thousand incidents are one message.

use runvoy_model::incident::{Incident, IncidentKind, Move, Subject, Told};
use runvoy_model::time::UnixMs;
use runvoy_ports::alert::{Entry, Line, Notice, Tone};

use crate::health::elapsed;

/// So many are named in one message, of what began and of what is over.
const MOST_NAMED: usize = 10;

/// A message, and what is true once somebody has got it.
#[derive(Debug)]
pub(crate) struct Composed {
    pub(crate) notice: Notice,
    pub(crate) told: Vec<Move>,
}

/// The next message; `None` where everybody was told of everything.
pub(crate) fn compose(incidents: &[(String, Incident)], now: UnixMs, web_url: &str) -> Option<Composed> {
    let waiting = || incidents.iter().map(|(_, incident)| incident).filter(|incident| incident.is_to_be_told());
    let mut begun: Vec<&Incident> = waiting().filter(|incident| incident.is_open()).collect();
    let mut over: Vec<&Incident> = waiting().filter(|incident| !incident.is_open()).collect();
    if begun.is_empty() && over.is_empty() {
        return None;
    }
    begun.sort_by_key(|incident| (incident.kind, incident.began_at));
    over.sort_by_key(|incident| incident.over.as_ref().map(|over| over.at));
    let mut lines: Vec<Line> = over.iter().take(MOST_NAMED).map(|incident| line(incident, web_url)).collect();
    if over.len() > MOST_NAMED {
        lines.push(Line { text: format!("and {} more are over", over.len() - MOST_NAMED), command: None, link: None });
    }
    let notice = Notice {
        title: title(&begun, &over),
        begun: begun.iter().take(MOST_NAMED).map(|incident| entry(incident, now, web_url)).collect(),
        more: more(begun.get(MOST_NAMED..).unwrap_or_default()),
        over: lines,
    };
    let told = |incident: &&Incident| Move::Told { name: incident.name(), began_at: incident.began_at, what: what(incident) };
    Some(Composed { notice, told: begun.iter().chain(&over).map(told).collect() })
}

const fn what(incident: &Incident) -> Told {
    if incident.is_open() { Told::Begin } else { Told::Over }
}

fn title(begun: &[&Incident], over: &[&Incident]) -> String {
    match (begun, over) {
        ([one], []) => headline(one.kind).to_owned(),
        ([], [one]) => format!("Resolved: {}", noun(one.kind, 1)),
        ([], _) => format!("Resolved: {} incidents", over.len()),
        _ => {
            let counts = counts(begun);
            let more = if over.is_empty() { String::new() } else { format!("; {} resolved", over.len()) };
            format!("{}{more}", counts.join(", "))
        }
    }
}

fn counts(incidents: &[&Incident]) -> Vec<String> {
    let count = |kind: IncidentKind| incidents.iter().filter(|incident| incident.kind == kind).count();
    let counted = IncidentKind::ALL.map(|kind| (kind, count(kind)));
    counted.into_iter().filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{count} {}", noun(kind, count))).collect()
}

fn more(rest: &[&Incident]) -> Vec<String> {
    if rest.is_empty() {
        return Vec::new();
    }
    let mut more = vec![format!("and {} more: {}", rest.len(), counts(rest).join(", "))];
    if rest.iter().any(|incident| incident.kind == IncidentKind::Dead) {
        more.push("runvoy queues list and runvoy queues dead QUEUE show the dead letters".to_owned());
    }
    if rest.iter().any(|incident| matches!(incident.kind, IncidentKind::Critical | IncidentKind::Overtime)) {
        more.push("runvoy health tasks shows what runs".to_owned());
    }
    more
}

const fn headline(kind: IncidentKind) -> &'static str {
    match kind {
        IncidentKind::Critical => "Critical: a running execution is not heard of",
        IncidentKind::Delivery => "Events could not be handed on",
        IncidentKind::Dead => "Dead letter: an execution used up its retries",
        IncidentKind::Overtime => "Overtime: an execution runs for very long",
    }
}

const fn noun(kind: IncidentKind, count: usize) -> &'static str {
    match (kind, count) {
        (IncidentKind::Critical, 1) => "critical execution",
        (IncidentKind::Critical, _) => "critical executions",
        (IncidentKind::Delivery, 1) => "failure to hand on events",
        (IncidentKind::Delivery, _) => "failures to hand on events",
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
        facts.push(("Who", subject.created_by.clone()));
        facts.push(("Queue", subject.queue.clone()));
        if let Some((job, task)) = &subject.task {
            facts.push(("Task", format!("{task} of job {job}")));
        }
    }
    facts.push(("Why", incident.message.clone()));
    facts.push(("Going on for", elapsed(now.ms_since(incident.began_at))));
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
    let unheard = if incident.told_at.is_none() { ", before it could be told" } else { "" };
    let text = format!("{} {}: over after {lasted}{unheard}: {why}", noun(incident.kind, 1), incident.about);
    Line { text, command: incident.subject.as_ref().map(|subject| subject.command.clone()), link: link(incident, web_url) }
}

fn link(incident: &Incident, web_url: &str) -> Option<String> {
    let base = web_url.trim_end_matches('/');
    (incident.subject.is_some() && !base.is_empty()).then(|| format!("{base}/logs?execution_id={}", incident.about))
}

#[cfg(test)]
mod tests {
    use runvoy_model::incident::Over;

    use super::*;

    fn incident(kind: IncidentKind, number: i64) -> (String, Incident) {
        let subject = Subject { command: "make".into(), created_by: "ada@x".into(), queue: "default".into(), task: None };
        let incident = Incident { subject: Some(subject), ..Incident::begun(kind, format!("id{number}"), "why", UnixMs(number)) };
        (incident.name(), incident)
    }

    fn over(mut incident: (String, Incident), told: bool) -> (String, Incident) {
        incident.1.told_at = told.then_some(UnixMs(500));
        incident.1.over = Some(Over { at: UnixMs(60_000), why: "it ended SUCCEEDED".into(), told_at: None });
        incident
    }

    #[test]
    fn nothing_is_told_twice_and_nothing_where_there_is_nothing() {
        assert!(compose(&[], UnixMs(0), "").is_none());
        let mut told = incident(IncidentKind::Dead, 1);
        told.1.told_at = Some(UnixMs(2));
        assert!(compose(&[told], UnixMs(0), "").is_none());
    }

    #[test]
    fn one_incident_is_told_with_what_helps() {
        let composed = compose(&[incident(IncidentKind::Dead, 1)], UnixMs(90_001), "https://runvoy.example.com/").expect("a message");
        let entry = &composed.notice.begun[0];
        assert_eq!(composed.notice.title, "Dead letter: an execution used up its retries");
        assert_eq!((entry.tone, entry.link.as_deref()), (Tone::Bad, Some("https://runvoy.example.com/logs?execution_id=id1")));
        assert_eq!(entry.next[1], "runvoy queues redrive default --task id1");
        assert!(entry.facts.contains(&("Who", "ada@x".into())) && entry.facts.contains(&("Going on for", "1 min".into())));
        assert_eq!(composed.told, [Move::Told { name: "dead:id1".into(), began_at: UnixMs(1), what: Told::Begin }]);
    }

    #[test]
    fn a_thousand_are_one_message_that_names_the_worst() {
        let mut incidents: Vec<_> = (0..1_000).map(|number| incident(IncidentKind::Dead, number)).collect();
        incidents.push(incident(IncidentKind::Critical, 5_000));
        incidents.push(over(incident(IncidentKind::Overtime, 7), true));
        let Composed { notice, told } = compose(&incidents, UnixMs(9_000), "").expect("a message");
        assert_eq!(notice.title, "1 critical execution, 1000 dead letters; 1 resolved");
        assert_eq!((notice.begun.len(), notice.begun[0].headline.as_str()), (MOST_NAMED, headline(IncidentKind::Critical)));
        assert_eq!(notice.more[0], "and 991 more: 991 dead letters");
        assert_eq!((told.len(), notice.over.len()), (1_002, 1));
        assert_eq!(notice.begun[0].link, None, "no page is known");
    }

    #[test]
    fn what_was_over_before_anybody_was_told_is_one_line() {
        let composed = compose(&[over(incident(IncidentKind::Critical, 0), false)], UnixMs(9), "").expect("a message");
        assert_eq!(composed.notice.title, "Resolved: critical execution");
        assert!(composed.notice.begun.is_empty());
        let text = &composed.notice.over[0].text;
        assert_eq!(text, "critical execution id0: over after 1 min, before it could be told: it ended SUCCEEDED");
        assert_eq!(composed.told, [Move::Told { name: "critical:id0".into(), began_at: UnixMs(0), what: Told::Over }]);
        let many: Vec<_> = (0..50).map(|number| over(incident(IncidentKind::Critical, number), true)).collect();
        let composed = compose(&many, UnixMs(9), "").expect("a message");
        assert_eq!((composed.notice.over.len(), composed.notice.title.as_str()), (MOST_NAMED + 1, "Resolved: 50 incidents"));
    }
}
