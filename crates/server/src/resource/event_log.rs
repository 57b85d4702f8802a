//! The event log: pages of it by the shapes of the event contract, and the same as a stream, a line of JSON an event.
//!
//! Every line of a stream carries `cursor`, the place that a new request goes on after. A line with nothing else is a mark: the first one, so that
//! a connection lost at once loses nothing, and one now and then, so that silence means a lost connection.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response};
use runvoy_engine::{EngineError, EventFilter, EventFollower};
use runvoy_model::event::{Entity, EntityType, EventType};
use runvoy_model::phrase::{one_of, unknown};
use runvoy_model::role::Action;
use runvoy_ports::store::StoredEvent;
use runvoy_wire::{Code, Event, Rfc3339};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use crate::answer::{self, Pieces};
use crate::app::OpenStream;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, flag, number, pattern, place, text, time, words};
use crate::query::{NEXT_CURSOR, Query};
use crate::route::{Routes, Rule};
use crate::vigil::Vigil;

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// Tells a proxy to hand lines on as they come.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const DEFAULT_LIMIT: u64 = 100;
const MOST: u64 = 1_000;
/// So much is written at once.
const PIECE_BYTES: usize = 64 * 1024;
/// A stream says something at least this often.
const MARK_EVERY: Duration = Duration::from_secs(15);

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("queryEvents", "Query or follow the event log")
        .about(
            "Lists events, newest first. With `follow=1` the response is a stream of JSON lines \
             that stays open: every line has a `cursor` to resume after, and a line with nothing \
             else is a heartbeat. `tenant` with `app` or `entity` needs a `type`; a combination \
             that no index serves fails with `INVALID_REQUEST`.",
        )
        .query("type", words(&EventType::ALL.map(EventType::as_str)), "Only events of this type")
        .query("tenant", text(), "Only events of this tenant; with `app` or `entity` it needs a `type`")
        .query("app", text(), "Only events of this app")
        .query(
            "entity",
            pattern(format!("^({}):.", EntityType::ALL.map(EntityType::as_str).join("|"))),
            "Only events about this entity: TASK:ID for an execution, JOB:ID for a job",
        )
        .query("from", time(), "Only events at this time or later. A stream starts there; default for a stream: now")
        .query("to", time(), "Only events before this time. Not with `follow`")
        .query("order", words(&["asc", "desc"]), "The order by time; default: desc. A stream is always asc")
        .query("limit", number(1, Some(MOST)), "The maximum number of events; default: 100. Not with `follow`")
        .query("cursor", place(), "The X-Next-Cursor of the page before, or the `cursor` of a line of a stream")
        .query("follow", flag(), "Stream events as JSON lines (application/x-ndjson) until the client disconnects")
        .query(
            "resolve",
            flag(),
            "Include values that were too large for an event, instead of their `_s3Overflow` reference. Large inputs of single tasks stay references",
        )
        .header("X-Next-Cursor", "The cursor of the next page; absent on the last page. A page can be empty without being the last")
        .gives_array::<Event>(200, "The events")
        .refuses(&[Code::NotFound, Code::Conflict, Code::RateLimited]);
    routes.get("/api/v1/events", Rule::Key(Action::Read), operation, events);
}

async fn events(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let (follow, resolve) = (query.flag("follow")?, query.flag("resolve")?);
    let filter = filter(&query, follow)?;
    let vigil = Vigil::over(&call)?;
    if follow {
        return stream(call, vigil, &filter, resolve).await;
    }
    let page = call.engine().events(call.caller()?, &filter).await?;
    let written = Page { call, events: page.events.into(), resolve, array: Array::default() };
    let mut response = answer::streamed(vigil, written, answer::JSON).await?;
    if page.more {
        response.headers_mut().insert(NEXT_CURSOR, HeaderValue::from(page.looked));
    }
    Ok(response)
}

fn filter(query: &Query, follow: bool) -> Result<EventFilter, Fault> {
    let kind = query.text("type")?.map(|word| {
        EventType::parse(word).ok_or_else(|| Fault::invalid("type", unknown("type", word, &EventType::ALL.map(EventType::as_str))))
    });
    let descending = match query.text("order")? {
        Some("asc") => false,
        Some("desc") => true,
        Some(_) => return Err(Fault::invalid("order", "must be asc or desc")),
        None => !follow,
    };
    let limit = query.number("limit", 1..=MOST)?.unwrap_or(DEFAULT_LIMIT);
    Ok(EventFilter {
        kind: kind.transpose()?,
        tenant: query.text("tenant")?.map(str::to_owned),
        app: query.text("app")?.map(str::to_owned),
        entity: query.text("entity")?.map(entity).transpose()?,
        from: query.parsed::<Rfc3339>("from")?.map(Into::into),
        to: query.parsed::<Rfc3339>("to")?.map(Into::into),
        descending,
        after: query.number("cursor", 0..=u64::MAX)?,
        limit: usize::try_from(limit).expect("at most a thousand"),
    })
}

