//! Events: pages of them, and a stream that goes on through lost connections. `cursor` is the one place: the server names it at the
//! beginning of a stream, with every event, and now and then in between, so that a new connection neither misses nor repeats one.

use std::time::{Duration, Instant};

use runvoy_wire::Event;

use crate::call::Call;
use crate::client::Client;
use crate::download::{Download, Lines};
use crate::error::ClientError;
use crate::execution::Page;
use crate::query::Target;
use crate::retry::{asked, backoff};

/// How long a server may be away before a stream gives up.
const PATIENCE: Duration = Duration::from_secs(300);

/// Which events. The parameters choose one of the seven shapes; a mix that none serves is refused by the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsQuery {
    /// Only of this type: `Task Failed`.
    pub kind: Option<String>,
    /// Only of this tenant.
    pub tenant: Option<String>,
    /// Only of this app.
    pub app: Option<String>,
    /// Only of this entity: `TASK:0192…`, `JOB:0192…`.
    pub entity: Option<String>,
    /// Only at or after this RFC 3339 time.
    pub from: Option<String>,
    /// Only before this RFC 3339 time.
    pub to: Option<String>,
    /// `asc` or `desc`; `None` leaves it to the server.
    pub order: Option<String>,
    /// How many at most; `None` leaves it to the server.
    pub limit: Option<u32>,
    /// Go on where an earlier page ended.
    pub cursor: Option<String>,
}

/// What a stream of events hands over.
#[derive(Debug)]
pub enum Streamed {
    /// The next event.
    Event(Event),
    /// The connection was lost and is being made again.
    Interrupted(ClientError),
}

/// Events as they happen.
pub struct EventStream {
    client: Client,
    query: EventsQuery,
    lines: Option<Lines<Event>>,
    fruitless: u32,
    heard: Instant,
}

impl Client {
    /// One part of the events.
    pub async fn query_events(&self, query: &EventsQuery) -> Result<Page<Event>, ClientError> {
        self.page(&Call::get(target(query))).await
    }

    /// Events from now on, or from `query.from` on.
    pub fn follow_events(&self, query: EventsQuery) -> EventStream {
        EventStream { client: self.clone(), query, lines: None, fruitless: 0, heard: Instant::now() }
    }
}

impl EventStream {
    /// What comes next. It ends only by an error.
    pub async fn next(&mut self) -> Result<Streamed, ClientError> {
        loop {
            match self.line().await {
                Ok(Some(event)) => return Ok(Streamed::Event(event)),
                Ok(None) => self.pause(None).await,
                Err(error) if error.is_retryable() && self.heard.elapsed() < PATIENCE => {
                    let first = self.fruitless == 0;
                    self.pause(asked(&error)).await;
                    // One lost connection is nothing to talk about; a server that stays away is.
                    if !first {
                        return Ok(Streamed::Interrupted(error));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The next event of this connection; `None` where the server closed it.
    async fn line(&mut self) -> Result<Option<Event>, ClientError> {
        if self.lines.is_none() {
            let call = Call::get(target(&self.query).with("follow", 1)).once();
            self.lines = Some(Lines::new(Download::new(self.client.clone(), self.client.open(&call).await?)));
        }
        let lines = self.lines.as_mut().expect("opened above");
        while let Some(mut event) = lines.next().await? {
            (self.fruitless, self.heard) = (0, Instant::now());
            if let Some(cursor) = event.take_cursor() {
                self.query.cursor = Some(cursor);
            }
            // A mark says only where the stream is.
            if !event.text("eventType").is_empty() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    async fn pause(&mut self, asked: Option<Duration>) {
        self.lines = None;
        let delay = asked.unwrap_or_else(|| if self.fruitless == 0 { Duration::ZERO } else { backoff(self.fruitless) });
        self.fruitless += 1;
        tokio::time::sleep(delay).await;
    }
}

fn target(query: &EventsQuery) -> Target {
    Target::new(&["events"])
        .with_some("type", query.kind.as_ref())
        .with_some("tenant", query.tenant.as_ref())
        .with_some("app", query.app.as_ref())
        .with_some("entity", query.entity.as_ref())
        .with_some("from", query.from.as_ref())
        .with_some("to", query.to.as_ref())
        .with_some("order", query.order.as_ref())
        .with_some("limit", query.limit)
        .with_some("cursor", query.cursor.as_ref())
}
