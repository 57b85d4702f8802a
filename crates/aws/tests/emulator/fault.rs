//! A layer between the SDK and an emulator that fails as AWS does: answers are lost, transactions collide, requests are throttled, indexes lag,
//! messages are doubled, lost and reordered, entries of a batch fail. What happens is drawn from a seed; how often it happened can be asked, so
//! that a test knows that it has met what it is about.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use parking_lot::Mutex;
use serde_json::Value;

use super::answer;
use super::lag::{Lag, Stale};

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is carried out and its answer lost; the SDK tries again.
    LostAnswer,
    /// The same for every try of one call: only the caller can find out.
    LostCall,
    /// A write is refused because another transaction is at the same item.
    Conflict,
    /// Too many requests; of a batch of reads, that some were not processed.
    Throttle,
    /// An index answers as it stood a moment ago.
    StaleIndex,
    /// A message is sent twice.
    DoubledMessage,
    /// A message is said to be sent and is not.
    LostMessage,
    /// Messages come in another order.
    Reordered,
    /// An entry of a batch fails while the call succeeds.
    FailedEntry,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::LostAnswer,
        Self::LostCall,
        Self::Conflict,
        Self::Throttle,
        Self::StaleIndex,
        Self::DoubledMessage,
        Self::LostMessage,
        Self::Reordered,
        Self::FailedEntry,
    ];
}

/// Which faults, how often, and how often they happened. A clone is the same layer.
#[derive(Debug, Clone)]
pub struct Faults {
    layer: Arc<Layer>,
}

#[derive(Debug)]
struct Layer {
    /// Of each kind, so many of a thousand requests that it can befall.
    per_mille: [u16; Kind::ALL.len()],
    happened: [AtomicU64; Kind::ALL.len()],
    state: Mutex<State>,
    is_on: AtomicBool,
}

#[derive(Debug)]
struct State {
    random: u64,
    lag: Lag,
    /// Calls all of whose answers are lost, by what the SDK calls them.
    lost: Vec<String>,
}

impl Faults {
    /// None of them, until [`Faults::with`] adds some.
    pub fn seeded(seed: u64) -> Self {
        Self::new([0; Kind::ALL.len()], seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A little of everything.
    pub fn everything(seed: u64) -> Self {
        Kind::ALL.into_iter().fold(Self::seeded(seed), |faults, kind| match kind {
            Kind::LostCall => faults.with(kind, 10),
            Kind::StaleIndex => faults.with(kind, 300),
            _ => faults.with(kind, 60),
        })
    }

    /// This kind befalls so many of a thousand requests. Said before the layer is used.
    pub fn with(self, kind: Kind, per_mille: u16) -> Self {
        let mut all = self.layer.per_mille;
        all[kind as usize] = per_mille;
        let seed = self.layer.state.lock().random;
        Self::new(all, seed)
    }

    fn new(per_mille: [u16; Kind::ALL.len()], random: u64) -> Self {
        let state = State { random, lag: Lag::default(), lost: Vec::new() };
        let layer = Layer { per_mille, happened: Default::default(), state: Mutex::new(state), is_on: AtomicBool::new(true) };
        Self { layer: Arc::new(layer) }
    }

    /// How often it happened.
    pub fn happened(&self, kind: Kind) -> u64 {
        self.layer.happened[kind as usize].load(Ordering::Relaxed)
    }

    /// From now on nothing goes wrong, or does again.
    pub fn switch(&self, is_on: bool) {
        self.layer.is_on.store(is_on, Ordering::Relaxed);
    }

    /// The HTTP client to build clients with.
    pub fn client(&self) -> SharedHttpClient {
        SharedHttpClient::new(Through { layer: Arc::clone(&self.layer), inner: aws_smithy_http_client::Builder::new().build_http() })
    }
}

impl Layer {
    fn befalls(&self, kind: Kind) -> bool {
        let befalls = self.is_on.load(Ordering::Relaxed) && self.draw(1000) < u64::from(self.per_mille[kind as usize]);
        if befalls {
            self.happened[kind as usize].fetch_add(1, Ordering::Relaxed);
        }
        befalls
    }

    fn draw(&self, below: u64) -> u64 {
        let mut state = self.state.lock();
        state.random ^= state.random << 13;
        state.random ^= state.random >> 7;
        state.random ^= state.random << 17;
        state.random % below.max(1)
    }

    /// An answer that AWS gives without doing anything.
    fn refuse(&self, call: &Call) -> Option<HttpResponse> {
        if call.is_write() && self.befalls(Kind::Conflict) {
            return Some(answer::conflict(call));
        }
        if self.befalls(Kind::Throttle) {
            return Some(answer::throttled(call));
        }
        if call.sends_messages() && self.befalls(Kind::LostMessage) {
            return Some(answer::sent(call));
        }
        None
    }

    /// Whether the answer to this try is lost: a call that is lost is so as often as it is tried.
    fn loses(&self, request: &HttpRequest) -> bool {
        let call = request.headers().get("amz-sdk-invocation-id").unwrap_or_default().to_owned();
        if self.state.lock().lost.contains(&call) {
            return true;
        }
        if self.befalls(Kind::LostCall) {
            self.state.lock().lost.push(call);
            return true;
        }
        self.befalls(Kind::LostAnswer)
    }
}

/// A request as far as faults must understand it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// `DynamoDB_20120810.Query`; nothing for S3.
    pub target: String,
    /// The body where it is JSON.
    pub body: Value,
}

impl Call {
    fn of(request: &HttpRequest) -> Self {
        let target = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        let body = request.body().bytes().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or(Value::Null);
        Self { target, body }
    }