fn entity(text: &str) -> Result<Entity, Fault> {
    let known = || one_of(&EntityType::ALL.map(EntityType::as_str));
    let parsed = text.split_once(':').and_then(|(kind, id)| Some(Entity { kind: EntityType::parse(kind)?, id: id.to_owned() }));
    let parsed = parsed.filter(|entity| !entity.id.is_empty());
    parsed.ok_or_else(|| Fault::invalid("entity", format!("must be KIND:ID, where KIND is {}", known())))
}

/// An array that is written part by part.
#[derive(Default)]
pub(super) struct Array {
    begun: bool,
    pub(super) ended: bool,
}

impl Array {
    pub(super) fn push(&mut self, out: &mut Vec<u8>, event: &impl Serialize) {
        out.push(if std::mem::replace(&mut self.begun, true) { b',' } else { b'[' });
        serde_json::to_writer(out, event).expect("events are plain data");
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        self.ended = true;
        out.extend_from_slice(if self.begun { b"]" } else { b"[]" });
    }
}

/// A page, written as it is rendered: with what it names in the blob store it may be much larger than in the log.
struct Page {
    call: Call,
    events: VecDeque<StoredEvent>,
    resolve: bool,
    array: Array,
}

impl Pieces for Page {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        if self.array.ended {
            return Ok(None);
        }
        let mut out = Vec::new();
        while out.len() < PIECE_BYTES && !self.array.ended {
            match self.events.pop_front() {
                Some(stored) => self.array.push(&mut out, &self.call.engine().show_event(&stored.event, self.resolve).await?),
                None => self.array.end(&mut out),
            }
        }
        Ok(Some(out.into()))
    }
}

async fn stream(call: Call, vigil: Vigil, filter: &EventFilter, resolve: bool) -> Result<Response<Body>, Fault> {
    let caller = call.caller()?;
    let follower = call.engine().follow_events(caller, filter).await?;
    let open = call.state.open_stream(&caller.email).ok_or_else(Fault::too_many_streams)?;
    let own_vigil = Vigil::over(&call)?;
    let lines = Lines { vigil: own_vigil, follower, waiting: VecDeque::new(), resolve, spoke: None, _open: open, call };
    let mut response = answer::streamed(vigil, lines, NDJSON).await?;
    response.headers_mut().insert(BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// A stream of lines. It holds one page of events, however slow its client is.
struct Lines {
    call: Call,
    vigil: Vigil,
    follower: EventFollower,
    /// Read, and not written yet.
    waiting: VecDeque<StoredEvent>,
    resolve: bool,
    /// When something was last said; nothing yet.
    spoke: Option<Instant>,
    _open: OpenStream,
}

impl Lines {
    fn mark(&self) -> Vec<u8> {
        let mut line = json!({"cursor": self.follower.place().to_string()}).to_string().into_bytes();
        line.push(b'\n');
        line
    }

    async fn lines(&mut self) -> Result<Vec<u8>, EngineError> {
        let mut out = Vec::new();
        while out.len() < PIECE_BYTES
            && let Some(stored) = self.waiting.pop_front()
        {
            let event = self.call.engine().show_event(&stored.event, self.resolve).await?.with("cursor", stored.place.to_string().into());
            serde_json::to_writer(&mut out, &event).expect("events are plain data");
            out.push(b'\n');
        }
        Ok(out)
    }
}

impl Pieces for Lines {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        let said = loop {
            if !self.waiting.is_empty() {
                break self.lines().await?;
            }
            if self.spoke.is_none_or(|spoke| spoke.elapsed() >= MARK_EVERY) {
                break self.mark();
            }
            // A wait may be long, and whoever lost their right meanwhile gets nothing of what comes.
            self.vigil.look().await?;
            let followed = tokio::select! {
                followed = self.follower.next() => followed?,
                () = self.call.state.stopping() => return Ok(None),
            };
            self.waiting = followed.into();
            if !self.waiting.is_empty() {
                self.vigil.look().await?;
            }
        };
        self.spoke = Some(Instant::now());
        Ok(Some(said.into()))
    }
}