    /// What is called, without the service.
    pub fn operation(&self) -> &str {
        self.target.rsplit('.').next().unwrap_or_default()
    }

    fn is_write(&self) -> bool {
        self.target.starts_with("DynamoDB") && matches!(self.operation(), "TransactWriteItems" | "PutItem" | "UpdateItem" | "DeleteItem")
    }

    fn sends_messages(&self) -> bool {
        matches!(self.operation(), "SendMessage" | "SendMessageBatch")
    }
}

#[derive(Debug)]
struct Through {
    layer: Arc<Layer>,
    inner: SharedHttpClient,
}

impl HttpClient for Through {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Line { layer: Arc::clone(&self.layer), inner })
    }
}

#[derive(Debug, Clone)]
struct Line {
    layer: Arc<Layer>,
    inner: SharedHttpConnector,
}

impl HttpConnector for Line {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let line = self.clone();
        HttpConnectorFuture::new(async move { line.carry(request).await })
    }
}

impl Line {
    async fn carry(&self, mut request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let call = Call::of(&request);
        if let Some(answer) = self.layer.refuse(&call) {
            return Ok(answer);
        }
        let failed = self.leave_out(&call, &mut request);
        if call.sends_messages()
            && self.layer.befalls(Kind::DoubledMessage)
            && let Some(again) = request.try_clone()
        {
            self.inner.call(again).await?;
        }
        let is_lost = self.layer.loses(&request);
        let mut response = self.inner.call(request).await?;
        self.layer.state.lock().lag.wrote(&call);
        if is_lost {
            return Err(ConnectorError::timeout("the answer was lost on its way".into()));
        }
        if let Some(failed) = failed {
            response = edit(response, |body| answer::add_failed(&call, body, &failed)).await?;
        }
        if call.operation() == "ReceiveMessage" && self.layer.befalls(Kind::Reordered) {
            response = edit(response, answer::reverse).await?;
        }
        if Lag::concerns(&call) {
            let how = if self.layer.draw(2) == 0 { Stale::Earlier } else { Stale::Without };
            let stale = self.layer.befalls(Kind::StaleIndex).then_some(how);
            response = edit(response, |body| self.layer.state.lock().lag.answer(&call, body, stale)).await?;
        }
        Ok(response)
    }

    /// Takes one entry out of a batch, which is then said to have failed.
    fn leave_out(&self, call: &Call, request: &mut HttpRequest) -> Option<(usize, Value)> {
        let count = answer::entries(call)?.len() as u64;
        if count == 0 || !self.layer.befalls(Kind::FailedEntry) {
            return None;
        }
        let place = self.layer.draw(count) as usize;
        let mut body = call.body.clone();
        let entry = body["Entries"].as_array_mut()?.remove(place);
        if body["Entries"].as_array()?.is_empty() {
            // A batch of nothing is refused: this one entry goes, and is said to have failed all the same.
            return Some((place, entry));
        }
        let bytes = serde_json::to_vec(&body).expect("JSON");
        request.headers_mut().insert("content-length", bytes.len().to_string());
        *request.body_mut() = SdkBody::from(bytes);
        Some((place, entry))
    }
}

/// Changes the JSON of an answer that went well.
async fn edit(response: HttpResponse, change: impl FnOnce(&mut Value)) -> Result<HttpResponse, ConnectorError> {
    if !response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let headers: Vec<_> = response.headers().iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let bytes = ByteStream::new(response.into_body()).collect().await.map_err(|error| ConnectorError::io(error.into()))?.into_bytes();
    let mut body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    change(&mut body);
    let mut edited = HttpResponse::new(status, SdkBody::from(serde_json::to_vec(&body).expect("JSON")));
    for (name, value) in headers {
        // Both were true of the bytes before.
        if !matches!(name.as_str(), "content-length" | "x-amz-crc32") {
            edited.headers_mut().append(name, value);
        }
    }
    Ok(edited)
}
